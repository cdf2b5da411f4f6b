"""Workspaces, their files and their processes, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _asks, _wire
from ._errors import CoppiceError, ServerError
from ._places import (
    Exit, File, Listing, Output, ProcessEvent, ProcessInfo, ProcessResult, WorkspaceInfo, exit_of, file_of, listing_of, process_of, workspace_of,
)
from ._async_session import AsyncSession
from ._within import or_undone

if TYPE_CHECKING:
    from ._async import AsyncClient


class AsyncWorkspace:
    """A workspace: what sessions, files and processes belong to together.

    ``Client.create_workspace`` and ``Client.workspace`` make it.
    """

    def __init__(self, client: AsyncClient, name: str) -> None:
        _asks.workspace_path(name)
        self._client = client
        #: Its name.
        self.name = name
        #: Its files.
        self.files = AsyncFiles(client, name)

    def __repr__(self) -> str:
        return f"<coppice.AsyncWorkspace {self.name!r}>"

    async def __aenter__(self) -> AsyncWorkspace:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def info(self) -> WorkspaceInfo:
        """What it is. ServerError has the code ``not_found`` or ``ended`` when it is not there."""
        return workspace_of(await self._client._ask("GET", _asks.workspace_path(self.name)))

    async def end(self) -> None:
        """End it with all that is in it. One that has ended already, or is not there, is fine."""
        try:
            await self._client._ask("DELETE", _asks.workspace_path(self.name))
        except ServerError as e:
            if e.code != "not_found":  # as a node of a fleet says that has never had it
                raise
        self._client._had.ended(self.name)

    def session(self, name: str, *, cwd: Optional[str] = None, owner: str = "", kernel: str = "") -> AsyncSession:
        """A session in it: as ``Client.session``; ``cwd`` is relative to its folder."""
        return AsyncSession(self._client, name, cwd, owner, self.name, kernel)

    async def exec(
        self, args: Sequence[str], *, input: Optional[_asks.AsyncContent] = None, env: Optional[Mapping[str, str]] = None, cwd: str = "",
        timeout: Optional[float] = None,
    ) -> ProcessResult:
        """Run a program to its end, and return what it printed and how it ended.

        ``args`` are the program and its arguments; no shell is in between. ``input`` is
        its standard input; None: it has none. ``env`` is set on top of the workspace's,
        ``cwd`` is relative to its folder, ``timeout`` is in seconds. All that it prints
        is kept in memory: ``start`` is for much of it. Whatever is raised here ends it.
        """
        if input is not None:
            _asks.check_content(input, True)
        process = await self.start(args, env=env, cwd=cwd, timeout=timeout, input=input is not None)
        output, feeding, events = Output(), _Feeding(process, input), process.events()
        try:
            async for event in events:
                output.take(event)
        except BaseException:
            with contextlib.suppress(CoppiceError):  # what made us leave is more important
                await process.end(0)
            raise
        finally:
            await events.aclose()
            await feeding.end()
        return output.result()

    async def start(
        self, args: Sequence[str], *, env: Optional[Mapping[str, str]] = None, cwd: str = "", input: bool = False,
        terminal: Optional[Tuple[int, int]] = None, timeout: Optional[float] = None, labels: Optional[Mapping[str, str]] = None, keep: int = 0,
    ) -> AsyncProcess:
        """Start a program, and return without waiting for its end.

        ``input`` gives it an input to write to, ``terminal`` a terminal of so many columns
        and rows, which has one too. ``keep`` is how many bytes of output are kept for
        readers who come later, 0: 64 MiB. Else as ``exec``.
        """
        body = _asks.process_body(args, env, cwd, input, terminal, timeout, labels, keep)

        async def start(left: Callable[[], bool]) -> AsyncProcess:
            made, header = await self._client._told("POST", _asks.workspace_path(self.name, "/processes"), body, again=False, headers=_wire.WHICH, left=left)
            self._client._lives.started(self.name, made["id"], header)
            return AsyncProcess(self._client, self.name, made["id"])

        return await or_undone(start, lambda process: process.end(0))

    def process(self, id: str) -> AsyncProcess:
        """A process by its id. Nothing is asked of the server."""
        return AsyncProcess(self._client, self.name, id)

    async def processes(self) -> List[ProcessInfo]:
        """Those that run, and the last that have ended."""
        return [process_of(p) for p in (await self._client._ask("GET", _asks.workspace_path(self.name, "/processes")))["processes"]]


class AsyncProcess:
    """A process of a workspace. ``Workspace.start`` makes it; leaving a ``with`` ends it."""

    def __init__(self, client: AsyncClient, workspace: str, id: str) -> None:
        _asks.process_path(workspace, id)
        self._client = client
        #: The workspace that it is of, and its name there.
        self.workspace = workspace
        self.id = id

    def __repr__(self) -> str:
        return f"<coppice.AsyncProcess {self.id!r}>"

    async def __aenter__(self) -> AsyncProcess:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def info(self) -> ProcessInfo:
        """What it is, and how it ended when it has."""
        return process_of(await self._ask("GET", ""))

    async def wait(self) -> Exit:
        """Wait for its end."""
        while True:
            exit = exit_of((await self._ask("GET", "", query={"wait": "30"}, waits=True)).get("exit"))
            if exit:
                return exit

    async def events(self, after: int = 0) -> AsyncGenerator[ProcessEvent, None]:
        """What it prints after the event of this number, until its end; leaving the loop
        leaves it running. While it is read, a process that prints faster waits."""
        events = self._client._events(_asks.Printing(self.workspace, self.id, after))
        try:
            async for event in events:
                yield event
        except ServerError as e:
            raise await self._client._lost(self.workspace, self.id, e) from None
        finally:
            await events.aclose()

    async def write(self, content: _asks.AsyncContent) -> None:
        """Write to its input, and wait until it has taken all."""
        data = _asks.known(content, True)
        try:
            async for piece in _asks.apieces(content if data is None else [data]):
                while piece:
                    taken = (await self._fed("/input", data=piece[: _asks.INPUT], headers=_asks.BYTES))["taken"]
                    piece = piece[taken:]
        except _asks.SourceFailed as e:
            raise e.cause

    async def close_input(self) -> None:
        """End its input; a terminal gets what Ctrl-D is there."""
        await self._fed("/close")

    async def signal(self, name: str) -> None:
        """Send a signal to it and its group: ``INT``, ``TERM``, ``KILL``, ``HUP``, ``USR1``, …"""
        await self._ask("POST", "/signal", {"signal": name}, again=False)

    async def resize(self, columns: int, rows: int) -> None:
        """Give its terminal another size."""
        await self._ask("POST", "/resize", {"columns": columns, "rows": rows})

    async def end(self, grace: float = 2) -> Exit:
        """End it and its group, by SIGTERM and after so many seconds (at most 60) by
        SIGKILL, and return how it ended. One that has ended already is fine."""
        exit = exit_of((await self._ask("DELETE", "", query={"grace": f"{grace:g}"}))["exit"])
        assert exit  # it has ended
        return exit

    async def _ask(self, method: str, action: str, body: Any = None, **kwargs: Any) -> Any:
        try:
            return await self._client._ask(method, _asks.process_path(self.workspace, self.id, action), body, **kwargs)
        except ServerError as e:
            raise await self._client._lost(self.workspace, self.id, e) from None

    async def _fed(self, action: str, **kwargs: Any) -> Any:
        """Ask something about its input."""
        try:
            return await self._ask("POST", action, again=False, **kwargs)
        except ServerError as e:
            raise _asks.closed((await self._ask("GET", ""))) or e if e.code == "no_input" else e from None


class _Feeding:
    """Writes the input of a process while its output is read."""

    def __init__(self, process: AsyncProcess, content: Optional[_asks.AsyncContent]) -> None:
        self._process = process
        self._error: Optional[Exception] = None
        self._task = None if content is None else asyncio.ensure_future(self._feed(content))

    async def _feed(self, content: _asks.AsyncContent) -> None:
        try:
            await self._process.write(content)
            await self._process.close_input()
        except Exception as e:
            if isinstance(e, ServerError) and e.code in _asks.DEAF:
                return  # it does not have to take all
            self._error = e
            with contextlib.suppress(CoppiceError):  # it would wait for more
                await self._process.end(0)

    async def end(self) -> None:
        """Raise what it ended with; called when the process has ended."""
        if self._task and not self._task.done():
            self._task.cancel()  # no one needs the rest
            await asyncio.wait([self._task])
        if self._error:
            raise self._error


class AsyncFiles:
    """The files of a workspace. Paths are relative to its folder, with slashes."""

    def __init__(self, client: AsyncClient, workspace: str) -> None:
        self._client = client
        self._workspace = workspace

    async def read(self, path: str) -> bytes:
        """What a file holds."""
        return b"".join([piece async for piece in self.stream(path)])

    async def read_text(self, path: str, encoding: str = "utf-8") -> str:
        """What a file holds, as text."""
        return (await self.read(path)).decode(encoding)

    def stream(self, path: str) -> AsyncGenerator[bytes, None]:
        """What a file holds, piece by piece: as ``Files.stream``."""
        return self._client._content(_asks.workspace_path(self._workspace, "/files"), {"path": path}, _asks.Reading(f"read {path}"))

    async def write(self, path: str, content: _asks.AsyncContent, *, mode: str = "", new: bool = False, if_match: str = "") -> File:
        """Make content what a file holds, whole or not at all; directories above it are made.

        ``content`` is text (as UTF-8), bytes, an open binary file, or pieces of bytes,
        which are read while they are sent. ``mode`` are the permission bits of a new
        file, in octal; default: 644. ``new`` refuses to replace a file; ``if_match`` is
        the ``etag`` of the one that may be replaced: ServerError has the code ``changed``
        when it is another one by now.
        """
        data = _asks.known(content, True)
        query = {"path": path, **({"mode": mode} if mode else {})}
        source = _asks.apieces(content) if data is None else data
        again = data is not None and not new and not if_match
        return file_of(await self._ask("PUT", "", data=source, headers=_asks.write_headers(new, if_match), query=query, again=again))

    async def list(self, path: str = ".", *, depth: int = 1, most: int = 0) -> Listing:
        """What a directory ("": the folder) holds, ``depth`` levels of it (-1: all), at most so many entries
        (0: 100,000, which is the most)."""
        return listing_of(await self._ask("GET", "/list", query=_asks.list_query(path, depth, most), waits=True))

    async def stat(self, path: str) -> File:
        """What stands at a path; a symbolic link itself."""
        return file_of(await self._ask("GET", "/stat", query={"path": path}))

    async def make(self, path: str) -> File:
        """Make a directory, and those above it. One that is there is fine."""
        return file_of(await self._ask("POST", "/make", {"path": path}))

    async def move(self, path: str, to: str, *, replace: bool = False) -> File:
        """Give something another name. ``replace`` lets a file take the place of another."""
        return file_of(await self._ask("POST", "/move", {"from": path, "to": to, "replace": replace}, again=False))

    async def remove(self, path: str, *, all: bool = False) -> None:
        """Remove what stands at a path; a directory that is not empty only with ``all``."""
        await self._ask("DELETE", "", query={"path": path, **({"all": "true"} if all else {})}, again=False)

    async def upload(self, folder: Union[str, "os.PathLike[str]"], path: str = ".") -> Tuple[File, ...]:
        """Copy what is in a folder of this machine below a directory, file by file.

        Permission bits stay. Symbolic links are left out. What is there and not in the
        folder stays.
        """
        made = []
        for name, file, mode in _asks.tree(folder):
            if file is None:
                made.append(await self.make(_asks.below(path, name)))
            else:
                with file.open("rb") as f:
                    made.append(await self.write(_asks.below(path, name), f, mode=mode))
        return tuple(made)

    def _ask(self, method: str, action: str, body: Any = None, **kwargs: Any) -> Any:
        return self._client._ask(method, _asks.workspace_path(self._workspace, "/files" + action), body, **kwargs)
