"""Status events: what a helper reports besides its result."""

from __future__ import annotations

from typing import Any, Callable, List, Sequence

PREVIEW = 500  # characters

_display: Any = None
_mime = "application/x-coppice-status"


def attach(display: Callable[..., Any], mime: str) -> None:
    """Says where events go."""
    global _display, _mime
    _display, _mime = display, mime


def emit(op: str, **fields: Any) -> None:
    """Shows an event. Fields that are None are left out."""
    if _display is not None:
        _display({_mime: {"op": op, **{k: v for k, v in fields.items() if v is not None}}}, raw=True)


def preview(text: str, limit: int = PREVIEW) -> str:
    """Cuts a text for an event."""
    return text if len(text) <= limit else text[:limit] + "…"


def some(items: Sequence[Any], limit: int = 20) -> List[str]:
    """Returns the first items as text."""
    return [str(item) for item in items[:limit]]
