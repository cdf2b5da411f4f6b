"""Work side by side, and reports of its progress."""

from __future__ import annotations

import contextvars
from typing import Any, Callable, Iterable, List, Optional, TypeVar

from .docs import helper
from .status import emit

T = TypeVar("T")

_MOST = 32  # threads, when their number is not given


@helper("Flow")
def parallel(thunks: Iterable[Callable[[], T]], *, limit: Optional[int] = None) -> List[T]:
    """Calls functions without arguments at the same time, in threads. Returns
    their results in order; of several exceptions the first in order is raised,
    when all have ended."""
    work = list(thunks)
    if not work:
        return []
    from concurrent.futures import ThreadPoolExecutor  # here: it costs every session's start

    with ThreadPoolExecutor(min(limit or _MOST, len(work))) as pool:
        started = [pool.submit(contextvars.copy_context().run, one) for one in work]
        for one in started:
            one.exception()  # a barrier: all end before anything is raised
    return [one.result() for one in started]


@helper("Flow")
def pipeline(items: Iterable[Any], *stages: Callable[[Any], Any], limit: Optional[int] = None) -> List[Any]:
    """Takes items through stages, all items at the same time and one stage after
    the other."""
    found = list(items)
    for stage in stages:
        found = parallel([_bind(stage, item) for item in found], limit=limit)
    return found


def _bind(stage: Callable[[Any], Any], item: Any) -> Callable[[], Any]:
    return lambda: stage(item)


@helper("Flow")
def log(message: str) -> None:
    """Tells the user something besides the output."""
    emit("log", message=str(message))


@helper("Flow")
def phase(title: str) -> None:
    """Says which part of the work begins now."""
    emit("phase", title=str(title))
