"""Which files a search leaves out: those that git would ignore."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Iterator, List, NamedTuple, Optional, Pattern, Tuple

ALWAYS = frozenset({".git", "node_modules"})

_MAX_ANCESTORS = 20


class Rule(NamedTuple):
    """One line of a .gitignore."""

    negated: bool
    folders_only: bool
    pattern: Pattern[str]  # of the path below the folder of the file


def translate(glob: str) -> str:
    """Returns a glob as a regular expression: * and ? stay within a folder, **
    does not."""
    out, i = [], 0
    while i < len(glob):
        c = glob[i]
        if glob.startswith("**/", i) and (i == 0 or glob[i - 1] == "/"):
            out.append("(?:[^/]+/)*")
            i += 3
            continue
        if glob[i:] == "**" and (i == 0 or glob[i - 1] == "/"):
            out.append(".*")
            break
        if c == "*":
            out.append("[^/]*")
        elif c == "?":
            out.append("[^/]")
        elif c == "[":
            end = glob.find("]", i + 2 if glob[i + 1 : i + 2] in ("!", "^", "]") else i + 1)
            if end < 0:
                out.append(re.escape(c))
            else:
                inside = glob[i + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
                out.append("[" + ("^" + inside[1:] if inside[:1] in ("!", "^") else inside) + "]")
                i = end
        elif c == "\\" and i + 1 < len(glob):
            i += 1
            out.append(re.escape(glob[i]))
        else:
            out.append(re.escape(c))
        i += 1
    return "".join(out)


def parse(text: str) -> List[Rule]:
    """Reads a .gitignore."""
    rules = []
    for line in text.splitlines():
        if not line.endswith("\\ "):
            line = line.rstrip(" ")
        if not line or line.startswith("#"):
            continue
        negated = line.startswith("!")
        if negated:
            line = line[1:]
        folders_only = line.endswith("/")
        line = line.rstrip("/")
        anchored = "/" in line
        expression = translate(line.lstrip("/"))
        try:
            rules.append(Rule(negated, folders_only, re.compile(("" if anchored else "(?:.*/)?") + expression + r"\Z", re.S)))
        except re.error:
            continue  # git ignores such a line too
    return rules


def read_rules(folder: Path) -> List[Rule]:
    """Reads the .gitignore of a folder, if it has one."""
    try:
        return parse((folder / ".gitignore").read_text("utf-8", "replace"))
    except OSError:
        return []


def above(base: Path) -> List[Tuple[Path, List[Rule]]]:
    """Returns the rules of the folders above base, up to the top of its
    repository, the outermost first. Outside of a repository it is empty."""
    found = []
    folder = base
    for _ in range(_MAX_ANCESTORS):
        if (folder / ".git").exists():
            return [(f, rules) for f in reversed(found) if (rules := read_rules(f))]
        if folder.parent == folder:
            break
        folder = folder.parent
        found.append(folder)
    return []


class Entry(NamedTuple):
    """A file or a folder that a walk has come to."""

    path: Path
    relative: str  # to the base, with /
    folder: bool
    depth: int  # 1 is in the base itself


def walk(base: Path, hidden: bool, deepest: Optional[int] = None) -> Iterator[Entry]:
    """Goes through what is below base, a folder before what is in it and names
    in order, without what is ignored. What is above base does not count, whatever
    it is called."""
    yield from _walk(base, "", 1, hidden, deepest, above(base))


def _walk(folder: Path, relative: str, depth: int, hidden: bool, deepest: Optional[int], rules: List[Tuple[Path, List[Rule]]]) -> Iterator[Entry]:
    if deepest is not None and depth > deepest:
        return
    own = read_rules(folder)
    if own:
        rules = [*rules, (folder, own)]
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        if entry.name in ALWAYS or not hidden and entry.name.startswith("."):
            continue
        path = folder / entry.name
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
        except OSError:
            continue
        if _ignored(path, is_folder, rules):
            continue
        yield Entry(path, relative + entry.name, is_folder, depth)
        if is_folder:
            yield from _walk(path, relative + entry.name + "/", depth + 1, hidden, deepest, rules)


def _ignored(path: Path, folder: bool, rules: List[Tuple[Path, List[Rule]]]) -> bool:
    """The last rule that fits decides."""
    for base, own in reversed(rules):
        below = path.relative_to(base).as_posix()
        for rule in reversed(own):
            if (folder or not rule.folders_only) and rule.pattern.match(below):
                return not rule.negated
    return False
