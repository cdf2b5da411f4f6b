"""A kernel's memory on disk: what freeze and rebuild, which write and read that of a
session of the runner, need of a kernel of IPython. The module is put into a kernel when
it is first asked for."""

from __future__ import annotations

import builtins
import json
import linecache
import os
import re
import sys
import threading
from typing import Any, Dict, List, Tuple

# What IPython keeps of cells that have run: it begins anew.
_HISTORY = re.compile(r"_i?\d+|_{1,3}|_i{1,3}|In|Out|_dh|_ih|_oh")
# The packages whose threads are the kernel's own, and those whose tasks are.
_THREADS = ("ipykernel", "IPython", "coppice_", "pydevd", "_pydevd", "debugpy")
_TASKS = ("ipykernel", "IPython", "tornado", "zmq")
# Variables that are about the kernel's host, which another one has anew.
_HOST = ("PI_", "JPY_", "KERNEL_")
_PUT = ("input", "display", "get_ipython", "exit", "quit")
# Who wrote an image.
_KERNEL = "ipython"

# What the last request is answered with, as hexadecimal JSON.
told = ""


class Session:
    """What freeze and rebuild see of the kernel."""

    def __init__(self, shell: Any, cell: Any) -> None:
        if cell._names is None:  # no cell has run: this is what a reset goes back to
            cell.begin()
        self._shell = shell
        self.namespace, self.module = shell.user_ns, shell.user_module
        # IPython puts some into builtins for each cell.
        self._baseline, self._builtins = cell._names, {**cell._builtins, **{n: vars(builtins)[n] for n in _PUT if n in vars(builtins)}}
        (self._cwd, self._env), self._env_patch = cell.began, {}  # type: ignore[var-annotated]
        self.commands, self._ask = object(), object()
        self.compiler = self

    @property
    def count(self) -> int:
        return int(self._shell.execution_count)

    @count.setter
    def count(self, n: int) -> None:
        self._shell.execution_count = max(n, 1)

    @property
    def _flags(self) -> int:
        return int(self._shell.compile.flags)

    @_flags.setter
    def _flags(self, flags: int) -> None:
        self._shell.compile.flags = flags

    def register(self, name: str, text: str) -> None:
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)

    def history(self) -> List[str]:
        hidden = getattr(self._shell, "user_ns_hidden", {})
        return [n for n in self.namespace if isinstance(n, str) and n in hidden and _HISTORY.fullmatch(n)]


def _own(name: Any) -> bool:
    return isinstance(name, str) and name.startswith(_THREADS)


def running() -> List[Tuple[str, str, str]]:
    """Returns what the user's code has running besides: its name, its type, and what
    becomes of it."""
    found = []
    for t in threading.enumerate():
        target = getattr(t, "_target", None)
        of = (type(t).__module__, getattr(target, "__module__", None), type(getattr(target, "__self__", None)).__module__)
        if t is not threading.main_thread() and not any(map(_own, of)):
            found.append((f"thread {t.name}", f"{type(t).__module__}.{type(t).__qualname__}", "a thread ends with its process"))
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            tasks = asyncio.all_tasks(asyncio.get_running_loop())
        except RuntimeError:
            tasks = set()
        for task in tasks:
            code = getattr(task.get_coro(), "cr_code", None)
            file = getattr(code, "co_filename", "").replace(os.sep, "/")
            if not task.done() and not any(f"/{own}/" in file for own in _TASKS) and task is not asyncio.current_task():
                found.append((f"task {task.get_name()}", "asyncio.Task", "a task ends with its event loop"))
    return found


def _session() -> Session:
    shell = sys.modules["IPython"].get_ipython()
    return Session(shell, sys.modules["coppice_cell"].cell)


def _tell(answer: Dict[str, Any]) -> None:
    global told
    told = json.dumps(answer).encode().hex()


def freeze(path: str, names: List[str], apart: bool, whole: bool) -> None:
    """Writes what the kernel has in memory to a file."""
    session = _session()
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        write = sys.modules["coppice_runner.freeze"].freeze
        image = write(session, fd, [*names, *session.history()], apart, running(), whole)
    finally:
        os.close(fd)
    image["kernel"] = _KERNEL
    around = image["around"]
    if "env" in around:
        around["env"] = {n: v for n, v in around["env"].items() if not n.startswith(_HOST)}
    _tell({"image": image})


def thaw(path: str, image: str) -> None:
    """Takes over what another kernel had in memory, from a file."""
    rebuild = sys.modules["coppice_runner.rebuild"]
    manifest = json.loads(image)
    session = _session()
    why = "it was written by a session of the runner, and this is a kernel of IPython" if manifest.get("kernel") != _KERNEL else rebuild.unlike(manifest)
    if why:
        _tell({"unlike": why})
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _tell({"thawed": rebuild.thaw(session, fd, manifest)})
    except BaseException as err:  # whatever the user's objects raise when they are made
        _tell({"failed": f"{type(err).__name__}: {err}"[:1000]})
    finally:
        os.close(fd)
