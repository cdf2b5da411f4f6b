"""The syntax of magics: %name, %%name, !command, and their values.

A cell that Python can parse holds none and never comes here. In one that it
cannot, the lines that begin a statement are looked at, and only those: what
stands in a string, in brackets, or after a backslash is never touched. Lines
keep their numbers.
"""

from __future__ import annotations

import re
from typing import List, Optional, Tuple

# The name under which commands.Commands is found from any cell.
COMMANDS = "__coppice__"

_CANDIDATE = re.compile(r"^[ \t]*[%!]|=[ \t]*[%!]", re.MULTILINE)
_MAGIC = re.compile(r"([ \t]*)(%%?|!!?)[ \t]*(.*)", re.DOTALL)
_NAME = re.compile(r"([^\W\d][\w.]*)[ \t]*(.*)", re.DOTALL)
_ASSIGNED = re.compile(r"([ \t]*[^\W\d][^=!%#'\"]*?)=[ \t]*([%!])[ \t]*(.+)", re.DOTALL)

_PLAIN = re.compile(r"[^#'\"()\[\]{}\\]+")
_OPEN, _CLOSE = "([{", ")]}"


class Lexer:
    """Follows Python's text line by line, as far as it takes to know whether
    the next line begins a statement."""

    def __init__(self) -> None:
        self._quote = ""  # the quotes that end an open string
        self._depth = 0
        self._joined = False  # the last line ends with a backslash

    def at_start(self) -> bool:
        """Says whether the next line begins a statement."""
        return not self._quote and self._depth == 0 and not self._joined

    def feed(self, line: str) -> None:
        """Takes the next line."""
        line = line.rstrip("\r\n")
        self._joined = False
        at = 0
        if self._quote:
            at = self._string(line, 0)
        while at < len(line):
            plain = _PLAIN.match(line, at)
            if plain is not None:
                at = plain.end()
                continue
            c = line[at]
            if c == "#":
                return
            if c in "'\"":
                self._quote = c * 3 if line.startswith(c * 3, at) else c
                at = self._string(line, at + len(self._quote))
                continue
            if c in _OPEN:
                self._depth += 1
            elif c in _CLOSE:
                self._depth = max(0, self._depth - 1)
            elif at == len(line) - 1:
                self._joined = True  # a backslash
            at += 1

    def _string(self, line: str, at: int) -> int:
        """Looks for the end of the open string and returns where to go on."""
        while at < len(line):
            if line[at] == "\\":
                at += 2
                continue
            if line.startswith(self._quote, at):
                at += len(self._quote)
                self._quote = ""
                return at
            at += 1
        if len(self._quote) == 1 and not (at > len(line)):
            self._quote = ""  # it is not closed, and no backslash carries it on: not Python
        return len(line)


def transform(text: str) -> Optional[str]:
    """Returns the text with its magics as calls, or None when it has none."""
    if _CANDIDATE.search(text) is None:
        return None
    # Not splitlines: it ends lines at characters that a string may hold.
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    out: List[str] = []
    lexer = Lexer()
    found = False
    n = 0
    while n < len(lines):
        line = lines[n]
        if not lexer.at_start():
            lexer.feed(line)
            out.append(line)
            n += 1
            continue
        whole, used = _whole(lines, n)
        call = _cell_magic(lines, n) or _line_magic(whole) or _assigned_magic(whole)
        if call is None:
            lexer.feed(line)
            out.append(line)
            n += 1
            continue
        found = True
        if call[1]:  # a cell magic takes all that follows
            out.append(call[0] + "\n")
            break
        out.append(call[0] + "\n" * used)
        n += used
    return "".join(out) if found else None


def _whole(lines: List[str], n: int) -> Tuple[str, int]:
    """Returns line n with those that backslashes join to it, and how many lines
    that are."""
    parts = []
    used = 0
    while n + used < len(lines):
        line = lines[n + used].rstrip("\r\n")
        used += 1
        if not line.endswith("\\") or n + used == len(lines):
            parts.append(line)
            break
        parts.append(line[:-1])
    return " ".join(p if i == 0 else p.strip() for i, p in enumerate(parts)), used


def _cell_magic(lines: List[str], n: int) -> Optional[Tuple[str, bool]]:
    match = _MAGIC.match(lines[n].rstrip())
    if match is None or match.group(2) != "%%":
        return None
    name = _NAME.match(match.group(3))
    if name is None:
        return None
    body = "".join(lines[n + 1 :])
    return f"{match.group(1)}{COMMANDS}.cell({name.group(1)!r}, {name.group(2)!r}, {body!r})", True


def _line_magic(line: str) -> Optional[Tuple[str, bool]]:
    match = _MAGIC.match(line.rstrip())
    if match is None:
        return None
    indent, kind, rest = match.groups()
    if kind in ("!", "!!"):
        method = "shell" if kind == "!" else "capture"
        return f"{indent}{COMMANDS}.{method}({rest!r})", False
    name = _NAME.match(rest)
    if kind != "%" or name is None:
        return None
    return f"{indent}{COMMANDS}.line({name.group(1)!r}, {name.group(2)!r})", False


def _assigned_magic(line: str) -> Optional[Tuple[str, bool]]:
    match = _ASSIGNED.match(line.rstrip())
    if match is None:
        return None
    target, kind, rest = match.groups()
    if kind == "!":
        return f"{target}= {COMMANDS}.capture({rest!r})", False
    name = _NAME.match(rest)
    if name is None:
        return None
    return f"{target}= {COMMANDS}.line({name.group(1)!r}, {name.group(2)!r})", False
