"""Workspaces, their files and their processes, for programs without an event loop."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, Generator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _asks, _wire
from ._errors import CoppiceError, ServerError
from ._places import (
    Exit, File, Listing, Output, ProcessEvent, ProcessInfo, ProcessResult, WorkspaceInfo, exit_of, file_of, listing_of, process_of, workspace_of,
)
from ._sync_session import Session

if TYPE_CHECKING:
    from ._sync import Client


class Workspace:
    """A workspace: what sessions, files and processes belong to together.

    ``Client.create_workspace`` and ``Client.workspace`` make it.
    """

    def __init__(self, client: Client, name: str) -> None:
        _asks.workspace_path(name)
        self._client = client
        #: Its name.
        self.name = name
        #: Its files.
        self.files = Files(client, name)

    def __repr__(self) -> str:
        return f"<coppice.Workspace {self.name!r}>"

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def info(self) -> WorkspaceInfo:
        """What it is. ServerError has the code ``not_found`` or ``ended`` when it is not there."""
        return workspace_of(self._client._ask("GET", _asks.workspace_path(self.name)))

    def end(self) -> None:
        """End it with all that is in it. One that has ended already, or is not there, is fine."""
        try:
            self._client._ask("DELETE", _asks.workspace_path(self.name))
        except ServerError as e:
            if e.code != "not_found":  # as a node of a fleet says that has never had it
                raise
        self._client._had.ended(self.name)

    def session(self, name: str, *, cwd: Optional[str] = None, owner: str = "", kernel: str = "") -> Session:
        """A session in it: as ``Client.session``; ``cwd`` is relative to its folder."""
        return Session(self._client, name, cwd, owner, self.name, kernel)

    def exec(
        self, args: Sequence[str], *, input: Optional[_asks.Content] = None, env: Optional[Mapping[str, str]] = None, cwd: str = "",
        timeout: Optional[float] = None,
    ) -> ProcessResult:
        """Run a program to its end, and return what it printed and how it ended.

        ``args`` are the program and its arguments; no shell is in between. ``input`` is
        its standard input; None: it has none. ``env`` is set on top of the workspace's,
        ``cwd`` is relative to its folder, ``timeout`` is in seconds. All that it prints
        is kept in memory: ``start`` is for much of it. Whatever is raised here ends it.
        """
        if input is not None:
            _asks.check_content(input)
        process = self.start(args, env=env, cwd=cwd, timeout=timeout, input=input is not None)
        output, feeding = Output(), _Feeding(process, input)
        try:
            for event in process.events():
                output.take(event)
        except BaseException:
            with contextlib.suppress(CoppiceError):  # what made us leave is more important
                process.end(0)
            raise
        finally:
            feeding.check()
        return output.result()

    def start(
        self, args: Sequence[str], *, env: Optional[Mapping[str, str]] = None, cwd: str = "", input: bool = False,
        terminal: Optional[Tuple[int, int]] = None, timeout: Optional[float] = None, labels: Optional[Mapping[str, str]] = None, keep: int = 0,
    ) -> Process:
        """Start a program, and return without waiting for its end.

        ``input`` gives it an input to write to, ``terminal`` a terminal of so many columns
        and rows, which has one too. ``keep`` is how many bytes of output are kept for
        readers who come later, 0: 64 MiB. Else as ``exec``.
        """
        body = _asks.process_body(args, env, cwd, input, terminal, timeout, labels, keep)
        made, header = self._client._told("POST", _asks.workspace_path(self.name, "/processes"), body, again=False, headers=_wire.WHICH)
        self._client._lives.started(self.name, made["id"], header)
        return Process(self._client, self.name, made["id"])

    def process(self, id: str) -> Process:
        """A process by its id. Nothing is asked of the server."""
        return Process(self._client, self.name, id)

    def processes(self) -> List[ProcessInfo]:
        """Those that run, and the last that have ended."""
        return [process_of(p) for p in self._client._ask("GET", _asks.workspace_path(self.name, "/processes"))["processes"]]


class Process:
    """A process of a workspace. ``Workspace.start`` makes it; leaving a ``with`` ends it."""

    def __init__(self, client: Client, workspace: str, id: str) -> None:
        _asks.process_path(workspace, id)
        self._client = client
        #: The workspace that it is of, and its name there.
        self.workspace = workspace
        self.id = id

    def __repr__(self) -> str:
        return f"<coppice.Process {self.id!r}>"

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def info(self) -> ProcessInfo:
        """What it is, and how it ended when it has."""
        return process_of(self._ask("GET", ""))

    def wait(self) -> Exit:
        """Wait for its end."""
        while True:
            exit = exit_of(self._ask("GET", "", query={"wait": "30"}, waits=True).get("exit"))
            if exit:
                return exit

    def events(self, after: int = 0) -> Generator[ProcessEvent, None, None]:
        """What it prints after the event of this number, until its end; leaving the loop
        leaves it running. While it is read, a process that prints faster waits."""
        try:
            yield from self._client._events(_asks.Printing(self.workspace, self.id, after))
        except ServerError as e:
            raise self._client._lost(self.workspace, self.id, e) from None

    def write(self, content: _asks.Content) -> None:
        """Write to its input, and wait until it has taken all."""
        data = _asks.known(content)
        try:
            for piece in [data] if data is not None else _asks.pieces(content):
                while piece:
                    taken = self._fed("/input", data=piece[: _asks.INPUT], headers=_asks.BYTES)["taken"]
                    piece = piece[taken:]
        except _asks.SourceFailed as e:
            raise e.cause

    def close_input(self) -> None:
        """End its input; a terminal gets what Ctrl-D is there."""
        self._fed("/close")

    def signal(self, name: str) -> None:
        """Send a signal to it and its group: ``INT``, ``TERM``, ``KILL``, ``HUP``, ``USR1``, …"""
        self._ask("POST", "/signal", {"signal": name}, again=False)

    def resize(self, columns: int, rows: int) -> None:
        """Give its terminal another size."""
        self._ask("POST", "/resize", {"columns": columns, "rows": rows})

    def end(self, grace: float = 2) -> Exit:
        """End it and its group, by SIGTERM and after so many seconds (at most 60) by
        SIGKILL, and return how it ended. One that has ended already is fine."""
        exit = exit_of(self._ask("DELETE", "", query={"grace": f"{grace:g}"})["exit"])
        assert exit  # it has ended
        return exit

    def _ask(self, method: str, action: str, body: Any = None, **kwargs: Any) -> Any:
        try:
            return self._client._ask(method, _asks.process_path(self.workspace, self.id, action), body, **kwargs)
        except ServerError as e:
            raise self._client._lost(self.workspace, self.id, e) from None

    def _fed(self, action: str, **kwargs: Any) -> Any:
        """Ask something about its input."""
        try:
            return self._ask("POST", action, again=False, **kwargs)
        except ServerError as e:
            raise _asks.closed(self._ask("GET", "")) or e if e.code == "no_input" else e from None


class _Feeding:
    """Writes the input of a process while its output is read."""

    def __init__(self, process: Process, content: Optional[_asks.Content]) -> None:
        self._process = process
        self._content = content
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._feed, daemon=True)
        if content is not None:
            self._thread.start()

    def _feed(self) -> None:
        try:
            assert self._content is not None
            self._process.write(self._content)
            self._process.close_input()
        except BaseException as e:
            if isinstance(e, ServerError) and e.code in _asks.DEAF:
                return  # it does not have to take all
            self._error = e
            with contextlib.suppress(CoppiceError):  # it would wait for more
                self._process.end(0)

    def check(self) -> None:
        """Raise what it ended with; called when the process has ended."""
        if self._content is not None and _asks.known(self._content) is not None:
            self._thread.join()  # else it may wait for content that no one needs any more
        if self._error:
            raise self._error


class Files:
    """The files of a workspace. Paths are relative to its folder, with slashes."""

    def __init__(self, client: Client, workspace: str) -> None:
        self._client = client
        self._workspace = workspace

    def read(self, path: str) -> bytes:
        """What a file holds."""
        return b"".join(self.stream(path))

    def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """What a file holds, as text."""
        return self.read(path).decode(encoding)

    def stream(self, path: str) -> Generator[bytes, None, None]:
        """What a file holds, piece by piece. A connection that breaks is made again from
        where it broke; ServerError has the code ``changed`` when the file was meanwhile."""
        return self._client._content(_asks.workspace_path(self._workspace, "/files"), {"path": path}, _asks.Reading(f"read {path}"))

    def write(self, path: str, content: _asks.Content, *, mode: str = "", new: bool = False, if_match: str = "") -> File:
        """Make content what a file holds, whole or not at all; directories above it are made.

        ``content`` is text (as UTF-8), bytes, an open binary file, or pieces of bytes,
        which are read while they are sent. ``mode`` are the permission bits of a new
        file, in octal; default: 644. ``new`` refuses to replace a file; ``if_match`` is
        the ``etag`` of the one that may be replaced: ServerError has the code ``changed``
        when it is another one by now.
        """
        data = _asks.known(content)
        query = {"path": path, **({"mode": mode} if mode else {})}
        source = _asks.pieces(content) if data is None else data
        again = data is not None and not new and not if_match
        return file_of(self._ask("PUT", "", data=source, headers=_asks.write_headers(new, if_match), query=query, again=again))

    def list(self, path: str = ".", *, depth: int = 1, most: int = 0) -> Listing:
        """What a directory ("": the folder) holds, ``depth`` levels of it (-1: all), at most so many entries
        (0: 100,000, which is the most)."""
        return listing_of(self._ask("GET", "/list", query=_asks.list_query(path, depth, most), waits=True))

    def stat(self, path: str) -> File:
        """What stands at a path; a symbolic link itself."""
        return file_of(self._ask("GET", "/stat", query={"path": path}))

    def make(self, path: str) -> File:
        """Make a directory, and those above it. One that is there is fine."""
        return file_of(self._ask("POST", "/make", {"path": path}))

    def move(self, path: str, to: str, *, replace: bool = False) -> File:
        """Give something another name. ``replace`` lets a file take the place of another."""
        return file_of(self._ask("POST", "/move", {"from": path, "to": to, "replace": replace}, again=False))

    def remove(self, path: str, *, all: bool = False) -> None:
        """Remove what stands at a path; a directory that is not empty only with ``all``."""
        self._ask("DELETE", "", query={"path": path, **({"all": "true"} if all else {})}, again=False)

    def upload(self, folder: Union[str, "os.PathLike[str]"], path: str = ".") -> Tuple[File, ...]:
        """Copy what is in a folder of this machine below a directory, file by file.

        Permission bits stay. Symbolic links are left out. What is there and not in the
        folder stays.
        """
        made = []
        for name, file, mode in _asks.tree(folder):
            if file is None:
                made.append(self.make(_asks.below(path, name)))
            else:
                with file.open("rb") as f:
                    made.append(self.write(_asks.below(path, name), f, mode=mode))
        return tuple(made)

    def _ask(self, method: str, action: str, body: Any = None, **kwargs: Any) -> Any:
        return self._client._ask(method, _asks.workspace_path(self._workspace, "/files" + action), body, **kwargs)
