"""Finding files, and text in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import List, Optional, Pattern, Tuple

from .docs import helper
from .files import Name, load, locate
from .ignore import Entry, translate, walk
from .status import emit, preview, some

Hit = Tuple[int, str]


def _matcher(glob: str) -> Pattern[str]:
    """A glob without a slash is for the name, at any depth; one with a slash is
    for the path below the folder of the search."""
    return re.compile(("" if "/" in glob else "(?:.*/)?") + translate(glob.lstrip("/")) + r"\Z", re.S)


def _text_pattern(pattern: str, ignore_case: bool, literal: bool) -> Pattern[str]:
    return re.compile(re.escape(pattern) if literal else pattern, re.I if ignore_case else 0)


def files_below(path: Name, glob: str, hidden: bool) -> List[Path]:
    """Returns the files below a folder that match a glob, or the file itself."""
    base = locate(path).absolute()
    if not base.is_dir():
        return [base]
    fits = _matcher(glob)
    return [e.path for e in walk(base, hidden) if not e.folder and fits.match(e.relative)]


@helper("Search")
def find(
    pattern: str, path: Name = ".", *, type: str = "file", limit: int = 1000, hidden: bool = False,
    sort_by_mtime: bool = False, maxdepth: Optional[int] = None, mindepth: Optional[int] = None,
) -> List[Path]:
    """Finds files (type="dir": folders, "any": both) by a glob, below a folder.
    Ignored files are left out."""
    if type not in ("file", "dir", "any"):
        raise ValueError('type is "file", "dir" or "any"')
    base = locate(path).absolute()
    fits, found = _matcher(pattern), []

    def wanted(entry: Entry) -> bool:
        return (type == "any" or entry.folder == (type == "dir")) and (mindepth is None or entry.depth >= mindepth)

    for entry in walk(base, hidden, maxdepth):
        if len(found) >= limit:
            break
        if wanted(entry) and fits.match(entry.relative):
            found.append(entry.path)
    if sort_by_mtime:
        found.sort(key=_mtime, reverse=True)
    emit("find", pattern=pattern, path=str(base), count=len(found), matches=some(found))
    return found


def _mtime(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:  # it is gone since
        return 0.0


@helper("Search")
def glob_files(pattern: str, path: Name = ".", *, hidden: bool = False) -> List[Path]:
    """Finds files by a glob in one folder, not below it."""
    base = locate(path).absolute()
    fits = _matcher(pattern)
    found = [e.path for e in walk(base, hidden, 1) if not e.folder and fits.match(e.relative)]
    emit("glob", pattern=pattern, path=str(base), count=len(found), matches=some(found))
    return found


@helper("Search")
def grep(pattern: str, path: Name, *, ignore_case: bool = False, literal: bool = False, context: int = 0) -> List[Hit]:
    """Finds the lines of a file that match a pattern, with context lines around
    each. Returns (line number, text)."""
    file = locate(path)
    wanted = _text_pattern(pattern, ignore_case, literal)
    content = load(file).splitlines()
    hits = [i for i, line in enumerate(content) if wanted.search(line)]
    shown = sorted({n for i in hits for n in range(max(0, i - context), min(len(content), i + context + 1))})
    emit("grep", pattern=pattern, path=str(file), count=len(hits), hits=[{"line": i + 1, "text": preview(content[i], 100)} for i in hits[:10]])
    return [(i + 1, content[i]) for i in shown]


@helper("Search")
def rgrep(
    pattern: str, path: Name = ".", *, glob_pattern: str = "*", ignore_case: bool = False, literal: bool = False,
    limit: int = 100, hidden: bool = False,
) -> List[Tuple[Path, int, str]]:
    """Finds the lines that match a pattern in all files below a folder. Returns
    (file, line number, text). Files that are not text are left out."""
    wanted = _text_pattern(pattern, ignore_case, literal)
    found: List[Tuple[Path, int, str]] = []
    for file in files_below(path, glob_pattern, hidden):
        if len(found) >= limit:
            break
        for number, line in enumerate(_lines(file), 1):
            if wanted.search(line):
                found.append((file, number, line))
                if len(found) >= limit:
                    break
    hits = [{"file": str(f), "line": n, "text": preview(line, 80)} for f, n, line in found[:10]]
    emit("rgrep", pattern=pattern, path=str(locate(path)), count=len(found), hits=hits)
    return found


def _lines(file: Path) -> List[str]:
    try:
        return load(file).splitlines()
    except (OSError, UnicodeDecodeError):
        return []
