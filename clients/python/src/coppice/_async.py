"""The client for asyncio."""

from __future__ import annotations

import asyncio
import inspect
import ssl
from typing import Any, AsyncIterator, Awaitable, Callable, List, Mapping, Optional, Union

from . import _wire
from ._errors import ConnectionLost, CoppiceError, ServerError
from ._find import find
from ._http import request
from ._types import Code, Event, Result, SessionInfo, session_of


class AsyncClient:
    """The sessions of a running ``coppice serve``, for asyncio: as :class:`Client`.

    It belongs to no event loop: nothing is kept open between two requests.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, home: Optional[str] = None, patience: float = _wire.PATIENCE) -> None:
        if url is None:
            address, token, unix = find(home)
            self._at = _wire.Address(address, token, unix)
        else:
            self._at = _wire.Address(url, token or "")
        self._patience = patience
        self._tls = ssl.create_default_context() if self._at.tls else None

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._at.url

    async def close(self) -> None:
        """As ``Client.close``: the sessions stay."""

    def session(self, name: str, *, cwd: Optional[str] = None, owner: str = "") -> AsyncSession:
        """A session by its name: as ``Client.session``."""
        return AsyncSession(self, name, cwd, owner)

    async def sessions(self) -> List[SessionInfo]:
        """The sessions that have an interpreter."""
        return [session_of(s) for s in (await self._ask("GET", "api/sessions"))["sessions"]]

    async def health(self) -> Mapping[str, Any]:
        """How the server is: ``status``, ``version``, ``backend``, …"""
        answer: Mapping[str, Any] = await self._ask("GET", "api/health")
        return answer

    async def _ask(self, method: str, path: str, body: Any = None, *, query: Optional[Mapping[str, str]] = None, again: bool = True, timeout: float = _wire.ANSWER) -> Any:
        """One request; repeated, while the server is out of reach, when that changes nothing."""
        data, pause = _wire.encode(body), _wire.Pause(self._patience)
        while True:
            try:
                return await asyncio.wait_for(self._once(method, path, query, data), timeout)
            except (OSError, asyncio.TimeoutError) as e:
                if not again:
                    raise ConnectionLost(f"{method} {path}: {e or type(e).__name__}") from e
                await asyncio.sleep(pause.after(e, f"{method} {path}"))

    async def _once(self, method: str, path: str, query: Optional[Mapping[str, str]], data: Optional[bytes]) -> Any:
        response = await request(self._at, self._tls, method, self._at.target(path, query), self._at.headers(data), data)
        try:
            return _wire.decode(response.status, await response.read())
        finally:
            response.close()

    async def _events(self, execution: str) -> AsyncIterator[Event]:
        """The events of an execution, over as many connections as it takes."""
        seen, pause = _wire.Following(execution), _wire.Pause(self._patience)
        target = self._at.target(_wire.execution_path(execution, "/events"))
        while not seen.done:
            pause.begin()
            try:
                response = await asyncio.wait_for(request(self._at, self._tls, "GET", target, self._at.headers(None, seen.after), None), _wire.SILENCE)
                try:
                    if response.status == 204:  # nothing follows, and nothing will
                        break
                    if response.status != 200:
                        raise _wire.problem(response.status, await response.read(1 << 16))
                    parser, pieces = _wire.Parser(), response.pieces()
                    while not seen.done:
                        try:
                            piece = await asyncio.wait_for(pieces.__anext__(), _wire.SILENCE)
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
                await asyncio.sleep(pause.after(e, f"events of execution {execution} after {seen.after}"))
        if not seen.done:
            raise CoppiceError(f"execution {execution} has no result")


class AsyncSession:
    """A session of a server, for asyncio. ``AsyncClient.session`` makes it."""

    def __init__(self, client: AsyncClient, name: str, cwd: Optional[str], owner: str) -> None:
        _wire.session_path(name)
        self._client = client
        #: Its name.
        self.name = name
        #: Its working directory; None: the server's.
        self.cwd = cwd
        self._owner = owner

    def __repr__(self) -> str:
        return f"<coppice.AsyncSession {self.name!r}>"

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None,
        on_event: Optional[Callable[[Event], object]] = None, answer: Optional[Callable[[Event], Union[str, Awaitable[str]]]] = None,
    ) -> Result:
        """Run code, and return its result: as ``Session.run``; ``answer`` may be a coroutine.

        When the task that waits is cancelled, the code is.
        """
        events = self.stream(code, timeout=timeout, env=env, allow_stdin=answer is not None)
        try:
            async for event in events:
                if on_event:
                    on_event(event)
                if event.type == "input_request" and answer:
                    value = answer(event)
                    await self.input(event, await value if inspect.isawaitable(value) else str(value))
                result = event.result
                if result:
                    return result
        finally:
            await events.aclose()  # type: ignore[attr-defined]
        raise CoppiceError("the execution has no result")

    async def stream(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, allow_stdin: bool = False,
    ) -> AsyncIterator[Event]:
        """Run code, and yield each event while it happens: as ``Session.stream``.

        A loop that is left early should close it: ``async with contextlib.aclosing(…)``.
        """
        client = self._client
        body = _wire.execution_body(self.name, self.cwd, self._owner, code, timeout, env, allow_stdin)
        events = client._events(body["id"])
        ended = False
        try:
            try:
                await client._ask("POST", "api/executions", body)
            except ServerError:
                ended = True  # it never began
                raise
            async for event in events:
                ended = event.type == "final"
                yield event
        finally:
            await events.aclose()  # type: ignore[attr-defined]
            if not ended:
                try:
                    await client._ask("POST", _wire.execution_path(body["id"], "/cancel"), again=False, timeout=5)
                except CoppiceError:
                    pass  # what made us leave is more important

    async def input(self, question: Event, value: str) -> str:
        """Answer an ``input_request``: as ``Session.input``."""
        path, body = _wire.answer_body(question, value)
        return str((await self._client._ask("POST", path, body, again=False))["status"])

    async def fork(self, copies: int = 1) -> List[AsyncSession]:
        """Copy the session with all its variables: as ``Session.fork``."""
        made = await self._ask("POST", "/fork", {"copies": copies, **({"owner": self._owner} if self._owner else {})})
        return [AsyncSession(self._client, s["session"], s.get("cwd") or self.cwd, self._owner) for s in made["sessions"]]

    async def interrupt(self) -> None:
        """Stop what runs. The variables stay."""
        await self._ask("POST", "/interrupt")

    async def reset(self) -> None:
        """End the interpreter; the next call has a new one."""
        await self._ask("POST", "/reset")

    async def close(self) -> None:
        """End the session. What runs is cancelled. One that has ended already is fine."""
        try:
            await self._ask("DELETE", "")
        except ServerError as e:
            if e.status != 404:
                raise

    async def _ask(self, method: str, action: str, body: Any = None) -> Any:
        query = {"cwd": self.cwd} if self.cwd is not None else None
        return await self._client._ask(method, _wire.session_path(self.name, action), body, query=query, again=False)
