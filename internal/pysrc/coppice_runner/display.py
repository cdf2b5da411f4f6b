"""Values as MIME bundles, and the display function."""

from __future__ import annotations

import base64
import sys
from typing import Any, Callable, Dict, Optional, Tuple

from . import charts
from .interrupts import calls_user
from .wire import MAX_FRAME, printable

Bundle = Dict[str, Any]

_REPRS = (
    ("_repr_html_", "text/html"),
    ("_repr_markdown_", "text/markdown"),
    ("_repr_svg_", "image/svg+xml"),
    ("_repr_png_", "image/png"),
    ("_repr_jpeg_", "image/jpeg"),
    ("_repr_latex_", "text/latex"),
    ("_repr_json_", "application/json"),
    ("_repr_javascript_", "application/javascript"),
    ("_repr_pdf_", "application/pdf"),
)

# Their text has nothing that JSON writes in another way.
SHORT_TYPES = (int, float, bool, complex)
_PLAIN_TYPES = (int, str, float, bool, bytes, complex, range, slice)


@calls_user
def call_user(function: Callable[..., Any], *args: Any) -> Any:
    """Calls code of the user; an interrupt may end it."""
    return function(*args)


def bundle(value: Any) -> Tuple[Bundle, Bundle]:
    """Returns the MIME bundle of a value and its metadata. It raises what
    repr() raises; what the richer forms raise leaves them out."""
    data: Bundle = {}
    metadata: Bundle = {}
    if type(value) in SHORT_TYPES:
        return {"text/plain": repr(value)}, metadata
    if type(value) not in _PLAIN_TYPES and not isinstance(value, type):
        _rich(value, data, metadata)
        if charts.wanted():
            data.update(call_user(charts.forms, value))
    if "text/plain" not in data:
        data["text/plain"] = printable(call_user(repr, value))
    if "application/json" not in data and type(value) in (dict, list):
        tree = as_json(value)
        if tree is not NOT_JSON:
            data["application/json"] = tree
    return data, metadata


def _rich(value: Any, data: Bundle, metadata: Bundle) -> None:
    if _is_figure(value):
        data["image/png"] = _png_of(value)
        return
    made = _method(value, "_repr_mimebundle_")
    if made is not None:
        try:
            got = call_user(_bundled, made)
        except Exception:
            got = None
        _merge(got, data, metadata)
    for name, mime in _REPRS:
        if mime in data:
            continue
        made = _method(value, name)
        if made is None:
            continue
        try:
            got = call_user(made)
        except Exception:
            continue
        _merge(None if got is None else _with_metadata(mime, got), data, metadata)


def _bundled(made: Callable[..., Any]) -> Any:
    """Calls _repr_mimebundle_ as IPython does: there are objects, those of rich among them, that
    insist on both arguments. Others take none, and are called so."""
    try:
        return made(include=None, exclude=None)
    except TypeError:
        return made()


def _with_metadata(mime: str, got: Any) -> Any:
    if isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict):
        return {mime: got[0]}, {mime: got[1]}
    return {mime: got}


def _merge(got: Any, data: Bundle, metadata: Bundle) -> None:
    if isinstance(got, tuple) and len(got) == 2:
        got, more = got
        if isinstance(more, dict):
            metadata.update(more)
    if not isinstance(got, dict):
        return
    for mime, part in got.items():
        if isinstance(mime, str) and part is not None:
            data[mime] = encodable(mime, part)


def encodable(mime: str, part: Any) -> Any:
    """Returns one part of a bundle as JSON can carry it. What is said to be JSON and is none is
    NOT_JSON, which fit leaves out."""
    if isinstance(part, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(part)).decode()
    if isinstance(part, str):
        return part
    if mime.startswith("text/"):
        return call_user(str, part)
    tree = as_json(part, _MOST_NODES)
    if tree is NOT_JSON:  # somebody says that it is JSON, as far as json.dumps goes
        tree = as_json(_listed(part, [_MOST_NODES], 0), _MOST_NODES)
    if tree is NOT_JSON and not mime.endswith("json"):
        return call_user(repr, part)
    return tree


def _method(value: Any, name: str) -> Optional[Callable[[], Any]]:
    """Returns a method of value's class. What answers to every name (a mock, a
    proxy) does not count, nor what is set on the instance alone."""
    try:
        if not callable(getattr(type(value), name, None)):
            return None
        found = call_user(getattr, value, name, None)
    except Exception:
        return None
    return found if callable(found) else None


