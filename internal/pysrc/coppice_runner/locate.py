"""Where in the user's code an exception came from.

The module stands alone: both backends use it, the other one inside of a Jupyter
kernel. A cell is what the caller's function cells says it is; frames of files
that are neither cells nor the user's own are folded."""

from __future__ import annotations

import itertools
import os
import re
import sys
import sysconfig
import traceback
import unicodedata
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple


class Cells:
    """What the caller knows: of(filename) returns the name that is shown for the
    file of a cell and the cell's text, text(err) the message of an exception,
    which is code of the user."""

    def __init__(self, of: Callable[[str], Optional[Tuple[str, str]]], text: Callable[[BaseException], str] = str) -> None:
        self.of, self.text = of, text
        self._messages: Dict[int, str] = {}

    def message(self, err: BaseException) -> str:
        """Returns the message of err, which is asked for it once."""
        if id(err) not in self._messages:
            self._messages[id(err)] = self._message(err)
        return self._messages[id(err)]

    def _message(self, err: Any) -> str:
        try:
            return _cut(str(err.msg) if _is(err, SyntaxError) and err.msg else self.text(err), _MAX_TEXT)
        except Exception as failed:
            return f"<the message could not be made: str() raised {_name(failed)}>"

    def headline(self, err: BaseException) -> str:
        """Returns the class and the message of err."""
        message = self.message(err)
        return f"{_name(err)}: {message}" if message else _name(err)


def plainer(err: BaseException, cells: Cells, current: str = "") -> BaseException:
    """Returns err, or what the compiler says of the same cell when it is not
    told that more input may come, as an interactive shell does."""
    found = cells.of(current)
    if not found or not _is(err, SyntaxError) or "incomplete input" not in str(getattr(err, "msg", "")):
        return err
    try:
        compile(found[1], current, "exec", 0x2000, True)  # 0x2000: await at the top level
    except SyntaxError as said:
        said.__traceback__ = said.__context__ = None
        return said
    except Exception:
        pass
    return err


def _is(err: Any, kind: Any) -> bool:
    # isinstance would ask the object, too.
    return issubclass(type(err), kind)


_MAX_LINE = 400  # characters of a line of code
_MAX_TEXT = 2000  # characters of a message in the summary and the traceback
_MAX_FRAMES = 20  # frames of one exception, half from either end
_MOST_RUNS = 200  # runs of one frame that are looked at, from either end
_MOST_TOLD = 200  # frames of the interpreter's own traceback, from either end
_MAX_CHAIN = 6  # exceptions of a chain, and members of a group
_CHAINED = (
    "\nThe above exception was the direct cause of the following exception:\n",
    "\nDuring handling of the above exception, another exception occurred:\n",
)


class _Frame:
    """One entry of a traceback: file, line and, where Python knows them, the
    columns, from 1, the end not included; and how many times it comes in a row.
    One without a file stands for frames that are left out."""

    def __init__(self, filename: str, name: str, line: int, columns: Any, times: int = 1) -> None:
        self.filename, self.name, self.line, self.times = filename, name, line, times
        self.end_line, self.start, self.end = columns or (None, None, None)


def locate(err: BaseException, cells: Cells, current: str = "") -> Dict[str, Any]:
    """Returns what is known of where err came from: filename, line, column,
    end_line, end_column, snippet, pointer, summary, user_traceback and hint, as
    far as there is one. current is the file of the running cell. It may raise
    what the exception's own methods raise."""
    place = _place(err, cells, current)
    lines = [cells.headline(err)]
    if place:
        at = place["filename"]
        for part in ("line", "column"):
            at += f":{place[part]}" if part in place else ""
        lines.append("at " + at)
        lines += [place[p] for p in ("snippet", "pointer") if place.get(p)]
    lines += _members(err, cells) + _causes(err, cells)
    hint = _hint(err, cells)
    if hint:
        place["hint"] = hint
        lines.append("hint: " + hint)
    place["summary"] = "\n".join(lines)
    place["user_traceback"] = "\n".join(_told(err, cells, current, 0, set()))
    return place


def _place(err: BaseException, cells: Cells, current: str) -> Dict[str, Any]:
    if _in_cell(err, cells, current):
        return _syntax(err, cells, current)
    inside = [f for f in _frames(err) if cells.of(f.filename)]
    return _of_frame(inside[-1], cells) if inside else {}


