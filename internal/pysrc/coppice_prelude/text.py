"""Text as lines and columns."""

from __future__ import annotations

import collections
import itertools
from typing import Any, Iterable, List, Optional, Tuple, Union

from .docs import helper
from .status import emit


@helper("Text")
def sort_lines(text: str, *, reverse: bool = False, unique: bool = False) -> str:
    """Sorts the lines of a text."""
    found = text.splitlines()
    if unique:
        found = list(dict.fromkeys(found))
    found.sort(reverse=reverse)
    emit("sort_lines", lines=len(found), unique=unique, reverse=reverse)
    return "\n".join(found)


@helper("Text")
def uniq(text: str, *, count: bool = False) -> Union[str, List[Tuple[int, str]]]:
    """Drops lines that are like the one before; with count=True returns (how
    often, line)."""
    groups = [(len(list(same)), line) for line, same in itertools.groupby(text.splitlines())]
    emit("uniq", groups=len(groups), count_mode=count)
    return groups if count else "\n".join(line for _, line in groups)


@helper("Text")
def counter(items: Union[str, Iterable[Any]], *, limit: Optional[int] = None, reverse: bool = True) -> List[Tuple[int, Any]]:
    """Counts the items, or the lines of a text. Returns (count, item), the most
    frequent first."""
    counts = collections.Counter(items.splitlines() if isinstance(items, str) else items)
    found = sorted(((n, item) for item, n in counts.items()), key=lambda one: (one[0], str(one[1])), reverse=reverse)
    found = found[:limit]
    emit("counter", unique=len(counts), total=sum(counts.values()), top=[{"item": str(item), "count": n} for n, item in found[:10]])
    return found


@helper("Text")
def cols(text: str, *indices: int, sep: Optional[str] = None) -> str:
    """Takes columns (from 0) out of each line of a text, joined by a blank."""
    found = []
    for line in text.splitlines():
        parts = line.split(sep)
        found.append(" ".join(parts[i] for i in indices if -len(parts) <= i < len(parts)))
    emit("cols", lines=len(found), columns=list(indices))
    return "\n".join(found)
