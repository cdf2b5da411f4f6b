"""Questions of code that a client follows, and which of them it has answered."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncGenerator, Awaitable, Callable, Dict, List, Optional, Set

from . import _wire
from ._errors import ServerError
from ._types import Event

#: What becomes of an answer with which its question is over.
_TAKEN = ("accepted", "already answered")


class Asked:
    """The executions that a client follows, with the questions of each that it has answered. A
    server that takes over what runs asks again what the one before it has asked: who has answered
    is not asked twice."""

    def __init__(self) -> None:
        # Each step is one of a dict or a set, so that it needs no lock.
        self._of: Dict[str, Set[str]] = {}

    def follow(self, execution: str) -> None:
        """Its events are read from now on."""
        self._of[execution] = set()

    def leave(self, execution: str) -> None:
        """They are not read any more."""
        self._of.pop(execution, None)

    def answered(self, question: Event, status: str) -> str:
        """An answer was given; the status says what became of it, and is returned."""
        if status in _TAKEN and question.execution in self._of:
            self._of[question.execution].add(str(question.raw["id"]))
        return status

    def again(self, event: Event) -> bool:
        """Whether an event asks what was answered."""
        return event.type == "input_request" and str(event.raw.get("id")) in self._of.get(event.execution, ())

    def refused(self, question: Event, error: ServerError) -> ServerError:
        """What it means that an answer is refused: a server that does not know an execution whose events
        are read was started again."""
        unknown = error.status == 404 and error.code == "not_found"
        return _wire.gone() if unknown and question.execution in self._of else error


class Asking:
    """Reads events while questions of theirs are being asked: whoever is asked may take long, and the
    execution may end meanwhile."""

    def __init__(self, events: AsyncGenerator[Event, None], ask: Callable[[Event], Awaitable[None]]) -> None:
        self._events, self._ask = events, ask
        self._coming: Optional[asyncio.Future[Event]] = None
        self._asked: Dict[str, asyncio.Future[None]] = {}

    def ask(self, question: Event) -> None:
        """Begin to ask. One that is being asked is not begun twice."""
        id = str(question.raw["id"])
        if id not in self._asked:
            self._asked[id] = asyncio.ensure_future(self._ask(question))

    async def next(self) -> Optional[Event]:
        """The next event; None: there is none. What asking raises is raised here."""
        coming = self._coming = self._coming or asyncio.ensure_future(self._events.__anext__())
        while not coming.done():
            waited: List[asyncio.Future[Any]] = [coming, *self._asked.values()]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                break
            for id in [id for id, asked in self._asked.items() if asked.done()]:
                self._asked.pop(id).result()
        self._coming = None
        try:
            return coming.result()
        except StopAsyncIteration:
            return None

    async def end(self) -> None:
        """Ask no more, and leave the events."""
        left: List[asyncio.Future[Any]] = [*self._asked.values(), *([self._coming] if self._coming else [])]
        for one in left:
            one.cancel()
        if left:
            await asyncio.wait(left)
        for one in left:
            if not one.cancelled():
                one.exception()  # what made us leave is more important
        await self._events.aclose()
