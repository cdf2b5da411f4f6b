"""Lines of files, by number (from 1, both ends included) or pattern. What is not
asked for keeps its line ends, and the end of the file too."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

from .docs import helper
from .files import Name, load, locate, save
from .status import emit, preview


@helper("Line ops")
def lines(path: Name, start: int = 1, end: Optional[int] = None) -> str:
    """Returns lines of a file, by number from 1."""
    _check(start)
    file = locate(path)
    found = load(file).splitlines()[start - 1 : end]
    text = "\n".join(found)
    emit("lines", path=str(file), start=start, end=start - 1 + len(found), count=len(found), preview=preview(text))
    return text


@helper("Line ops")
def delete_lines(path: Name, start: int, end: Optional[int] = None) -> int:
    """Deletes the lines start to end of a file; only start if end is left out.
    Returns how many there were."""
    _check(start)
    file = locate(path)
    content = load(file).splitlines(True)
    last = start if end is None else end
    gone = len(content[start - 1 : max(last, start - 1)])
    if gone:
        save(file, "".join(content[: start - 1] + content[start - 1 + gone :]))
    emit("delete_lines", path=str(file), start=start, end=last, count=gone)
    return gone


@helper("Line ops")
def delete_matching(path: Name, pattern: str, *, regex: bool = True) -> int:
    """Deletes the lines of a file that match a pattern. Returns how many."""
    file = locate(path)
    wanted = re.compile(pattern if regex else re.escape(pattern))
    content = load(file).splitlines(True)
    kept = [line for line in content if not wanted.search(line)]
    gone = len(content) - len(kept)
    if gone:
        save(file, "".join(kept))
    emit("delete_matching", path=str(file), pattern=pattern, count=gone)
    return gone


@helper("Line ops")
def insert_at(path: Name, line_num: int, text: str, *, after: bool = True) -> Path:
    """Inserts text after a line of a file, or before it with after=False."""
    if line_num < 0 or line_num == 0 and not after:
        raise ValueError("line_num counts lines from 1; 0 with after=True is the beginning")
    file = locate(path)
    content = load(file).splitlines(True)
    at = min(line_num if after else line_num - 1, len(content))
    end = "\r\n" if content and content[0].endswith("\r\n") else "\n"
    new = [line + end for line in text.splitlines()]
    if at and not content[at - 1].endswith(("\n", "\r")):
        content[at - 1] += end
        new[-1:] = [line[: -len(end)] for line in new[-1:]]
    save(file, "".join(content[:at] + new + content[at:]))
    emit("insert_at", path=str(file), line=line_num, lines_inserted=len(new), position="after" if after else "before")
    return file


def _check(start: int) -> None:
    if start < 1:
        raise ValueError("lines are counted from 1")
