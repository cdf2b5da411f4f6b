"""What a server tells of workspaces, their files and their processes, as values."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Iterator, Mapping, Optional, Tuple

from ._errors import CoppiceError
from ._types import time_of


@dataclass(frozen=True)
class WorkspaceInfo:
    """A workspace: what sessions, files and processes belong to together."""

    name: str
    #: Where its files are on the machine of the server.
    folder: str
    owner: str
    labels: Mapping[str, str]
    made: datetime
    #: How many calls, processes and transfers of files go on.
    in_use: int
    #: How many bytes its files may have; 0: no limit.
    quota: int
    #: The rung that its sessions and processes are on, "": none.
    isolation: str
    raw: Mapping[str, Any] = field(repr=False)
    #: The limits of everything in it together: ``memory_bytes``, ``processes``, ``processors``, ``output_bytes``.
    total: Mapping[str, float] = field(default_factory=dict)
    #: What keeps to those, and why not a control group; "": there are none.
    total_kept: str = ""
    #: What there was when it was looked at: ``at``, ``memory_bytes``, ``processes``, ``ends``, ``last``; None: it was not.
    usage: Optional[Mapping[str, Any]] = None


@dataclass(frozen=True)
class File:
    """What stands at a path of a workspace."""

    #: Relative to the folder of the workspace, with slashes; ``.`` is the folder itself.
    path: str
    #: ``file``, ``directory``, ``symlink`` or ``other``.
    kind: str
    #: Bytes, of a ``file``.
    size: int
    #: The permission bits, in octal: ``0644``.
    mode: str
    modified: datetime
    #: What a symbolic link says.
    target: str
    #: Tells versions of a file apart.
    etag: str
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Listing:
    """What a directory holds; it can be iterated."""

    files: Tuple[File, ...]
    #: There is more than was asked for.
    more: bool

    def __iter__(self) -> Iterator[File]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True)
class Exit:
    """How a process ended."""

    #: Its exit code; -1: a signal ended it.
    code: int
    signal: str
    #: Why it was ended from outside, and why output is missing; "" of each: it is not so.
    reason: str
    incomplete: str


@dataclass(frozen=True)
class ProcessInfo:
    """A process of a workspace."""

    id: str
    pid: int
    args: Tuple[str, ...]
    #: ``running`` or ``ended``.
    state: str
    started: datetime
    labels: Mapping[str, str]
    #: How it ended; None: it runs.
    exit: Optional[Exit]
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ProcessEvent:
    """A piece of what a process prints, or its end."""

    #: Counts from 1. Only a ``gap`` leaves numbers out: what they were is not kept any more.
    seq: int
    #: ``stdout``, ``stderr``, ``terminal``, ``gap``, or ``end``, which is the last.
    type: str
    #: What was printed. It need not be text, nor end between two characters.
    data: bytes
    #: Of the ``end``.
    exit: Optional[Exit]
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class ProcessResult:
    """What became of a program that ran to its end."""

    #: Its exit code; -1: a signal ended it, whose name ``signal`` is.
    code: int
    signal: str
    stdout: bytes = field(repr=False)
    stderr: bytes = field(repr=False)
    #: Why it was ended from outside, as by a timeout; "": it was not.
    reason: str
    #: Why output is missing; "": all is there.
    incomplete: str

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with the code 0."""
        return self.code == 0

    @property
    def text(self) -> str:
        """What it printed on stdout, as UTF-8; what is none is replaced."""
        return self.stdout.decode("utf-8", "replace")

    def raise_for_code(self) -> ProcessResult:
        """Return the result when it is ok, and raise ProcessFailed otherwise."""
        if not self.ok:
            raise ProcessFailed(self)
        return self


class ProcessFailed(CoppiceError):
    """A program did not end well; raised by ``ProcessResult.raise_for_code``."""

    def __init__(self, result: ProcessResult) -> None:
        how = f"signal {result.signal}" if result.signal else f"exit code {result.code}"
        why = result.reason or result.stderr.decode("utf-8", "replace").strip()[-2000:]
        super().__init__(f"{how}: {why}" if why else how)
        #: What became of it.
        self.result = result


class Output:
    """Gathers the result of a program from its events."""

    def __init__(self) -> None:
        self._parts: Mapping[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._gap = ""
        self._exit: Optional[Exit] = None

    def take(self, event: ProcessEvent) -> None:
        if event.type in self._parts:
            self._parts[event.type].extend(event.data)
        elif event.type == "gap":
            self._gap = "it printed faster than it was read"
        self._exit = event.exit or self._exit

    def result(self) -> ProcessResult:
        if not self._exit:
            raise CoppiceError("the process has no end")
        return ProcessResult(
            code=self._exit.code, signal=self._exit.signal, stdout=bytes(self._parts["stdout"]), stderr=bytes(self._parts["stderr"]),
            reason=self._exit.reason, incomplete=self._exit.incomplete or self._gap,
        )


def workspace_of(raw: Mapping[str, Any]) -> WorkspaceInfo:
    return WorkspaceInfo(
        name=raw["name"], folder=raw["folder"], owner=raw.get("owner", ""), labels=raw.get("labels") or {}, made=time_of(raw["made"]),
        in_use=raw.get("in_use", 0), quota=raw.get("quota_bytes", 0), isolation=raw.get("isolation", ""), raw=raw,
        total=raw.get("total") or {}, total_kept=raw.get("total_kept", ""), usage=raw.get("usage"),
    )


def file_of(raw: Mapping[str, Any]) -> File:
    return File(
        path=raw["path"], kind=raw["kind"], size=raw["size"], mode=raw["mode"], modified=time_of(raw["modified"]),
        target=raw.get("target", ""), etag=raw.get("etag", ""), raw=raw,
    )


def listing_of(raw: Mapping[str, Any]) -> Listing:
    return Listing(tuple(file_of(f) for f in raw["files"]), raw.get("more", False))


def exit_of(raw: Optional[Mapping[str, Any]]) -> Optional[Exit]:
    return None if raw is None else Exit(raw["code"], raw.get("signal", ""), raw.get("reason", ""), raw.get("incomplete", ""))


def process_of(raw: Mapping[str, Any]) -> ProcessInfo:
    return ProcessInfo(
        id=raw["id"], pid=raw["pid"], args=tuple(raw["args"]), state=raw["state"], started=time_of(raw["started"]),
        labels=raw.get("labels") or {}, exit=exit_of(raw.get("exit")), raw=raw,
    )


def process_event_of(raw: Mapping[str, Any]) -> ProcessEvent:
    return ProcessEvent(seq=raw["seq"], type=raw["type"], data=base64.b64decode(raw.get("data", "")), exit=exit_of(raw.get("exit")), raw=raw)