def _in_cell(err: BaseException, cells: Cells, current: str) -> bool:
    """Says whether err is the compiler's word about a cell itself."""
    if not _is(err, SyntaxError):
        return False
    if err.filename and cells.of(err.filename):
        return True
    return bool(current) and not any(cells.of(f.filename) for f in _frames(err)) and err.filename in (None, "<unknown>", "<string>", current)


def _syntax(err: Any, cells: Cells, current: str) -> Dict[str, Any]:
    found = cells.of(err.filename or "") or cells.of(current)
    if not found:
        return {}
    shown, text = found
    place: Dict[str, Any] = {"filename": shown}
    if not isinstance(err.lineno, int) or err.lineno < 1:
        return place
    place["line"] = err.lineno
    line = _line(text, err.lineno)
    snippet = line if line is not None else (err.text or "").rstrip("\r\n")
    column, moved = err.offset, 0
    if line is not None and err.text and err.text.rstrip("\r\n") != line and err.text.strip():
        at = line.find(err.text.strip())  # a kernel takes indentation off
        moved = at - (len(err.text) - len(err.text.lstrip())) if at >= 0 else 0
    if isinstance(column, int) and column >= 1:
        column = min(column + moved, len(snippet) + 1)
        end_line, end = getattr(err, "end_lineno", None), getattr(err, "end_offset", None)
        if not isinstance(end_line, int) or end_line < err.lineno or not isinstance(end, int) or end < 1:
            end_line = end = None
        elif end_line == err.lineno:
            end = min(max(end + moved, column + 1), max(len(snippet), column) + 1)
        _point(place, snippet, column, end_line, end)
    else:
        place["snippet"] = _cut(snippet)
    return place


def _of_frame(frame: _Frame, cells: Cells) -> Dict[str, Any]:
    shown, text = cells.of(frame.filename) or ("", "")
    place: Dict[str, Any] = {"filename": shown, "line": frame.line}
    snippet = _line(text, frame.line)
    if snippet is None:
        return place
    start = _column(snippet, frame.start)
    if start is None or snippet.lstrip()[:1] in ("%", "!"):  # a magic is other code than it looks like
        place["snippet"] = _cut(snippet)
        return place
    last = snippet if frame.end_line == frame.line else _line(text, frame.end_line or 0)
    end = _column(last, frame.end) if last is not None else None
    _point(place, snippet, start, frame.end_line if end else None, end)
    return place


