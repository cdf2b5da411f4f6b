"""What happens around a fork.

Modules of the standard library have functions called before and after every
fork (os.register_at_fork), which put their locks right where other threads may
have held them. The fork server has one thread. Those functions find nothing to
do there, and yet write to a hundred pages, which then are every session's own.
So the server leaves them out: share() collects them while modules are imported,
and fork() does without them. All other forks, of a session as a whole
and by the user's code, call them as ever.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any, Callable, Optional

# The modules whose functions have nothing to do when a process with one thread
# forks. What random does, forkserver.take_seat does too, and what asyncio does,
# forkserver.Server.leave.
_NEEDLESS = ("asyncio.events", "concurrent.futures.thread", "logging", "random", "threading")

_register = getattr(os, "register_at_fork", None)
_leave_out = False


def share() -> None:
    """Begins to take the functions that modules register."""
    if _register is not None:
        os.register_at_fork = _take
        _take_back(getattr(sys.modules.get("threading"), "_after_fork", None))


def settle() -> None:
    """Ends that: what is registered from now on is called at every fork."""
    if _register is not None:
        os.register_at_fork = _register


def fork() -> int:
    """Forks without the functions taken. The caller's process has one thread."""
    global _leave_out
    _leave_out = True
    try:
        return os.fork()
    finally:
        _leave_out = False


def _take(**hooks: Any) -> None:
    assert _register is not None
    if sys._getframe(1).f_globals.get("__name__") in _NEEDLESS:
        hooks = {when: _unless_left_out(hook) for when, hook in hooks.items()}
    _register(**hooks)


def _take_back(hook: Any) -> None:
    """Takes a function that is registered already: site imports what is in the .pth
    files of an installation, and threading may be among it. Which functions are
    registered cannot be asked, and none can be taken out: it becomes another one in
    its place."""
    if not isinstance(hook, types.FunctionType) or hook.__closure__ or hook.__defaults__ or hook.__code__.co_argcount:
        return
    real = types.FunctionType(hook.__code__, hook.__globals__, hook.__name__)
    hook.__defaults__ = (_unless_left_out(real),)
    hook.__code__ = (lambda call: call()).__code__


def _unless_left_out(hook: Optional[Callable[[], Any]]) -> Callable[[], Any]:
    def call() -> None:
        if not _leave_out and hook is not None:
            hook()

    return call


def new_main_thread() -> None:
    """Tells threading, after fork(), that its main thread has another number."""
    threading = sys.modules.get("threading")
    if threading is not None:
        note = getattr(threading.main_thread(), "_set_native_id", None)
        if note is not None:
            note()
