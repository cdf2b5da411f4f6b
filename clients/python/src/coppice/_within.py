"""Waiting for so long, for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Optional, TypeVar

T = TypeVar("T")


async def within(what: Awaitable[T], seconds: Optional[float], drop: Optional[Callable[[T], object]] = None) -> T:
    """Wait for something, at most so long (None: as long as it takes), else asyncio.TimeoutError.

    It is cancelled when the time is over, and when the task that waits is; nothing of it runs
    any more then. What it returns all the same is given to ``drop``.

    It is not ``asyncio.wait_for``, which up to Python 3.11 returns what is there when a task
    is cancelled at that very moment, and the task goes on as if nobody had cancelled it.
    """
    task = asyncio.ensure_future(what)
    try:
        await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        await _end(task, drop)
        raise
    if not task.done():
        await _end(task, drop)
        raise asyncio.TimeoutError
    return task.result()


async def _end(task: asyncio.Future[Any], drop: Optional[Callable[[Any], object]]) -> None:
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and not task.exception() and drop:
        drop(task.result())