def _point(place: Dict[str, Any], snippet: str, column: int, end_line: Optional[int], end: Optional[int]) -> None:
    place["column"] = column
    if end_line and end:
        place["end_line"], place["end_column"] = end_line, end
    stop = end if end and end_line == place["line"] else None
    if stop is None:
        stop = len(snippet.rstrip()) + 1 if end else column + 1
    first = 0
    if len(snippet) > _MAX_LINE:  # a window around the column
        first = max(0, min(column - 1 - _MAX_LINE // 2, len(snippet) - _MAX_LINE))
        snippet = snippet[first : first + _MAX_LINE]
    place["snippet"] = snippet
    before = "".join(_blank(c) for c in snippet[: column - 1 - first])
    marked = sum(_width(c) for c in snippet[column - 1 - first : stop - 1 - first])
    place["pointer"] = before + "^" * max(1, marked)


def _width(c: str) -> int:
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


def _blank(c: str) -> str:
    return "\t" if c == "\t" else " " * _width(c)


def _line(text: str, number: int) -> Optional[str]:
    # splitlines knows more ends of a line than the parser does.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[number - 1] if 1 <= number <= len(lines) else None


def _column(line: Optional[str], at: Optional[int]) -> Optional[int]:
    """Turns a count of bytes, from 0, into one of characters, from 1."""
    if line is None or at is None:
        return None
    return len(line.encode("utf-8", "surrogatepass")[:at].decode("utf-8", "ignore")) + 1


def _cut(text: str, limit: int = _MAX_LINE) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _frames(err: BaseException) -> List[_Frame]:
    """Returns the frames of a traceback: what repeats itself in a row once, and of a
    very deep one the two ends. Its cost for each frame is a few steps of a loop."""
    head: List[List[Any]] = []  # a traceback object, and how many like it come in a row
    tail: Deque[List[Any]] = deque()
    left_out = 0
    last: Optional[List[Any]] = None
    tb = err.__traceback__
    while tb is not None:
        # The last frame stands for itself: where it all ended is marked there.
        if last is not None and tb.tb_next is not None and last[0].tb_lasti == tb.tb_lasti and last[0].tb_frame.f_code is tb.tb_frame.f_code:
            last[1] += 1
        else:
            last = [tb, 1]
            if len(head) < _MOST_RUNS:
                head.append(last)
            else:
                tail.append(last)
                if len(tail) > _MOST_RUNS:
                    left_out += tail.popleft()[1]
        tb = tb.tb_next
    found = [_frame(*run) for run in head]
    if left_out:
        found.append(_Frame("", "", 0, None, left_out))
    return found + [_frame(*run) for run in tail]


def _frame(tb: Any, times: int) -> _Frame:
    code = tb.tb_frame.f_code
    columns = None
    positions = getattr(code, "co_positions", None)
    if positions is not None and tb.tb_lasti >= 0:
        where = next(itertools.islice(positions(), tb.tb_lasti // 2, None), None)
        if where is not None and where[0] == tb.tb_lineno:
            columns = (where[1], where[2], where[3])
    return _Frame(code.co_filename, code.co_name, tb.tb_lineno, columns, times)


class _Stack(traceback.StackSummary):
    """The two ends of a stack."""

    gap, at = 0, 0  # how many frames are left out, and before which of those here

    def format(self, **how: Any) -> List[str]:
        if not self.gap:
            return list(super().format(**how))
        head, tail = (traceback.StackSummary.from_list(part) for part in (self[: self.at], self[self.at :]))
        return [*head.format(**how), f"  [… {self.gap} more …]\n", *tail.format(**how)]


def described(err: BaseException, wanted: Callable[[str], bool]) -> Any:
    """Returns err as the traceback module describes it, with the frames whose file is
    wanted. Of a very deep stack it has the two ends: the module itself takes seconds
    for what no one reads. It may raise what the exception's own methods raise."""
    told = traceback.TracebackException.from_exception(err, limit=0)
    seen = set()
    rest: List[Tuple[Any, Any]] = [(told, err)]
    while rest:
        one, of = rest.pop()
        if one is None or of is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.stack = _ends(of.__traceback__, wanted)
        rest += [(one.__cause__, of.__cause__), (one.__context__, of.__context__)]
        rest += zip(getattr(one, "exceptions", None) or (), _group(of))
    return told


def _ends(tb: Any, wanted: Callable[[str], bool]) -> _Stack:
    depth, node = 0, tb
    while node is not None:
        depth, node = depth + 1, node.tb_next
    stack = _Stack()
    if depth <= 2 * _MOST_TOLD:
        stack += [f for f in traceback.extract_tb(tb) if wanted(f.filename)]
        return stack
    stack += [f for f in traceback.extract_tb(tb, limit=_MOST_TOLD) if wanted(f.filename)]
    stack.at, stack.gap = len(stack), depth - 2 * _MOST_TOLD
    for _ in range(depth - _MOST_TOLD):
        tb = tb.tb_next
    stack += [f for f in traceback.extract_tb(tb) if wanted(f.filename)]
    return stack


def _name(err: BaseException) -> str:
    return type(err).__name__


def _chained(err: BaseException) -> Tuple[Optional[BaseException], int]:
    if err.__cause__ is not None:
        return err.__cause__, 0
    if err.__context__ is not None and not err.__suppress_context__:
        return err.__context__, 1
    return None, 0


def _group(err: BaseException) -> Tuple[Any, ...]:
    found = getattr(err, "exceptions", None) if hasattr(err, "derive") else None
    return found if isinstance(found, tuple) else ()


def _short(err: BaseException, cells: Cells) -> str:
    place = _place(err, cells, "")
    at = f" (at {place['filename']}:{place['line']})" if "line" in place else ""
    return cells.headline(err).split("\n", 1)[0] + at


def _causes(err: BaseException, cells: Cells) -> List[str]:
    lines: List[str] = []
    seen = {id(err)}
    cause, kind = _chained(err)
    while cause is not None and id(cause) not in seen and len(lines) < _MAX_CHAIN:
        seen.add(id(cause))
        lines.append(("caused by ", "while handling ")[kind] + _short(cause, cells))
        cause, kind = _chained(cause)
    return lines


def _members(err: BaseException, cells: Cells, depth: int = 1) -> List[str]:
    lines: List[str] = []
    group = _group(err)
    for one in group[:_MAX_CHAIN]:
        lines.append("  " * depth + "- " + _short(one, cells))
        if depth < 4:
            lines += _members(one, cells, depth + 1)
    if len(group) > _MAX_CHAIN:
        lines.append("  " * depth + f"- … {len(group) - _MAX_CHAIN} more")
    return lines


def _told(err: BaseException, cells: Cells, current: str, depth: int, seen: set) -> List[str]:
    """Returns the traceback of err with the frames of libraries folded."""
    lines: List[str] = []
    seen.add(id(err))
    before, kind = _chained(err)
    if before is not None and id(before) not in seen and len(seen) <= _MAX_CHAIN:
        lines += _told(before, cells, current, depth, seen) + _CHAINED[kind].split("\n")
    entries = _entries(_frames(err), cells)
    if _in_cell(err, cells, current):
        entries = []
        place = _syntax(err, cells, current)
        lines.append(f'  File "{place.get("filename", "?")}", line {place.get("line", "?")}')
        lines += ["    " + place[p] for p in ("snippet", "pointer") if place.get(p)]
    elif entries:
        lines.append("Traceback (most recent call last):")
    lines += itertools.chain.from_iterable(_fewer(entries))
    lines.append(cells.headline(err))
    notes = getattr(err, "__notes__", None)
    lines += [_cut(str(n), _MAX_TEXT) for n in notes[:_MAX_CHAIN]] if isinstance(notes, list) else []
    group = _group(err)
    for n, one in enumerate(group[:_MAX_CHAIN], 1):
        lines.append(f"  +-- {n} of {len(group)}:")
        if depth < 4:
            lines += ["  | " + line for line in _told(one, cells, "", depth + 1, seen)]
    return lines


def _entries(frames: List[_Frame], cells: Cells) -> List[Tuple[List[str], int]]:
    """Returns the lines of each entry of a traceback, and how many times it comes:
    frames of the user with their code, and runs of others as one line. What is
    before the first cell is the machinery that runs cells."""
    while frames and not cells.of(frames[0].filename):
        frames = frames[1:]
    frames = [f for f in frames if not _MACHINERY.search(f.filename)]
    entries: List[Tuple[List[str], int]] = []
    folded: List[_Frame] = []
    for n, frame in enumerate(frames):
        if cells.of(frame.filename):
            place = _of_frame(frame, cells)
            code = [place[p] for p in ("snippet", "pointer") if place.get(p)]
            if n < len(frames) - 1 and len(code) > 1:
                code.pop()  # where it went on is marked once, at the end
            if code:
                strip = len(code[0]) - len(code[0].lstrip())
                code = ["    " + c[strip:] for c in code]
            shown = f'  File "{place["filename"]}", line {frame.line}, in {frame.name}'
        elif not frame.filename:
            shown, code = "", []  # _fewer says how many there are
        elif _of_user(frame.filename):
            shown, code = f'  File "{frame.filename}", line {frame.line}, in {frame.name}', _source(frame)
        else:
            folded.append(frame)
            continue
        entries += _fold(folded)
        folded = []
        entries.append(([shown, *code], frame.times))
    return entries + _fold(folded)


_MACHINERY = re.compile(r"^<coppice>/|[/\\\\]site-packages[/\\\\](?:IPython|ipykernel)[/\\\\]")


def _fewer(entries: List[Tuple[List[str], int]]) -> List[List[str]]:
    """Tells an entry that repeats itself twice and no more, and leaves out the
    middle of what is too long then."""
    kept: List[Tuple[List[str], int]] = []  # and what each counts when it is left out
    for entry, run in itertools.groupby(entries, key=lambda e: e[0]):
        times = sum(n for _, n in run)
        if not entry[0]:
            kept.append(([f"  [… {times} more …]"], times))
            continue
        kept += [(entry, 1)] * min(times, 2)
        if times > 2:
            kept.append(([f"  [the same {times - 2} more times]"], 1))
    if len(kept) > _MAX_FRAMES:
        half = _MAX_FRAMES // 2
        kept[half:-half] = [([f"  [… {sum(n for _, n in kept[half:-half])} more …]"], 1)]
    return [entry for entry, _ in kept]


def _fold(frames: List[_Frame]) -> List[Tuple[List[str], int]]:
    if not frames:
        return []
    names = list(dict.fromkeys(_library(f.filename) for f in frames))
    last = frames[-1]
    more = ", …" if len(names) > 4 else ""
    count = sum(f.times for f in frames)
    plural = "s" if count > 1 else ""
    return [([f"  [{count} frame{plural} in {', '.join(names[:4])}{more}; the last is {last.name}, line {last.line}]"], 1)]


def _library(filename: str) -> str:
    for root in _ROOTS:
        if filename.startswith(root + os.sep):
            return filename[len(root) + 1 :]
    return "/".join(re.split(r"[/\\]", filename)[-2:])


_ROOTS = sorted({p for k in ("purelib", "platlib", "stdlib", "platstdlib") for p in [sysconfig.get_paths().get(k, "")] if p}, key=len, reverse=True)


def _of_user(filename: str) -> bool:
    """Says whether a file is one of the user's own: under the working directory
    and no package that was installed."""
    if filename[:1] == "<" or any(filename.startswith(r + os.sep) for r in _ROOTS):
        return False
    if "site-packages" in filename or "dist-packages" in filename:
        return False
    try:
        return os.path.abspath(filename).startswith(os.getcwd() + os.sep)
    except OSError:
        return False


def _source(frame: _Frame) -> List[str]:
    import linecache

    line = linecache.getline(frame.filename, frame.line).strip()
    return ["    " + _cut(line)] if line else []


def _hint(err: BaseException, cells: Cells) -> str:
    if _is(err, ModuleNotFoundError):
        name = str(err.name or "").split(".")[0]
        if not name or name in sys.modules or str(err).endswith("is not imported"):
            return ""  # or what it is instead has been said
        return f"there is no module {name} here; install it with %pip install, if a package has it"
    if _is(err, SyntaxError):
        if isinstance(err.filename, str) and isinstance(err.lineno, int) and not cells.of(err.filename) and any(cells.of(f.filename) for f in _frames(err)):
            return f"the code that is wrong is line {err.lineno} of {err.filename}"
        return ""
    if _is(err, NameError):
        return _similar(str(getattr(err, "name", None) or _quoted(cells.message(err))), _names(err))
    if _is(err, AttributeError) and getattr(err, "name", None):
        return _similar(str(err.name), [n for n in object.__dir__(getattr(err, "obj", None)) if not n.startswith("__")])
    if _is(err, FileNotFoundError) and not (isinstance(err.filename, str) and os.path.isabs(err.filename)):
        return _working_directory(err.filename)
    if _is(err, RuntimeError) and "asyncio.run() cannot be called" in cells.message(err):
        return "an event loop runs already; use await at the top level of the cell"
    if _is(err, RuntimeError) and cells.message(err) == "no running event loop":
        return "the event loop of a session runs while a cell awaits: await something in this cell, for example asyncio.gather(...)"
    return ""


def _working_directory(asked: Any) -> str:
    try:
        now = os.getcwd()
        return f"the working directory is {now}" if isinstance(asked, str) else ""
    except OSError:
        pass
    try:
        gone = os.readlink("/proc/self/cwd")
    except OSError:  # another system
        return "the working directory of this session was deleted; os.chdir enters another"
    if gone.endswith(" (deleted)"):
        gone = gone[: -len(" (deleted)")]
    if os.path.isdir(gone):
        return f"the working directory of this session was deleted, and made again since: os.chdir({gone!r}) enters the new one"
    return f"the working directory of this session was deleted: {gone}"


def _quoted(text: str) -> str:
    found = re.search(r"'([^']+)'", text)
    return found.group(1) if found else ""


def _names(err: BaseException) -> List[str]:
    tb = err.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    if tb is None:
        return []
    frame = tb.tb_frame
    return [*frame.f_locals, *frame.f_globals, *dir(frame.f_builtins if hasattr(frame, "f_builtins") else __builtins__)]


def _similar(name: str, names: List[str]) -> str:
    import difflib

    if not name or len(names) > 5000:
        return ""
    found = difflib.get_close_matches(name, [n for n in names if isinstance(n, str) and n != name and not (n.startswith("_") and name[0] != "_")], 1, 0.75)
    return f"did you mean {found[0]}?" if found else ""