NOT_JSON = object()
# How large a tree may be, of which nobody and somebody said that it is JSON: so many values, text
# counted by 32 characters, so that a frame holds what escapes make of it.
_MAX_NODES, _MOST_NODES = 100_000, MAX_FRAME // 4 // 32


def as_json(value: Any, nodes: int = _MAX_NODES) -> Any:
    """Returns value when JSON can say it without loss, and in so many nodes, else NOT_JSON."""
    budget = [nodes]
    return value if _is_json(value, budget, 0) else NOT_JSON


def _is_json(value: Any, budget: list, depth: int) -> bool:
    budget[0] -= 1
    if budget[0] < 0 or depth > 100:
        return False
    kind = type(value)
    if kind is str:
        budget[0] -= len(value) >> 5
        return budget[0] >= 0
    if value is None or kind in (bool, int):
        return True
    if kind is float:
        return value == value and value not in (float("inf"), float("-inf"))
    if kind is list:
        return all(_is_json(v, budget, depth + 1) for v in value)
    if kind is dict:
        return all(type(k) is str and _is_json(k, budget, depth) and _is_json(v, budget, depth + 1) for k, v in value.items())
    return False


def _listed(value: Any, budget: list, depth: int) -> Any:
    """Returns value with lists for its tuples, and text for keys that are numbers."""
    budget[0] -= 1
    if budget[0] < 0 or depth > 100:
        return NOT_JSON  # which is none, and so is what holds it
    kind = type(value)
    if kind in (list, tuple):
        return [_listed(v, budget, depth + 1) for v in value]
    if kind is dict:
        return {str(k) if type(k) is int else k: _listed(v, budget, depth + 1) for k, v in value.items()}
    return value


def fit(data: Bundle) -> Tuple[Bundle, str]:
    """Leaves out the parts that are too long for a frame, or no JSON, and says so. Plain
    text is not lost: it is returned by itself, to be printed."""
    kept: Bundle = {}
    room = MAX_FRAME // 4
    left_out, no_json, text = [], [], ""
    for mime, part in data.items():
        if part is NOT_JSON:
            no_json.append(mime)
            continue
        size = len(part) if isinstance(part, str) else 0
        if size > room and mime == "text/plain":
            text = part
            continue
        if size > room:
            left_out.append(f"{mime} ({size} characters)")
            continue
        room -= size
        kept[mime] = part
    for why, what in (("it is too long", left_out), ("it is too large, or not JSON (NaN, infinity, an object of Python)", no_json)):
        if not what:
            continue
        note = f"left out because {why}: " + ", ".join(what)
        kept["text/plain"] = f"{kept['text/plain']}\n[{note}]" if "text/plain" in kept else f"[{note}]"
    return kept, text


class Handle:
    """What was displayed under a name."""

    def __init__(self, show: Callable[..., Any], display_id: str) -> None:
        self._show = show
        self.display_id = display_id

    def __repr__(self) -> str:
        return f"<display {self.display_id}>"

    def display(self, value: Any, **options: Any) -> None:
        """Shows value once more, under the same name."""
        self._show(value, display_id=self.display_id, **options)

    def update(self, value: Any, **options: Any) -> None:
        """Replaces what is shown under the name."""
        self._show(value, display_id=self.display_id, update=True, **options)


# Figures of matplotlib. They are looked at only when the user imported it.

_shown: "set[int]" = set()  # figures that the running cell displayed, by id


def _is_figure(value: Any) -> bool:
    figure = sys.modules.get("matplotlib.figure")
    return figure is not None and isinstance(value, getattr(figure, "Figure", ()))


def _png_of(figure: Any) -> str:
    import io

    out = io.BytesIO()
    call_user(_save, figure, out)
    _shown.add(id(figure))
    return base64.b64encode(out.getvalue()).decode()


@calls_user
def _save(figure: Any, out: Any) -> None:
    figure.savefig(out, format="png", bbox_inches="tight")


def figures() -> "list[Any]":
    """Returns pyplot's open figures that were not displayed yet, and closes all
    of them: a figure is shown once, at the end of the cell that drew it."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not hasattr(pyplot, "get_fignums"):
        _shown.clear()
        return []
    opened = [call_user(pyplot.figure, number) for number in call_user(pyplot.get_fignums)]
    if opened:
        call_user(pyplot.close, "all")
    fresh = [f for f in opened if id(f) not in _shown]
    _shown.clear()
    return fresh
