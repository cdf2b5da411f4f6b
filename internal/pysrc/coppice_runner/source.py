"""A cell's text as code: what runs, and the last expression, whose value is the
cell's result."""

from __future__ import annotations

import __future__

import ast
import linecache
import re
from collections import deque
from types import CodeType
from typing import Any, Deque, Dict, Optional, Tuple

from . import magics

# The code of the statements of a cell, and that of its last expression.
Code = Tuple[Optional[CodeType], Optional[CodeType]]

# Cells whose text is kept for tracebacks and inspect, and how much of it.
_MAX_CELLS = 2000
_MAX_TEXT = 16 << 20

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag

# What an expression of one line does not hold, mostly: it may still be one.
_STATEMENT = re.compile(r"(?<![=!<>:])=(?!=)|^(?:import|from|del|assert|raise|pass|return|for|if|while|with|def|class|try|global)\b|^[%!]").search

_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

# Cells whose code is kept, cells that are known to have come before, and the characters
# of one.
_MAX_KEPT, _MAX_SEEN = 32, 128
_MAX_KEPT_TEXT = 2000

_TRY_STAR = getattr(ast, "TryStar", ast.Try)
# What can be called, or taken a part of, without a word of the compiler.
_USUAL = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
# Escapes and numbers that run into a word, of which it may say something too.
_TOLD = re.compile(r"\\|(?<!\w)[0-9][0-9_]*\.?[A-Za-z_]").search
# What only the tree of a text can tell about: something that may be a literal is called, or
# a part is taken of it; and the words of which the compiler may have something to say. In a
# text with comments, what is before a bracket cannot be seen.
_UNSURE = re.compile(r"""(?:[)\]}"'.0-9]|\b(?:None|True|False))\s*[(\[]|\b(?:is|assert|try|finally)\b|#""").search


class Compiler:
    """Compiles the cells of one session. `from __future__ import x` in a cell
    holds for later cells too."""

    def __init__(self) -> None:
        self._flags = _AWAIT
        self._known: Deque[Tuple[str, int]] = deque()
        self._size = 0
        # The code of cells that came twice, by their text and the flags, and the hashes of
        # those that came once.
        self._kept: Dict[Tuple[str, int], Code] = {}
        self._seen: Dict[int, None] = {}

    def register(self, filename: str, text: str) -> None:
        """Makes the lines of a cell known under its file name, for as long as
        there is room."""
        lines, size, known = text.splitlines(True), len(text), self._known
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        linecache.cache[filename] = (size, None, lines, filename)
        known.append((filename, size))
        self._size += size
        while (len(known) > _MAX_CELLS or self._size > _MAX_TEXT) and len(known) > 1:
            old, size = known.popleft()
            self._size -= size
            linecache.cache.pop(old, None)

    def cell(self, text: str, filename: str) -> Code:
        """Returns the code of a cell, magics and all."""
        flags = self._flags
        known = self._kept.get((text, flags))
        if known is not None:
            statements, expression = known
            return statements and _renamed(statements, filename), expression and _renamed(expression, filename)
        expression = self.expression(text, filename)
        if expression is not None:
            self._keep(text, flags, (None, expression))
            return None, expression
        try:
            tree = self.parse(text, filename)
        except SyntaxError:
            python = magics.transform(text)
            if python is None:
                raise
        else:
            code = self.compile(tree, text, filename)
            self._keep(text, flags, code)
            return code
        # Outside of the handler: what is wrong now has nothing to do with it.
        return self.compile(self.parse(python, filename), python, filename)

    def _keep(self, text: str, flags: int, code: Code) -> None:
        """Keeps the code of a cell that was compiled with flags, if it came before and the
        compiler has nothing to say about it: whoever runs it again is to hear that again."""
        if len(text) > _MAX_KEPT_TEXT or flags != self._flags:
            return
        key = hash(text)
        if key not in self._seen:
            _make_room(self._seen, _MAX_SEEN)
            self._seen[key] = None
        elif _silent(text):
            _make_room(self._kept, _MAX_KEPT)
            self._kept[text, flags] = code

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


def _make_room(of: Dict[Any, Any], most: int) -> None:
    while len(of) >= most:
        del of[next(iter(of))]


def _renamed(code: CodeType, filename: str) -> CodeType:
    """Returns code as if it came from another file."""
    nested = [isinstance(c, CodeType) for c in code.co_consts]
    if True not in nested:
        return code.replace(co_filename=filename)
    return code.replace(co_filename=filename, co_consts=tuple([_renamed(c, filename) if is_code else c for c, is_code in zip(code.co_consts, nested)]))


def _silent(text: str) -> bool:
    """Says whether the compiler has no warning about a cell, as far as its form tells."""
    if _TOLD(text):
        return False
    if _UNSURE(text) is None:
        return True  # a tree is some fifty pages of memory that a session would have for itself
    try:
        tree = ast.parse(text)
    except Exception:  # it needs the flags
        return False
    for node in ast.walk(tree):
        part: Any = None
        if isinstance(node, ast.Call):
            part = node.func
        elif isinstance(node, ast.Subscript):
            part = node.value
        elif isinstance(node, (ast.Assert, ast.Try, _TRY_STAR)) or isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False
        if part is not None and not isinstance(part, _USUAL):
            return False
    return True


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
