"""What both clients ask about workspaces, without any input or output of its own."""

from __future__ import annotations

import asyncio
import io
import math
import os
import pathlib
from typing import Any, AsyncIterable, AsyncIterator, Dict, Iterable, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

from . import _wire
from ._errors import CoppiceError, ServerError
from ._places import ProcessEvent, process_event_of

#: How much one request writes to a process, and is read of a file at once, in bytes.
INPUT = 256 << 10
PIECE = 64 << 10

#: The errors of a process that takes no more input: it has ended, or has closed it.
DEAF = ("ended", "no_input")

#: What stands before the number of an artifact in its name.
ARTIFACT = "artifact://"

#: The head of a request that brings bytes.
BYTES = {"Content-Type": "application/octet-stream"}


class Readable(Protocol):
    """A file that is open for reading bytes."""

    def read(self, n: int, /) -> bytes:
        """Read at most n bytes."""


#: What can be written: text (as UTF-8), bytes, an open binary file, pieces of bytes.
Content = Union[str, bytes, bytearray, memoryview, Readable, Iterable[bytes]]

AsyncContent = Union[Content, AsyncIterable[bytes]]


class SourceFailed(Exception):
    """What was to be sent could not be read."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


def check_content(content: object, asynchronous: bool = False) -> None:
    """Refuse what cannot be written."""
    what = "what is written is text, bytes, an open binary file or pieces of bytes"
    if isinstance(content, io.TextIOBase):
        raise TypeError(f"{what}, not {content!r:.100}: open it with mode 'rb'")
    readable = isinstance(content, Iterable) or callable(getattr(content, "read", None)) or asynchronous and isinstance(content, AsyncIterable)
    if not readable or isinstance(content, Mapping):
        raise TypeError(f"{what}, not {content!r:.100}")


def known(content: object, asynchronous: bool = False) -> Optional[bytes]:
    """The bytes of content that is all there; None: it is read while it is sent."""
    check_content(content, asynchronous)
    if isinstance(content, str):
        _wire.check_text("what is written", content)
        return content.encode()
    return bytes(content) if isinstance(content, (bytes, bytearray, memoryview)) else None


def bytes_of(piece: Any) -> bytes:
    """A piece of content, which may be any kind of bytes."""
    try:
        return memoryview(piece).tobytes()
    except TypeError:
        raise TypeError(f"what is written comes in pieces of bytes, not {piece!r:.100}") from None


def cut(data: bytes) -> Iterator[bytes]:
    """Data in pieces."""
    return (data[i : i + PIECE] for i in range(0, len(data), PIECE))


def pieces(content: Content) -> Iterator[bytes]:
    """Content as it is read, without empty pieces."""
    try:
        source: Any = content
        read = getattr(source, "read", None)
        if read is None:
            for piece in source:
                if piece:
                    yield bytes_of(piece)  # text is none
            return
        while True:
            piece = read(PIECE)
            if not piece:
                return
            yield bytes_of(piece)
    except Exception as e:
        raise SourceFailed(e) from e


async def apieces(content: AsyncContent) -> AsyncIterator[bytes]:
    """Content as it is read, without empty pieces. What would block is read in a thread."""
    if isinstance(content, AsyncIterable):
        try:
            async for piece in content:
                if piece:
                    yield bytes_of(piece)
        except Exception as e:
            raise SourceFailed(e) from e
        return
    source = pieces(content)
    while True:
        read = await asyncio.get_running_loop().run_in_executor(None, next, source, b"")
        if not read:
            return
        yield read


def workspace_path(name: str, rest: str = "") -> str:
    """The path of a workspace, or of something in it."""
    return "api/workspaces/" + _wire.part("the name of a workspace", name) + rest


def process_path(workspace: str, process: str, action: str = "") -> str:
    """The path of a process."""
    return workspace_path(workspace, "/processes/" + _wire.part("the id of a process", process) + action)


def workspace_query(labels: Optional[Mapping[str, str]], owner: str) -> Dict[str, Union[str, List[str]]]:
    """Which workspaces are listed."""
    query: Dict[str, Union[str, List[str]]] = {}
    if labels:
        query["label"] = [f"{name}={value}" if value else name for name, value in labels.items()]
    if owner:
        query["owner"] = owner
    return query


def workspace_body(
    name: str, folder: Optional[str], keep_folder: bool, env: Optional[Mapping[str, str]], pass_env: Optional[Sequence[str]],
    labels: Optional[Mapping[str, str]], limits: Optional[Mapping[str, float]], isolation: Optional[Mapping[str, Any]],
    quota: int, end_in: float, idle_end: float, owner: str, total: Optional[Mapping[str, float]] = None,
) -> Dict[str, Any]:
    """A request for a workspace."""
    workspace_path(name)
    body: Dict[str, Any] = {"name": name}
    for key, value in (
        ("folder", folder), ("keep_folder", keep_folder), ("env", env and dict(env)), ("labels", labels and dict(labels)),
        ("limits", limits and dict(limits)), ("total", total and dict(total)), ("isolation", isolation and dict(isolation)), ("quota_bytes", quota), ("owner", owner),
        ("lifetime", {k: v for k, v in (("end_in_seconds", end_in), ("idle_end_seconds", idle_end)) if v}),
    ):
        if value:
            body[key] = value
    if pass_env is not None:
        body["pass"] = list(pass_env)
    return body


def process_body(
    args: Sequence[str], env: Optional[Mapping[str, str]], cwd: str, input: bool, terminal: Optional[Tuple[int, int]],
    timeout: Optional[float], labels: Optional[Mapping[str, str]], keep: int,
) -> Dict[str, Any]:
    """A request for a process."""
    if isinstance(args, str):
        raise TypeError('args is a list, such as ["ls", "-l"]: no shell is in between')
    body: Dict[str, Any] = {"args": list(args)}
    if timeout is not None:
        bound = _wire.seconds(timeout, "None")
        if not math.isinf(bound):
            body["timeout_seconds"] = bound
    for key, value in (("env", env and dict(env)), ("cwd", cwd), ("input", input), ("labels", labels and dict(labels)), ("keep_bytes", keep)):
        if value:
            body[key] = value
    if terminal is not None:
        body["terminal"] = {"columns": terminal[0], "rows": terminal[1]}
    return body


def list_query(path: str, depth: int, most: int) -> Dict[str, str]:
    """What is listed."""
    return {"path": path or ".", "depth": str(depth), **({"most": str(most)} if most else {})}


def write_headers(new: bool, if_match: str) -> Dict[str, str]:
    """What has to be so for a file to be written."""
    return {**BYTES, **({"If-None-Match": "*"} if new else {}), **({"If-Match": if_match} if if_match else {})}


def tree(folder: Union[str, "os.PathLike[str]"]) -> Iterator[Tuple[str, Optional[pathlib.Path], str]]:
    """What is in a folder of this machine: path, file (None: a directory) and mode of each.

    Symbolic links and what is neither a file nor a directory are left out.
    """
    root = pathlib.Path(folder)
    if not root.is_dir():
        raise NotADirectoryError(f"{root} is no directory")

    def failed(e: OSError) -> None:
        raise e

    for at, below, names in os.walk(root, onerror=failed):
        below[:] = sorted(d for d in below if not pathlib.Path(at, d).is_symlink())
        inside = pathlib.Path(at).relative_to(root)
        for name in below:
            yield (inside / name).as_posix(), None, ""
        for name in sorted(names):
            file = pathlib.Path(at, name)
            if file.is_file() and not file.is_symlink():
                yield (inside / name).as_posix(), file, f"{file.stat().st_mode & 0o777:03o}"


def below(path: str, name: str) -> str:
    """The path of something in a directory of a workspace."""
    return name if path in ("", ".") else f"{path.rstrip('/')}/{name}"


class Printing(_wire.Numbered[ProcessEvent]):
    """The events of a process."""

    last = "end"
    gap = "gap"

    def __init__(self, workspace: str, process: str, after: int) -> None:
        super().__init__(process_path(workspace, process, "/events"), f"process {process}", after)

    def event(self, raw: Mapping[str, Any]) -> ProcessEvent:
        return process_event_of(raw)


class Reading:
    """What a file or an artifact holds, over several connections: it goes on where one broke."""

    def __init__(self, what: str, kept: str = "If-Match", told: str = "ETag") -> None:
        self.what = what
        self._kept, self._told = kept, told
        self._at = 0
        self._end: Optional[int] = None
        self._version = ""

    @property
    def done(self) -> bool:
        return self._at == self._end

    @property
    def next(self) -> int:
        """How many bytes are worth asking for."""
        return min(PIECE, (self._end or 0) - self._at)

    def headers(self) -> Dict[str, str]:
        """What is asked for."""
        return {"Range": f"bytes={self._at}-", self._kept: self._version} if self._version else {}

    def begin(self, status: int, header: _wire.Header) -> bool:
        """An answer; False: it says no."""
        if status == 412:
            raise ServerError(status, "changed", "the file has changed while it was read", "read it again from the start")
        if status not in (200, 206):
            return False
        if not self._version:
            length = header("Content-Length")
            self._version = header(self._told) or ""
            self._end = int(length) if length and length.isdigit() else None
        if self._end is None or not self._version or status != (206 if self._at else status):
            raise CoppiceError("the server's answer is no file")
        return True

    def take(self, piece: bytes) -> bytes:
        """A piece of it."""
        self._at += len(piece)
        return piece


def closed(process: Mapping[str, Any]) -> Optional[ServerError]:
    """Why a process takes no input; None: it was started without."""
    if not process.get("input") and not process.get("terminal"):
        return None
    return ServerError(409, "no_input", "the input of the process is closed")


def artifact_request(artifact: Union[str, int]) -> Tuple[str, Reading]:
    """Where an artifact is, and how it is read."""
    number = str(artifact)
    number = number[len(ARTIFACT):] if number.startswith(ARTIFACT) else number
    if isinstance(artifact, bool) or not (number.isascii() and number.isdigit()):
        raise ValueError(f"{artifact!r:.100} names no artifact: one is like {ARTIFACT}0")
    return f"api/artifacts/{int(number)}", Reading(f"read {ARTIFACT}{int(number)}", "If-Unmodified-Since", "Last-Modified")
