"""Questions of code that a client follows, and which of them it has answered."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncGenerator, Awaitable, Callable, Dict, List, Optional, Tuple

from . import _wire
from ._errors import ServerError
from ._types import Event

#: What becomes of an answer with which its question is over.
_TAKEN = ("accepted", "already answered")


class _Newest:
    """The newest question of an execution, until the code shows that it has gone on."""

    def __init__(self) -> None:
        self.question: Optional[Event] = None
        self.answered = False


class Asked:
    """The executions that a client follows, with the newest question of each. A server that takes
    over what runs may ask again what the one before it has asked: who has answered is not asked
    twice. Of an earlier version, later questions may have the ids of earlier ones; so what comes
    after something else of the code is a new question."""

    def __init__(self) -> None:
        # Each step is one of a dict, and each execution has one reader, so that it needs no lock.
        self._of: Dict[str, _Newest] = {}

    def follow(self, execution: str) -> None:
        """Its events are read from now on."""
        self._of[execution] = _Newest()

    def leave(self, execution: str) -> None:
        """They are not read any more."""
        self._of.pop(execution, None)

    def answered(self, question: Event, status: str) -> str:
        """An answer was given; the status says what became of it, and is returned."""
        newest = self._of.get(question.execution)
        if status in _TAKEN and newest and newest.question and newest.question.raw["id"] == question.raw["id"]:
            newest.answered = True
        return status

    def again(self, event: Event) -> bool:
        """Whether an event of an execution that is followed asks what was answered."""
        newest = self._of[event.execution]
        if event.type == "input_request":
            before = newest.question
            if before and newest.answered and _same(before, event):
                return True
            newest.question, newest.answered = event, False
        elif event.type != "status":
            newest.question = None
        return False

    def refused(self, question: Event, error: ServerError) -> ServerError:
        """What it means that an answer is refused: a server that does not know an execution whose events
        are read was started again."""
        unknown = error.status == 404 and error.code == "not_found"
        return _wire.gone() if unknown and question.execution in self._of else error


def _same(one: Event, other: Event) -> bool:
    """Whether two events ask the same."""
    return bool(one.raw["id"] == other.raw["id"] and one.prompt == other.prompt)


class Asking:
    """Reads events while questions of theirs are being asked: whoever is asked may take long, and the
    execution may end meanwhile."""

    def __init__(self, events: AsyncGenerator[Event, None], ask: Callable[[Event], Awaitable[None]]) -> None:
        self._events, self._ask = events, ask
        self._coming: Optional[asyncio.Future[Event]] = None
        self._asked: Dict[Tuple[str, str], asyncio.Future[None]] = {}

    def ask(self, question: Event) -> None:
        """Begin to ask. One that is being asked is not begun twice."""
        key = str(question.raw["id"]), question.prompt
        if key not in self._asked:
            self._asked[key] = asyncio.ensure_future(self._ask(question))

    async def next(self) -> Optional[Event]:
        """The next event; None: there is none. What asking raises is raised here."""
        coming = self._coming = self._coming or asyncio.ensure_future(self._events.__anext__())
        while not coming.done():
            waited: List[asyncio.Future[Any]] = [coming, *self._asked.values()]
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                break
            for key in [key for key, asked in self._asked.items() if asked.done()]:
                self._asked.pop(key).result()
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
