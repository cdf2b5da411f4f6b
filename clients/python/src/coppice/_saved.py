"""Checkpoints on the server's disk: what was in a session's memory, under a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from ._types import time_of
from ._wire import part


@dataclass(frozen=True)
class Lost:
    """A variable that did not come along, and why."""

    name: str
    type: str
    reason: str


@dataclass(frozen=True)
class Changed:
    """A variable that is not as it was, and how."""

    name: str
    type: str
    change: str


@dataclass(frozen=True)
class Memory:
    """What becomes of each variable of a session: it is in one of the three."""

    kept: Tuple[str, ...]
    lost: Tuple[Lost, ...]
    changed: Tuple[Changed, ...]
    #: What turned out otherwise when it was read, a sentence each.
    notes: Tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class SavedCheckpoint:
    """A state of a session that is kept on the server's disk, also when the server ends."""

    name: str
    #: The session whose state it is. It is for sessions of that workspace, "": of none.
    session: str
    cwd: str
    workspace: str
    #: Who may have it; open: everyone may.
    owners: Tuple[str, ...]
    open: bool
    made: datetime
    #: Until when it is kept; None: until it is dropped.
    expires: Optional[datetime]
    bytes: int
    #: The version of Python that it is of, and alone can be restored by.
    python: str
    memory: Memory
    raw: Mapping[str, Any] = field(repr=False)


def memory_of(raw: Mapping[str, Any]) -> Memory:
    return Memory(
        kept=tuple(raw.get("kept") or ()),
        lost=tuple(Lost(one["name"], one["type"], one["reason"]) for one in raw.get("lost") or ()),
        changed=tuple(Changed(one["name"], one["type"], one["change"]) for one in raw.get("changed") or ()),
        notes=tuple(raw.get("notes") or ()), raw=raw,
    )


def saved_of(raw: Mapping[str, Any]) -> SavedCheckpoint:
    expires = raw.get("expires")
    return SavedCheckpoint(
        name=raw["name"], session=raw["session"], cwd=raw["cwd"], workspace=raw.get("workspace", ""),
        owners=tuple(raw.get("owners") or ()), open=raw.get("open", False), made=time_of(raw["made"]),
        expires=time_of(expires) if expires else None, bytes=raw["bytes"], python=raw["python"], memory=memory_of(raw), raw=raw,
    )


def save_body(name: str, owner: str, lossy: bool, replace: bool) -> Dict[str, Any]:
    """The body of a request for one."""
    given = {"owner": owner, "lossy": lossy, "replace": replace}
    return {"name": named(name), **{k: v for k, v in given.items() if v}}


def restore_body(checkpoint: Union[SavedCheckpoint, str], owner: str) -> Dict[str, Any]:
    """The body of a request to go on from one."""
    return {"name": named(checkpoint), **({"owner": owner} if owner else {})}


def drop_request(checkpoint: Union[SavedCheckpoint, str], workspace: str, owner: str) -> Tuple[str, Dict[str, str]]:
    """The path and the query of a request to drop one."""
    if isinstance(checkpoint, SavedCheckpoint):
        workspace = checkpoint.workspace
    query = {k: v for k, v in {"workspace": workspace, "owner": owner}.items() if v}
    return "api/saved-checkpoints/" + part("the name of a checkpoint", named(checkpoint)), query


def named(checkpoint: Union[SavedCheckpoint, str]) -> str:
    """The name of one."""
    found = checkpoint if isinstance(checkpoint, str) else checkpoint.name
    if not found:
        raise ValueError("a checkpoint on disk has a name")
    return found
