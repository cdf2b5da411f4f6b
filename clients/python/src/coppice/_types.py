"""What a server tells, as values. Members that a newer server adds are in ``raw``."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import ExecutionFailed

if TYPE_CHECKING:
    from ._saved import Memory


@dataclass(frozen=True)
class Cell:
    """A piece of code, with a title for people."""

    code: str
    title: str = ""


#: What can be run: source text, or cells that run in order.
Code = Union[str, Cell, Sequence[Union[str, Cell]]]


@dataclass(frozen=True)
class Image:
    """A picture that the code showed."""

    mime: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class CellResult:
    """What became of one cell."""

    index: int
    title: str
    #: ``pending``, ``running``, ``complete`` or ``error``.
    status: str
    outcome: str
    #: The text that it printed and showed.
    output: str
    #: Seconds.
    duration: float
    #: The class of the exception that ended it and its text; "": none did.
    error_name: str
    error_message: str
    traceback: Tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class LimitExceeded:
    """The limit of a session, or of its workspace, that the code or its interpreter has met: it
    ended that, unless the outcome is ``ok``."""

    #: ``memory``, ``cpu``, ``runtime``, ``files``, ``processes``, ``output`` or ``disk``.
    limit: str
    #: Whose limit it was, how much that is, and what was done; "": it was the session's own.
    detail: str
    #: The end of what the code wrote to stderr.
    stderr: str


@dataclass(frozen=True)
class Result:
    """The end of a call. Every call has exactly one."""

    #: ``ok``, ``error``, ``timeout``, ``cancelled``, ``lost`` or ``not_started``.
    outcome: str
    #: What became of the variables: ``kept``, ``fresh``, ``restored``, ``lost``; "": nothing ran.
    state: str
    #: What a model or a person reads: output, error, and notes about both.
    text: str
    cells: Tuple[CellResult, ...]
    #: The JSON values and the pictures that were shown.
    json: Tuple[Any, ...]
    images: Tuple[Image, ...]
    #: The name of the file that holds the whole output, when ``text`` was cut.
    artifact: Optional[str]
    #: Why nothing ran, and what can be done about it; "": it ran.
    refusal: str
    remedy: str
    #: After how many seconds the same call is worth making again; None: no time is known.
    retry_after: Optional[float]
    notices: Tuple[str, ...]
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def ok(self) -> bool:
        """Whether every cell ran to its end."""
        return self.outcome == "ok"

    @property
    def reason(self) -> str:
        """Why it was lost or not started, or why the variables are not as the calls before
        left them; "" where there is nothing to explain."""
        return str(self.raw.get("reason", ""))

    @property
    def retry_after_ms(self) -> Optional[int]:
        """``retry_after`` in milliseconds, as the server has it."""
        after = self.raw.get("retry_after_ms")
        return None if after is None else int(after)

    @property
    def stdin_requested(self) -> bool:
        """Whether the code asked for input and got none."""
        return bool(self.raw.get("stdin_requested", False))

    @property
    def resource_limit_exceeded(self) -> Optional[LimitExceeded]:
        """The limit that the code or its interpreter has met; None: it has met none."""
        limit = self.raw.get("resource_limit_exceeded")
        if limit is None:
            return None
        return LimitExceeded(str(limit["limit"]), str(limit.get("detail", "")), str(limit.get("stderr", "")))

    @property
    def restored(self) -> Optional[Memory]:
        """Which variables are there, and which are not, where ``state`` is ``restored``."""
        from ._saved import memory_of  # it needs this module

        memory = self.raw.get("restored")
        return None if memory is None else memory_of(memory)

    def raise_for_outcome(self) -> Result:
        """Return the result when it is ok, and raise ExecutionFailed otherwise."""
        if not self.ok:
            raise ExecutionFailed(self)
        return self


#: How much of an event's text its repr shows, in characters.
_SHOWN = 60


@dataclass(frozen=True)
class Event:
    """Something that happened while a call ran."""

    #: Counts from 1 without a gap.
    seq: int
    #: The cell, from 0; -1: the call itself.
    cell: int
    #: ``status``, ``stdout``, ``stderr``, ``display``, ``result``, ``clear``, ``error``,
    #: ``input_request``, ``notice``, ``host_call``, ``host_event`` or ``final``.
    type: str
    #: The id of the execution that it is of.
    execution: str
    raw: Mapping[str, Any] = field(repr=False)

    def __repr__(self) -> str:
        said = self.prompt if self.type == "input_request" else self.text
        more = "..." if len(said) > _SHOWN else ""
        return f"Event(seq={self.seq}, cell={self.cell}, type={self.type!r}, execution={self.execution!r}, text={said[:_SHOWN]!r}{more})"

    @property
    def text(self) -> str:
        """What was printed or shown, as plain text; "" where an event has none."""
        if "text" in self.raw:
            return str(self.raw["text"])
        data = self.raw.get("data")
        if isinstance(data, dict):
            return str(data.get("text/plain", ""))
        return str(self.raw.get("message", ""))

    @property
    def prompt(self) -> str:
        """The question of an ``input_request``."""
        return str(self.raw.get("prompt", ""))

    @property
    def result(self) -> Optional[Result]:
        """The result, of the ``final`` event."""
        return result_of(self.raw) if self.type == "final" else None


@dataclass(frozen=True)
class SessionInfo:
    """A session that has an interpreter."""

    name: str
    cwd: str
    #: The workspace that it belongs to; "": none.
    workspace: str
    #: ``idle``, ``busy``, ``starting``, …
    state: str
    pinned: bool
    #: Calls that wait, and those that were answered.
    queue: int
    done: int
    restarts: int
    raw: Mapping[str, Any] = field(repr=False)
    #: The kernelspec of its kernels, where it named one.
    kernel: str = ""

    @property
    def session(self) -> str:
        """Its name, as the server and other clients call it."""
        return self.name


@dataclass(frozen=True)
class Checkpoint:
    """A state of a session that the server keeps, until it is dropped or the server ends."""

    id: str
    #: The session whose state it is.
    session: str
    cwd: str
    workspace: str
    made: datetime
    #: The bytes of memory that are its alone by now; 0: they are not known.
    memory: int
    raw: Mapping[str, Any] = field(repr=False)


def time_of(text: str) -> datetime:
    """A time as the server writes it; finer than a microsecond is cut."""
    head, zone = (text[:-1], "+00:00") if text.endswith("Z") else (text[:-6], text[-6:])
    whole, _, part = head.partition(".")
    return datetime.fromisoformat(f"{whole}.{part[:6]:0<6}{zone}")


def checkpoint_of(raw: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(
        id=raw["id"], session=raw["session"], cwd=raw["cwd"], workspace=raw.get("workspace", ""), made=time_of(raw["made"]),
        memory=raw.get("memory", 0), raw=raw,
    )


def checkpoint_id(checkpoint: Union[Checkpoint, str]) -> str:
    """The id of a checkpoint."""
    found = checkpoint if isinstance(checkpoint, str) else checkpoint.id
    if not found:
        raise ValueError("a checkpoint has an id")
    return found


def cells_of(code: Code) -> List[Dict[str, str]]:
    """The cells of a request."""
    many = isinstance(code, Sequence) and not isinstance(code, (str, bytes, bytearray, memoryview))
    parts: Sequence[Union[str, Cell]] = code if many else [code]  # type: ignore[assignment, list-item]
    cells = []
    for part in parts:
        if not isinstance(part, (str, Cell)):
            raise TypeError(f"code is text, a Cell, or a list of those, not {part!r:.100}")
        cell = Cell(part) if isinstance(part, str) else part
        cells.append({"code": cell.code, "title": cell.title} if cell.title else {"code": cell.code})
    return cells


def cell_of(raw: Mapping[str, Any]) -> CellResult:
    error = raw.get("error") or {}
    return CellResult(
        index=raw["index"], title=raw.get("title", ""), status=raw["status"], outcome=raw["outcome"],
        output=raw.get("output", ""), duration=raw.get("duration_ms", 0) / 1000,
        error_name=error.get("name", ""), error_message=error.get("message", ""),
        traceback=tuple(error.get("traceback") or ()), raw=raw,
    )


def result_of(raw: Mapping[str, Any]) -> Result:
    retry = raw.get("retry_after_ms")
    return Result(
        outcome=raw["outcome"], state=raw.get("state", ""), text=raw.get("text", ""),
        cells=tuple(cell_of(c) for c in raw.get("cells") or ()), json=tuple(raw.get("json") or ()),
        images=tuple(Image(i["mime"], base64.b64decode(i["data"])) for i in raw.get("images") or ()),
        artifact=raw.get("artifact"), refusal=raw.get("refusal", ""), remedy=raw.get("remedy", ""),
        retry_after=None if retry is None else retry / 1000, notices=tuple(raw.get("notices") or ()), raw=raw,
    )


def session_of(raw: Mapping[str, Any]) -> SessionInfo:
    return SessionInfo(
        name=raw["session"], cwd=raw["cwd"], workspace=raw.get("workspace", ""), state=raw["state"], pinned=raw.get("pinned", False),
        queue=raw.get("queue", 0), done=raw.get("done", 0), restarts=raw.get("restarts", 0), raw=raw, kernel=raw.get("kernel", ""),
    )
