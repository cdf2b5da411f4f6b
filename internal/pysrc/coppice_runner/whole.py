"""Whether a text is a whole cell, for those who type one line by line."""

from __future__ import annotations

import ast
import codeop
import warnings
from typing import Optional, Tuple

from . import magics


def check(text: str) -> Tuple[str, Optional[int]]:
    """Returns "complete", "incomplete" or "invalid", and with "incomplete" by how
    many columns the next line is indented. A block is complete with an empty line
    after it, as in the prompt of Python; so is a magic that takes the whole cell."""
    lines = text.split("\n")
    if not text.strip():
        return "complete", None
    over = len(lines) > 1 and not lines[-1].strip()  # an empty line says that no more comes
    if text.lstrip().startswith("%%"):
        return ("complete", None) if over else ("incomplete", 0)
    if lines[-1].endswith("\\"):
        return "incomplete", _indent(lines)
    python = magics.transform(text)
    if python is None:
        python = text
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = compile(python, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
        except (SyntaxError, ValueError, OverflowError):
            return _broken(python, lines)
        except (MemoryError, RecursionError):  # it is nested too deeply
            return "invalid", None
    if over or not _in_block(tree, lines):
        return "complete", None
    return "incomplete", _indent(lines)


def _broken(python: str, lines: "list[str]") -> Tuple[str, Optional[int]]:
    try:
        more = codeop.compile_command(python, "<cell>", "exec") is None
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError):
        more = False
    return ("incomplete", _indent(lines)) if more else ("invalid", None)


def _in_block(tree: ast.Module, lines: "list[str]") -> bool:
    """Says whether the last line is indented because it is in a block, which may go on."""
    last = tree.body[-1] if tree.body else None
    return lines[-1][:1] in (" ", "\t") and (hasattr(last, "body") or hasattr(last, "cases")) and not isinstance(last, ast.Expr)


def _indent(lines: "list[str]") -> int:
    line = lines[-1].expandtabs()
    return len(line) - len(line.lstrip()) + (4 if line.rstrip().endswith(":") else 0)
