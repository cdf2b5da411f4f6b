"""Exceptions as the host shows them: the user's frames, and never a failure of
the exception itself."""

from __future__ import annotations

import linecache
from typing import Any, Dict, List, Optional, Tuple

from .interrupts import FILES, calls_user
from .locate import Cells, described, locate
from .wire import printable

# Characters of a message, and of a line of a traceback.
_MAX_MESSAGE = 64 << 10
_MAX_LINE = 64 << 10


def of(err: Any, kind: type) -> bool:
    """Says whether err is of a kind. isinstance would ask the object too, whose
    class may answer with an exception."""
    return issubclass(type(err), kind)


def describe(err: BaseException, current: str = "") -> Dict[str, Any]:
    """Returns the error frame for an exception. current is the file of the cell
    that raised it. It never raises."""
    name = _name(err)
    frame: Dict[str, Any] = {"type": "error", "name": name, "message": _message(err)}
    try:
        frame["traceback"] = _lines(err)
    except BaseException as failed:  # no memory, no stack, an exception that fights back
        frame["traceback"] = [f"{name}: {frame['message']}", f"(the traceback could not be made: {_name(failed)})"]
    if current:
        try:
            place = locate(err, Cells(_cell, lambda e: frame["message"] if e is err else _text(e)), current)
            frame["place"] = {k: printable(v) if type(v) is str else v for k, v in place.items()}
        except BaseException:  # then its place is unknown
            pass
    return frame


def _cell(filename: str) -> Optional[Tuple[str, str]]:
    """Returns the name and the text of a cell that is still known."""
    if not filename.startswith("<cell "):
        return None
    known: Any = linecache.cache.get(filename)
    return (filename, "".join(known[2])) if known and len(known) == 4 else None


def _name(err: BaseException) -> str:
    try:
        return printable(str.__str__(type(err).__name__))
    except BaseException:  # a metaclass can do anything
        return "Exception"


def _message(err: BaseException) -> str:
    try:
        return printable(_cut(_text(err), _MAX_MESSAGE))
    except BaseException as failed:
        return f"<the message could not be made: str() raised {_name(failed)}>"


# An exception that takes for ever to describe can be interrupted, like the rest
# of its cell: the functions that run its code let an interrupt through.
calls_user(described)


@calls_user
def _text(err: BaseException) -> str:
    text = err.msg if of(err, SyntaxError) and err.msg else err  # type: ignore[attr-defined]
    # str() returns what __str__ does: its class may lie about its length.
    return str.__str__(str(text))


@calls_user
def _lines(err: BaseException) -> List[str]:
    # This package's frames are no concern of the user.
    told = described(err, lambda filename: not filename.startswith(FILES))
    # The compiler's word about the cell itself has no frame of the user: its
    # caret text is all there is.
    parts = told.format() if told.stack else told.format_exception_only()
    return [printable(_cut(line, _MAX_LINE)) for line in "".join(parts).splitlines()]


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"
