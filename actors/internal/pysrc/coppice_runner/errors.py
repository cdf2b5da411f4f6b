"""Exceptions as the host shows them: the user's frames, and never a failure of
the exception itself."""

from __future__ import annotations

import traceback
from typing import Any, Dict, List

from .interrupts import FILES
from .wire import printable

# Characters of a message, and of a line of a traceback.
_MAX_MESSAGE = 64 << 10
_MAX_LINE = 64 << 10


def describe(err: BaseException) -> Dict[str, Any]:
    """Returns the error frame for an exception."""
    try:
        name = type(err).__name__
    except Exception:  # a metaclass can do anything
        name = "Exception"
    frame = {"type": "error", "name": printable(name), "message": _message(err)}
    try:
        frame["traceback"] = _lines(err)
    except Exception as failed:  # no memory, no stack, an exception that fights back
        frame["traceback"] = [f"{frame['name']}: {frame['message']}", f"(the traceback could not be made: {type(failed).__name__})"]
    return frame


def _message(err: BaseException) -> str:
    try:
        if isinstance(err, SyntaxError) and err.msg:
            text = str(err.msg)
        else:
            text = str(err)
    except Exception as failed:
        return f"<the message could not be made: str() raised {type(failed).__name__}>"
    return printable(_cut(text, _MAX_MESSAGE))


def _lines(err: BaseException) -> List[str]:
    told = traceback.TracebackException.from_exception(err)
    _hide(told, set())
    # The compiler's word about the cell itself has no frame of the user: its
    # caret text is all there is.
    parts = told.format() if told.stack else told.format_exception_only()
    return [printable(_cut(line, _MAX_LINE)) for line in "".join(parts).splitlines()]


def _hide(told: Any, seen: set) -> None:
    """Takes this package's frames out of a traceback and out of those it is
    chained to."""
    if told is None or id(told) in seen:
        return
    seen.add(id(told))
    told.stack[:] = [f for f in told.stack if not f.filename.startswith(FILES)]
    _hide(told.__cause__, seen)
    _hide(told.__context__, seen)
    for one in getattr(told, "exceptions", None) or ():
        _hide(one, seen)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"
