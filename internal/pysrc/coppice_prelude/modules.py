"""Loads the user's own modules into a session: what they make public becomes
names of the session, and their functions helpers."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from time import monotonic
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional

from .docs import CATEGORY

PACKAGE = "coppice_modules"

# What install() has put into the session's namespace: what is added here comes
# back after a reset.
installed: Dict[str, Any] = {}

# Why modules were not loaded, a sentence each.
failed: List[str] = []


class _TooLong(BaseException):
    pass


def load(namespace: Dict[str, Any], sources: List[List[Optional[str]]], seconds: float) -> None:
    """Loads modules in their order. Each source is [path, text, problem]; with a
    problem there is no text. All have the seconds together, and each a tenth of them at
    least, so that a slow one neither holds a session up for long nor keeps the next one
    out. One that is not loaded by then, whatever it does, is noted in failed."""
    begun = monotonic()
    package = ModuleType(PACKAGE)
    package.__path__ = []  # type: ignore[attr-defined]
    sys.modules[PACKAGE] = package
    for path, text, problem in sources:
        bound = max(begun + seconds - monotonic(), seconds / 10)
        try:
            if problem:
                raise OSError(problem)
            with _bounded(bound):
                _load(namespace, str(path), text or "")
        except _TooLong:
            failed.append(f"{path}: it was not loaded within {round(bound, 2):g} s")
        except OSError as err:
            failed.append(f"{path}: {err}" if problem else f"{path}: {_line(err)}")
        except BaseException as err:  # sys.exit() and Ctrl-C too: a module is no reason to end a session
            failed.append(f"{path}: {_line(err)}")


def _line(err: BaseException) -> str:
    if isinstance(err, SyntaxError):
        return f"{type(err).__name__}: {err.msg} (line {err.lineno})"
    where = ""
    trace = err.__traceback__
    while trace is not None:  # the last line of the module itself
        if trace.tb_frame.f_globals.get("__name__", "").startswith(PACKAGE + "."):
            where = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    try:
        said = " ".join(str(err).split())[:500]
    except Exception:  # its __str__ is the module's
        said = ""
    return type(err).__name__ + (": " + said if said else "") + where


def _load(namespace: Dict[str, Any], path: str, text: str) -> None:
    stem = path.replace("\\", "/").rpartition("/")[2][: -len(".py")]
    name = f"{PACKAGE}.{stem}"
    module = ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    try:
        # What a module prints while it is loaded is not output of a cell.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        names = _public(module)
    except BaseException:
        del sys.modules[name]
        raise
    setattr(sys.modules[PACKAGE], stem, module)
    category = getattr(module, "__category__", stem)
    for value in names.values():
        if getattr(value, "__module__", None) == name and callable(value) and not isinstance(value, type):
            with contextlib.suppress(AttributeError, TypeError):
                if CATEGORY not in vars(value):
                    setattr(value, CATEGORY, str(category))
    namespace.update(names)
    installed.update(names)
    shell = namespace.get("get_ipython")
    with contextlib.suppress(Exception):  # an interpreter without IPython
        shell().user_ns_hidden.update(names)  # type: ignore[misc]


def _public(module: ModuleType) -> Dict[str, Any]:
    """Returns what a module offers: the names in __all__, else those without an
    underscore that are not modules."""
    listed = vars(module).get("__all__")
    if listed is not None:
        return {str(name): getattr(module, name) for name in listed}
    return {n: v for n, v in vars(module).items() if not n.startswith("_") and not isinstance(v, ModuleType) and n != "annotations"}


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raises _TooLong in the code under it, and again if that goes on."""
    try:
        import signal

        signal.SIGALRM
        usable = threading.current_thread() is threading.main_thread()
    except (ImportError, AttributeError):
        usable = False
    if not usable:  # the start of the session has a bound of its own
        yield
        return
    armed = [True]

    def over(_number: int, _frame: Any) -> None:
        if armed[0]:
            raise _TooLong

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        armed[0] = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before if before is not None else signal.SIG_DFL)


def told() -> str:
    """Returns why modules were not loaded, a line each."""
    return "\n".join(failed)
