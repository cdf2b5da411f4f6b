"""The outputs of agents: the files that the host's session keeps for them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, NoReturn, Optional

from .docs import helper
from .status import emit

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def _folder() -> Path:
    """Returns the folder of the outputs."""
    folder = os.environ.get("PI_ARTIFACTS_DIR")
    if folder:
        found = Path(folder)
    else:
        session = os.environ.get("PI_SESSION_FILE")
        if not session:
            _fail(RuntimeError("No session - output artifacts unavailable"))
        found = Path(session).with_suffix("")
    if not found.is_dir():
        _fail(RuntimeError(f"No artifacts directory found: {found}"))
    return found


def _fail(err: Exception) -> NoReturn:
    emit("output", error=str(err))
    raise err


@helper("Agent")
def output(*ids: str, format: str = "raw", query: Optional[str] = None, offset: Optional[int] = None, limit: Optional[int] = None) -> Any:
    """Reads what an agent has put out, by id. format is "raw", "stripped" or
    "json" (a dict about it); query takes a part out of JSON (".key[0]"); offset
    and limit choose lines."""
    if not ids:
        _fail(ValueError("At least one output ID is required"))
    if query is not None and (offset is not None or limit is not None):
        _fail(ValueError("query cannot be combined with offset/limit"))
    if format not in ("raw", "stripped", "json"):
        _fail(ValueError('format is "raw", "stripped" or "json"'))
    folder = _folder()
    files = {one: folder / f"{one}.md" for one in ids}
    missing = [one for one, file in files.items() if os.sep in one or one in ("", ".", "..") or not file.is_file()]
    if missing:
        _fail(FileNotFoundError(_not_found(folder, missing)))
    found = [_one(one, file, format, query, offset, limit) for one, file in files.items()]
    if len(found) == 1:
        emit("output", id=ids[0], chars=len(found[0]["content"]))
        return found[0] if format == "json" else found[0]["content"]
    emit("output", count=len(found), total_chars=sum(len(one["content"]) for one in found))
    return found if format == "json" else [{"id": one["id"], "content": one["content"]} for one in found]


def _not_found(folder: Path, missing: List[str]) -> str:
    there = sorted(file.stem for file in folder.glob("*.md"))
    shown = ", ".join(there[:20]) + (f" (and {len(there) - 20} more)" if len(there) > 20 else "")
    return f"Output not found: {', '.join(missing)}\n\nAvailable outputs: {shown or 'none'}"


def _one(name: str, file: Path, format: str, query: Optional[str], offset: Optional[int], limit: Optional[int]) -> Dict[str, Any]:
    content = file.read_text("utf-8")
    if format == "stripped":
        content = _ANSI.sub("", content)
    about: Dict[str, Any] = {"id": name, "path": str(file), "line_count": len(content.splitlines()), "char_count": len(content)}
    if query is not None:
        about["query"] = query
        content = json.dumps(_query(name, content, query), indent=2, ensure_ascii=False)
    elif offset is not None or limit is not None:
        all_lines = content.splitlines()
        first = offset or 1
        if first < 1 or first > max(1, len(all_lines)):
            _fail(ValueError(f"Offset {first} is beyond end of output ({len(all_lines)} lines) for {name}"))
        part = all_lines[first - 1 : None if limit is None else first - 1 + limit]
        about["range"] = {"start_line": first, "end_line": first - 1 + len(part), "total_lines": len(all_lines)}
        content = "\n".join(part)
    about["content"] = content
    return about


_STEP = re.compile(r"""\.([A-Za-z_]\w*)|\[\s*(-?\d+)\s*\]|\.?\[\s*"((?:[^"\\]|\\.)*)"\s*\]""")


def _query(name: str, content: str, query: str) -> Any:
    try:
        value = json.loads(content)
    except ValueError as err:
        _fail(ValueError(f"Output {name} is not valid JSON: {err}"))
    at = 0
    rest = query.strip()
    rest = "" if rest == "." else rest
    while at < len(rest):
        step = _STEP.match(rest, at)
        if step is None:
            _fail(ValueError(f"query: cannot read {rest[at:]!r}; use .key, [\"key\"] or [0]"))
        key, index, quoted = step.groups()
        try:
            value = value[int(index)] if index is not None and isinstance(value, list) else value[key if key is not None else json.loads(f'"{quoted}"')]
        except (KeyError, IndexError, TypeError):
            return None
        at = step.end()
    return value
