"""Looking at folders and files without reading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Dict, List

from .docs import helper
from .files import Name, load, locate
from .status import emit, preview


@helper("Navigation")
def tree(path: Name = ".", *, max_depth: int = 3, show_hidden: bool = False) -> str:
    """Draws a folder as a tree."""
    base = locate(path)
    if not base.is_dir():
        raise NotADirectoryError(f"{base} is not a folder")
    out: List[str] = [f"{base}/"]
    _draw(base, "", max_depth, show_hidden, out)
    text = "\n".join(out)
    emit("tree", path=str(base), entries=len(out) - 1, preview=preview(text, 1000))
    return text


def _draw(folder: Path, prefix: str, depth: int, hidden: bool, out: List[str]) -> None:
    if depth <= 0:
        return
    try:
        with os.scandir(folder) as found:
            entries = [(not e.is_dir(follow_symlinks=False), e.name) for e in found if hidden or not e.name.startswith(".")]
    except OSError as err:
        out.append(f"{prefix}└── ({err.strerror})")
        return
    entries.sort(key=lambda e: (e[0], e[1].lower(), e[1]))
    for i, (is_file, name) in enumerate(entries):
        last = i == len(entries) - 1
        out.append(f"{prefix}{'└── ' if last else '├── '}{name}{'' if is_file else '/'}")
        if not is_file:
            _draw(folder / name, prefix + ("    " if last else "│   "), depth - 1, hidden, out)


@helper("Navigation")
def stat(path: Name) -> Dict[str, Any]:
    """Tells the size, kind, age and mode of a file."""
    file = locate(path)
    found = file.stat()
    is_dir = file.is_dir()
    import datetime  # here, as difflib below: it costs every session's start

    mtime = datetime.datetime.fromtimestamp(found.st_mtime).isoformat()
    emit("stat", path=str(file), size=found.st_size, is_dir=is_dir, mtime=mtime)
    return {"path": str(file), "size": found.st_size, "is_file": file.is_file(), "is_dir": is_dir, "mtime": mtime, "mode": oct(found.st_mode)}


@helper("Batch")
def diff(a: Name, b: Name) -> str:
    """Compares two text files as a unified diff; an empty text means that they
    are the same."""
    import difflib

    one, two = locate(a), locate(b)
    text = "".join(_whole(line) for line in difflib.unified_diff(load(one).splitlines(True), load(two).splitlines(True), str(one), str(two)))
    emit("diff", file_a=str(one), file_b=str(two), identical=not text, preview=preview(text))
    return text


def _whole(line: str) -> str:
    return line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
