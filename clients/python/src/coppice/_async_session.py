"""A session, for asyncio."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, AsyncGenerator, Awaitable, Callable, List, Mapping, Optional, Union

from . import _lives, _wire
from ._asked import Asking
from ._epochs import EPOCH
from ._errors import ConnectionLost, CoppiceError, NoServer, ServerError
from ._saved import Memory, SavedCheckpoint, memory_of, restore_body, save_body
from ._types import Checkpoint, Code, Event, Result, checkpoint_id, checkpoint_of
from ._within import or_undone

if TYPE_CHECKING:
    from ._async import AsyncClient


class AsyncSession:
    """A session of a server, for asyncio. ``AsyncClient.session`` makes it."""

    def __init__(self, client: AsyncClient, name: str, cwd: Optional[str], owner: str, workspace: str = "", kernel: str = "") -> None:
        _wire.session_path(name)
        self._client = client
        #: Its name.
        self.name = name
        #: Its working directory; None: the server's, or the folder of the workspace.
        self.cwd = cwd
        #: The workspace that it belongs to; "": none.
        self.workspace = workspace
        #: The kernelspec of its kernels; "": the one of sessions that name none.
        self.kernel = kernel
        self._owner = owner
        self._key = (name, cwd, workspace, kernel)

    def __repr__(self) -> str:
        return f"<coppice.AsyncSession {self.name!r}>"

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, call_env: Optional[Mapping[str, str]] = None,
        on_event: Optional[Callable[[Event], object]] = None, answer: Optional[Callable[[Event], Union[str, Awaitable[str]]]] = None,
    ) -> Result:
        """Run code, and return its result: as ``Session.run``; ``answer`` may be a coroutine.

        When the task that waits is cancelled, the code is. A result that comes while ``answer``
        is still asking is returned, and ``answer`` cancelled.
        """

        async def ask(question: Event) -> None:
            if answer:
                value = answer(question)
                await self.input(question, await value if inspect.isawaitable(value) else str(value))

        events = Asking(self.stream(code, timeout=timeout, env=env, call_env=call_env, allow_stdin=answer is not None), ask)
        try:
            while True:
                event = await events.next()
                if event is None:
                    raise CoppiceError("the execution has no result")
                if on_event:
                    on_event(event)
                if event.type == "input_request" and answer:
                    events.ask(event)
                result = event.result
                if result:
                    return result
        finally:
            await events.end()

    async def stream(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, call_env: Optional[Mapping[str, str]] = None,
        allow_stdin: bool = False,
    ) -> AsyncGenerator[Event, None]:
        """Run code, and yield each event while it happens: as ``Session.stream``.

        A loop that is left early should close it: ``async with contextlib.aclosing(…)``.
        """
        client, epochs = self._client, self._client._epochs
        body = _wire.execution_body(self.name, self.cwd, self.workspace, self._owner, code, timeout, env, call_env, allow_stdin, self.kernel)
        events = client._events(_wire.Following(body["id"]))
        ended, leaving = False, 5
        client._asked.follow(body["id"])
        try:
            try:
                says = {**_wire.WHICH, **epochs.headers(self._key)}
                try:
                    header = await client._begin(body, says)
                except ServerError as e:
                    if not epochs.goes_on(self._key, says, e):
                        raise
                    header = await client._begin(body, {**_wire.WHICH, **epochs.headers(self._key)})
                epochs.saw(self._key, header(EPOCH))
            except (ServerError, NoServer, TypeError, ValueError):
                ended = True  # it never began, or is gone
                raise
            async for event in events:
                if client._asked.again(event):
                    continue
                ended = event.type == "final"
                yield client._had.result(self._key, _lives.of_server(header), event) if ended else event
        except ConnectionLost:
            leaving = 1  # it will hardly answer, but may read on
            raise
        finally:
            try:
                await events.aclose()
                if not ended:
                    await client._ask("POST", _wire.execution_path(body["id"], "/cancel"), again=False, timeout=leaving, patience=0)
            except CoppiceError:
                pass  # what made us leave is more important
            finally:
                client._asked.leave(body["id"])  # until now an answer may be under way

    async def input(self, question: Event, value: str) -> str:
        """Answer an ``input_request``: as ``Session.input``."""
        path, body = _wire.answer_body(question, value)
        asked = self._client._asked
        try:
            told = await self._client._ask("POST", path, body)  # it is taken once
        except ServerError as e:
            raise asked.refused(question, e) from None
        return asked.answered(question, str(told["status"]))

    async def fork(self, copies: int = 1) -> List[AsyncSession]:
        """Copy the session with all its variables: as ``Session.fork``."""

        async def fork(left: Callable[[], bool]) -> List[AsyncSession]:
            made = await self._ask("POST", "/fork", {"copies": copies, **({"owner": self._owner} if self._owner else {})}, left)
            return [AsyncSession(self._client, s["session"], s.get("cwd") or self.cwd, self._owner, self.workspace, self.kernel) for s in made["sessions"]]

        async def close(made: List[AsyncSession]) -> None:
            for session in made:
                await session.close()

        return await or_undone(fork, close)

    async def checkpoint(self) -> Checkpoint:
        """Keep the state as it is now, for ``rewind``: as ``Session.checkpoint``."""

        async def keep(left: Callable[[], bool]) -> Checkpoint:
            return checkpoint_of(await self._ask("POST", "/checkpoint", None, left))

        return await or_undone(keep, self._client.drop_checkpoint)

    async def rewind(self, checkpoint: Union[Checkpoint, str]) -> None:
        """Go back to the state of a checkpoint, which stays: as ``Session.rewind``."""
        await self._ask("POST", "/rewind", {"checkpoint": checkpoint_id(checkpoint)})

    async def save(self, name: str, *, lossy: bool = False, replace: bool = False) -> Memory:
        """Keep the variables on the server's disk under a name: as ``Session.save``."""
        return memory_of(await self._ask("POST", "/save", save_body(name, self._owner, lossy, replace)))

    async def restore(self, checkpoint: Union[SavedCheckpoint, str]) -> Memory:
        """Go on from what ``save`` has kept: as ``Session.restore``."""
        return memory_of(await self._ask("POST", "/restore", restore_body(checkpoint, self._owner)))

    async def interrupt(self) -> None:
        """Stop what runs. The variables stay."""
        await self._ask("POST", "/interrupt")

    async def reset(self) -> None:
        """End the interpreter; the next call has a new one."""
        await self._ask("POST", "/reset")
        self._client._had.forget(self._key)

    async def close(self) -> None:
        """End the session. What runs is cancelled. One that has ended already is fine."""
        try:
            await self._ask("DELETE", "")
        except ServerError as e:
            if e.status != 404:
                raise
        self._client._epochs.forget(self._key)
        self._client._had.forget(self._key)

    async def _ask(self, method: str, action: str, body: Any = None, left: Callable[[], bool] = lambda: False) -> Any:
        query = _wire.session_query(self.cwd, self.workspace, self.kernel)
        return (await self._client._told(method, _wire.session_path(self.name, action), body, query, False, left=left))[0]
