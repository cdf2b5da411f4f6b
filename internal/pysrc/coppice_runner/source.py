"""A cell's text as code: what runs, and the last expression, whose value is the
cell's result."""

from __future__ import annotations

import __future__

import ast
import linecache
import re
from collections import deque
from types import CodeType
from typing import Deque, Optional, Tuple

# Cells whose text is kept for tracebacks and inspect, and how much of it.
_MAX_CELLS = 2000
_MAX_TEXT = 16 << 20

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag

# What an expression of one line does not hold, mostly: it may still be one.
_STATEMENT = re.compile(r"(?<![=!<>:])=(?!=)|^(?:import|from|del|assert|raise|pass|return|for|if|while|with|def|class|try|global)\b|^[%!]").search

_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class Compiler:
    """Compiles the cells of one session. `from __future__ import x` in a cell
    holds for later cells too."""

    def __init__(self) -> None:
        self._flags = _AWAIT
        self._known: Deque[Tuple[str, int]] = deque()
        self._size = 0

    def register(self, filename: str, text: str) -> None:
        """Makes the lines of a cell known under its file name, for as long as
        there is room."""
        lines = text.splitlines(True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        linecache.cache[filename] = (len(text), None, lines, filename)
        self._known.append((filename, len(text)))
        self._size += len(text)
        while len(self._known) > 1 and (len(self._known) > _MAX_CELLS or self._size > _MAX_TEXT):
            old, size = self._known.popleft()
            self._size -= size
            linecache.cache.pop(old, None)

    def expression(self, text: str, filename: str) -> Optional[CodeType]:
        """Returns the code of a cell that is one short expression, or None. It
        is what compile would return, in half the time."""
        if "\n" in text or ";" in text or len(text) > 200 or not text or text[0].isspace() or _STATEMENT(text):
            return None
        try:
            return compile(text, filename, "eval", self._flags, True)
        except (SyntaxError, ValueError):
            return None

    def parse(self, text: str, filename: str) -> ast.Module:
        """Parses a cell. It raises what the compiler raises."""
        tree = compile(text, filename, "exec", self._flags | ast.PyCF_ONLY_AST, True)
        assert isinstance(tree, ast.Module)
        return tree

    def compile(self, tree: ast.Module, text: str, filename: str) -> "tuple[Optional[CodeType], Optional[CodeType]]":
        """Returns the code of the statements, and that of the last expression
        when its value is to be shown."""
        last: Optional[ast.Expression] = None
        body = tree.body
        if body and isinstance(body[-1], ast.Expr) and not _silenced(body[-1], text):
            last = ast.Expression(body.pop().value)  # type: ignore[attr-defined]
        statements = None
        if body:
            statements = compile(tree, filename, "exec", self._flags, True)
            self._flags |= statements.co_flags & _FUTURE
        expression = compile(last, filename, "eval", self._flags, True) if last is not None else None
        return statements, expression


def _silenced(node: ast.Expr, text: str) -> bool:
    """Says whether a semicolon follows the last expression of a cell."""
    if ";" not in text or node.end_lineno is None or node.end_col_offset is None:
        return False
    # A form feed does not end a line for the parser, but does for splitlines.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rest = lines[node.end_lineno - 1].encode("utf-8", "replace")[node.end_col_offset :]
    # Parentheses around the expression are not part of it.
    while rest.strip().startswith(b")"):
        rest = rest.strip()[1:]
    return rest.strip().startswith(b";")
