"""The client for asyncio."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, AsyncGenerator, AsyncIterator, Callable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _asks, _lives, _reach, _wire
from ._async_places import AsyncWorkspace
from ._asked import Asked
from ._async_session import AsyncSession
from ._epochs import Epochs
from ._errors import ConnectionLost, CoppiceError, ServerError, said
from ._http import Response, request
from ._places import WorkspaceInfo, workspace_of
from ._saved import SavedCheckpoint, drop_request, saved_of
from ._types import Checkpoint, SessionInfo, checkpoint_id, checkpoint_of, session_of
from ._where import Where
from ._within import attended, within


class AsyncClient:
    """The sessions and workspaces of a running ``coppice serve``, for asyncio: as :class:`Client`.

    It belongs to no event loop: nothing is kept open between two requests.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, home: Optional[str] = None, patience: float = _reach.PATIENCE) -> None:
        self._where = Where(url, token, home)
        self._patience, self._reach = patience, _reach.Reach(patience)
        self._epochs, self._lives, self._had, self._asked = Epochs(), _lives.Lives(), _lives.Sessions(), Asked()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._where.at.url

    async def close(self) -> None:
        """As ``Client.close``: the sessions stay."""

    def session(self, name: str, *, cwd: Optional[str] = None, owner: str = "", kernel: str = "") -> AsyncSession:
        """A session by its name: as ``Client.session``."""
        return AsyncSession(self, name, cwd, owner, kernel=kernel)

    def workspace(self, name: str) -> AsyncWorkspace:
        """A workspace that is there, by its name: as ``Client.workspace``."""
        return AsyncWorkspace(self, name)

    async def create_workspace(
        self, name: str, *, folder: Optional[str] = None, keep_folder: bool = False, env: Optional[Mapping[str, str]] = None,
        pass_env: Optional[Sequence[str]] = None, labels: Optional[Mapping[str, str]] = None, limits: Optional[Mapping[str, float]] = None,
        isolation: Optional[Mapping[str, Any]] = None, quota: int = 0, end_in: float = 0, idle_end: float = 0, owner: str = "",
        total: Optional[Mapping[str, float]] = None,
    ) -> AsyncWorkspace:
        """Make a workspace, or return the one that is there: as ``Client.create_workspace``."""
        body = _asks.workspace_body(name, folder, keep_folder, env, pass_env, labels, limits, isolation, quota, end_in, idle_end, owner, total)
        await self._ask("POST", "api/workspaces", body)
        return AsyncWorkspace(self, name)

    async def workspaces(self, *, labels: Optional[Mapping[str, str]] = None, owner: str = "") -> List[WorkspaceInfo]:
        """The workspaces that have not ended: as ``Client.workspaces``."""
        query = _asks.workspace_query(labels, owner)
        return [workspace_of(w) for w in (await self._ask("GET", "api/workspaces", query=query))["workspaces"]]

    async def checkpoints(self) -> List[Checkpoint]:
        """The checkpoints that the server keeps, the oldest first."""
        return [checkpoint_of(c) for c in (await self._ask("GET", "api/checkpoints"))["checkpoints"]]

    async def drop_checkpoint(self, checkpoint: Union[Checkpoint, str]) -> None:
        """End a checkpoint."""
        await self._ask("DELETE", "api/checkpoints/" + _wire.part("the id of a checkpoint", checkpoint_id(checkpoint)), again=False)

    async def saved_checkpoints(self) -> List[SavedCheckpoint]:
        """What sessions have saved on the server's disk, by workspace and name."""
        return [saved_of(c) for c in (await self._ask("GET", "api/saved-checkpoints"))["checkpoints"]]

    async def drop_saved_checkpoint(self, checkpoint: Union[SavedCheckpoint, str], *, workspace: str = "", owner: str = "") -> None:
        """Drop one from the server's disk; owner "": for no one in particular, who may drop any."""
        path, query = drop_request(checkpoint, workspace, owner)
        await self._ask("DELETE", path, query=query, again=False)

    async def sessions(self) -> List[SessionInfo]:
        """The sessions that have an interpreter."""
        return [session_of(s) for s in (await self._ask("GET", "api/sessions"))["sessions"]]

    async def health(self) -> Mapping[str, Any]:
        """How the server is: ``status``, ``version``, ``backend``, …"""
        answer: Mapping[str, Any] = await self._ask("GET", "api/health")
        return answer

    async def artifact(self, artifact: Union[str, int], encoding: str = "utf-8") -> str:
        """The whole text of an output that was too long for a result: as ``Client.artifact``."""
        return b"".join([piece async for piece in self.stream_artifact(artifact)]).decode(encoding, "replace")

    def stream_artifact(self, artifact: Union[str, int]) -> AsyncGenerator[bytes, None]:
        """An output that was too long for a result, piece by piece: as ``Client.stream_artifact``."""
        path, seen = _asks.artifact_request(artifact)
        return self._content(path, None, seen)

    async def _open(
        self, method: str, path: str, query: Optional[_wire.Query], body: Union[bytes, AsyncIterator[bytes], None], after: int = -1,
        headers: Optional[Mapping[str, str]] = None, begin: Optional[Callable[[_wire.Address], None]] = None,
    ) -> Response:
        """Make a request, of which begin is told. When nothing was done, and the server is elsewhere by now, it is made there."""
        while True:
            at = self._where.at
            if begin:
                begin(at)
            try:
                head, tls = at.headers(body, after, headers), self._where.tls if at.tls else None
                response = await request(at, tls, method, at.target(path, query), head, body, self._reach.answer)
            except _wire.NotSent:
                if not self._where.moved(at):
                    raise
                continue
            # Of what is read while it is sent, a part is gone.
            if response.status != 401 or not (body is None or isinstance(body, bytes)) or not self._where.moved(at):
                return response
            response.close()

    async def _once(
        self, method: str, path: str, query: Optional[_wire.Query] = None, data: Union[bytes, AsyncIterator[bytes], None] = None,
        headers: Optional[Mapping[str, str]] = None, begin: Optional[Callable[[_wire.Address], None]] = None,
        timeout: Optional[float] = None,
    ) -> Tuple[Any, _wire.Header]:
        """One request, and its answer. timeout is how long the server may say nothing; None: while it answers others."""
        exchange = self._exchange(method, path, query, data, headers, begin, timeout)
        return await (attended(exchange, self._alive, self._reach.ask) if timeout is None else exchange)

    async def _exchange(
        self, method: str, path: str, query: Optional[_wire.Query], data: Union[bytes, AsyncIterator[bytes], None],
        headers: Optional[Mapping[str, str]], begin: Optional[Callable[[_wire.Address], None]], timeout: Optional[float],
    ) -> Tuple[Any, _wire.Header]:
        # What is sent as it is takes as long as it takes.
        bound = _reach.ANSWER if timeout is None and (data is None or isinstance(data, bytes) and len(data) < _asks.PIECE) else timeout
        response = await within(self._open(method, path, query, data, -1, headers, begin), bound, Response.close)
        try:
            return _wire.decode(response.status, await response.read(each=timeout or _reach.ANSWER)), response.header
        finally:
            response.close()

    async def _alive(self) -> None:
        """See that the server answers; whatever it says."""
        with suppress(CoppiceError):
            await self._exchange("GET", "api/health", None, None, None, None, self._reach.answer)

    async def _ask(
        self, method: str, path: str, body: Any = None, *, query: Optional[_wire.Query] = None, again: bool = True,
        timeout: Optional[float] = None, waits: bool = False, data: Union[bytes, AsyncIterator[bytes], None] = None,
        headers: Optional[Mapping[str, str]] = None, patience: Optional[float] = None,
    ) -> Any:
        """One request; repeated, while the server is out of reach, when that changes nothing: as ``Client._ask``."""
        return (await self._told(method, path, body, query, again, timeout, waits, data, headers, patience))[0]

    async def _told(
        self, method: str, path: str, body: Any = None, query: Optional[_wire.Query] = None, again: bool = True, timeout: Optional[float] = None,
        waits: bool = False, data: Union[bytes, AsyncIterator[bytes], None] = None, headers: Optional[Mapping[str, str]] = None,
        patience: Optional[float] = None, left: Callable[[], bool] = lambda: False,
    ) -> Tuple[Any, _wire.Header]:
        """As _ask, with what stands above the answer. left says that no one wants it any more, and it need not be sent."""
        pause = _wire.Pause(self._patience if patience is None else patience)
        timeout = self._reach.limit(method, waits) if timeout is None else timeout
        data = _wire.encode(body) if data is None else data
        repeated = False
        while True:
            try:
                pause.begin()
                return await self._once(method, path, query, data, headers, timeout=timeout)
            except _asks.SourceFailed as e:
                raise e.cause
            except ServerError as e:
                e.repeated = repeated
                raise
            except (OSError, asyncio.TimeoutError) as e:
                sent = not isinstance(e, _wire.NotSent)
                repeated = repeated or sent
                if sent and not again:
                    raise ConnectionLost(f"{method} {path}: {said(e)}") from e
                await self._wait(pause, e, f"{method} {path}")
                if left():
                    raise ConnectionLost(f"{method} {path}: {said(e)}") from e

    async def _wait(self, pause: _wire.Pause, error: Exception, doing: str) -> None:
        """Wait before a try that follows one that failed, and look where the server is by then."""
        await asyncio.sleep(pause.after(error, doing))
        self._where.look()

    async def _begin(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> _wire.Header:
        """Begin an execution; repeated, while the server is out of reach, when it cannot begin twice."""
        pause, sent, data = _wire.Pause(self._patience), _wire.Sent(), _wire.encode(body)
        while True:
            try:
                pause.begin()
                return await self._try(str(body["id"]), data, headers, sent)
            except ServerError as e:
                e.repeated = sent.arrived
                raise
            except (OSError, asyncio.TimeoutError) as e:
                sent.fail(e)
                await self._wait(pause, e, "POST api/executions")

    async def _try(self, execution: str, data: Optional[bytes], headers: Mapping[str, str], sent: _wire.Sent) -> _wire.Header:
        """Try to begin an execution, where an attempt before may have arrived at another life of the server."""
        at_once = self._reach.answer
        life = sent.again(*await self._once("GET", "api/health", headers=_wire.WHICH, begin=sent.ask, timeout=at_once)) if sent.arrived else {}
        if life is not None:
            try:
                return (await self._once("POST", "api/executions", None, data, {**headers, **life}, begin=sent.begin))[1]
            except ServerError as e:
                if not life or e.code != "lost":
                    raise
                # It was another life by then, and nothing was done.
        try:
            return (await self._once("GET", _wire.execution_path(execution), headers=_wire.WHICH, timeout=at_once))[1]  # it may have been kept, or handed over
        except ServerError as e:
            raise _wire.unknown() if e.status == 404 else e from None

    async def _events(self, seen: _wire.Numbered[_wire.T]) -> AsyncGenerator[_wire.T, None]:
        """The events of an execution or a process, over as many connections as it takes."""
        pause = _wire.Pause(self._patience)
        while not seen.done:
            pause.begin()
            try:
                response = await within(self._open("GET", seen.path, None, None, seen.after), self._reach.answer, Response.close)
                try:
                    if response.status == 204:  # nothing follows, and nothing will
                        break
                    if response.status != 200:
                        raise seen.refused(_wire.problem(response.status, await response.read(1 << 16)))
                    parser, pieces = _wire.Parser(), response.pieces()
                    while not seen.done:
                        try:
                            piece = await within(pieces.__anext__(), self._reach.silence)
                        except StopAsyncIteration:
                            raise ConnectionError("the connection broke") from None
                        pause.alive()
                        for data in parser.feed(piece):
                            event = seen.take(data)
                            if event:
                                pause.progress()
                                yield event
                finally:
                    response.close()
            except (OSError, asyncio.TimeoutError) as e:
                await self._wait(pause, e, f"events of {seen.what} after {seen.after}")
        if not seen.done:
            seen.over()

    async def _content(self, path: str, query: Optional[_wire.Query], seen: _asks.Reading) -> AsyncGenerator[bytes, None]:
        """What a file or an artifact holds, over as many connections as it takes."""
        pause = _wire.Pause(self._patience)
        while not seen.done:
            pause.begin()
            try:
                response = await within(self._open("GET", path, query, None, -1, seen.headers()), self._reach.answer, Response.close)
                try:
                    if not seen.begin(response.status, response.header):
                        raise _wire.problem(response.status, await response.read(1 << 16, self._reach.answer))
                    pieces = response.pieces()
                    while not seen.done:
                        try:
                            piece = await within(pieces.__anext__(), self._reach.answer)
                        except StopAsyncIteration:
                            raise ConnectionError("the connection broke") from None
                        pause.progress()
                        yield seen.take(piece)
                finally:
                    response.close()
            except (OSError, asyncio.TimeoutError) as e:
                await self._wait(pause, e, seen.what)

    async def _lost(self, workspace: str, process: str, error: ServerError) -> ServerError:
        """What it means that a process is refused: as ``Client._lost``."""
        life = self._lives.of(workspace, process, error)
        return life and _lives.lost(life, (await self._told("GET", "api/health", headers=_wire.WHICH))[1]) or error
