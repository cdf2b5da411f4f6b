"""Replacing text in files."""

from __future__ import annotations

import re
from typing import Dict, List, Union

from .docs import helper
from .files import Name, load, locate, save
from .search import files_below
from .status import emit

Flags = Union[int, re.RegexFlag]


@helper("Find/Replace")
def replace(path: Name, pattern: str, repl: str, *, regex: bool = False) -> int:
    """Replaces a text, or what a regular expression matches, in a file. Returns
    how often."""
    file = locate(path)
    content = load(file)
    if regex:
        changed, count = re.subn(pattern, repl, content)
    else:
        count = content.count(pattern) if pattern else 0
        changed = content.replace(pattern, repl) if pattern else content
    if changed != content:
        save(file, changed)
    emit("replace", path=str(file), count=count)
    return count


@helper("Find/Replace")
def sed(path: Name, pattern: str, repl: str, *, flags: Flags = 0) -> int:
    """Replaces what a regular expression matches in a file. Returns how often."""
    file = locate(path)
    content = load(file)
    changed, count = re.subn(pattern, repl, content, flags=flags)
    if changed != content:
        save(file, changed)
    emit("sed", path=str(file), count=count)
    return count


@helper("Find/Replace")
def rsed(pattern: str, repl: str, path: Name = ".", *, glob_pattern: str = "*", flags: Flags = 0, hidden: bool = False) -> int:
    """Replaces what a regular expression matches in all files below a folder.
    Returns how often. Files that are not text are left alone."""
    wanted = re.compile(pattern, flags)
    total = 0
    changes: List[Dict[str, Union[str, int]]] = []
    for file in files_below(path, glob_pattern, hidden):
        try:
            content = load(file)
        except (OSError, UnicodeDecodeError):
            continue
        changed, count = wanted.subn(repl, content)
        if changed == content:
            continue
        save(file, changed)
        total += count
        changes.append({"file": str(file), "count": count})
    emit("rsed", path=str(locate(path)), count=total, files=len(changes), changed=changes[:10])
    return total
