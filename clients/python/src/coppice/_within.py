"""Waiting for so long, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Awaitable, Callable, Optional, Set, Tuple, TypeVar

from ._errors import said
from ._reach import silent

T = TypeVar("T")

#: In how many parts a time is waited for.
PARTS = 8


async def within(what: Awaitable[T], seconds: Optional[float], drop: Optional[Callable[[T], object]] = None) -> T:
    """Wait for something, at most so long (None: as long as it takes), else asyncio.TimeoutError.

    A process that stands still meanwhile loses a part of that time at most: what has come for
    it by then is taken first. What is waited for is cancelled when the time is over, and when
    the task that waits is; nothing of it runs any more then. What it returns all the same is
    given to ``drop``.

    It is not ``asyncio.wait_for``, which up to Python 3.11 returns what is there when a task
    is cancelled at that very moment, and the task goes on as if nobody had cancelled it.
    """
    task = asyncio.ensure_future(what)
    try:
        for _ in range(1 if seconds is None else PARTS):
            if not task.done():
                await asyncio.wait([task], timeout=None if seconds is None else seconds / PARTS)
    except asyncio.CancelledError:
        await _end(task, drop)
        raise
    if not task.done():
        await _end(task, drop)
        raise asyncio.TimeoutError
    return task.result()


async def or_undone(make: Callable[[Callable[[], bool]], Awaitable[T]], undo: Callable[[T], Awaitable[object]]) -> T:
    """Make something at the server that no one else would know of: when the task that waits is
    cancelled, it is undone. make is told then that what was not sent yet need not be."""
    left = False
    making = asyncio.ensure_future(make(lambda: left))
    try:
        await asyncio.wait([making])
    except asyncio.CancelledError:
        left = True
        with contextlib.suppress(Exception):  # what made us leave is more important
            await undo(await making)  # it may be there already
        raise
    return making.result()


async def attended(what: Awaitable[T], alive: Callable[[], Awaitable[object]], ask: Tuple[float, float]) -> T:
    """Wait for something for as long as a server is alive, which is asked after so long and then so often; else TimeoutError."""

    async def look() -> None:
        wait, every = ask
        while True:
            await asyncio.sleep(wait)
            wait = every
            try:
                await alive()
            except Exception as e:
                if silent(e):
                    raise

    work, looking = asyncio.ensure_future(what), asyncio.ensure_future(look())
    first: Set[asyncio.Future[Any]] = {work, looking}
    try:
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            failed = looking.exception()
            raise TimeoutError(f"the server does not answer: {said(failed)}" if failed else "the server does not answer") from failed
        return work.result()
    finally:
        await _end(looking, None)
        await _end(work, None)


async def _end(task: asyncio.Future[Any], drop: Optional[Callable[[Any], object]]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and not task.exception() and drop:
        drop(task.result())
