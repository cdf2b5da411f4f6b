"""Signal handlers of the user's code: what they raise arrives in that code.

Python runs a handler between any two instructions of the main thread. One that
raises, as a timer for a timeout does, would do so in the middle of this package's
code too: a frame would be half written, a request half read. So a handler is held
by a guard. When it interrupts the user's code, the guard is not to be noticed.
When it interrupts this package's, what it raises is kept until the package hands
control back; between cells nothing could catch it, and it is printed.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from _thread import get_ident
from typing import Any, Optional

from . import errors
from .interrupts import Interrupts, calls_user, ours

# How often what a handler raised is printed between two cells: a timer that goes on
# would leave no time for the next one.
_MOST_TOLD = 3

_gate: Optional[Interrupts] = None  # of the session that this process is; None: it is not a session

_set, _get = signal.signal, signal.getsignal
_mask = getattr(signal, "pthread_sigmask", None)
_fork = getattr(os, "fork", None)


class Guard:
    """A handler of the user's, as the system has it."""

    __slots__ = ("handler",)

    def __init__(self, handler: Any) -> None:
        self.handler = handler

    @calls_user
    def __call__(self, signum: int, frame: Any) -> None:
        gate = _gate
        if gate is None or gate.reaches_user(frame):
            self.handler(signum, frame)
            return
        try:
            self.handler(signum, frame)
        except BaseException as err:  # a handler can raise anything
            if not gate.keep(err):
                gate.told += 1
                if gate.told <= _MOST_TOLD:
                    tell(err)


def tell(err: BaseException) -> None:
    """Prints what cannot be caught."""
    try:
        lines = ["A signal handler raised this while no code of a cell ran:", *errors.describe(err)["traceback"]]
        sys.stderr.write("\n".join(lines) + "\n")
    except BaseException:  # there is nowhere to print to
        pass


def install() -> None:
    """Puts the guards between the user's code and the system."""
    signal.signal, signal.getsignal = _signal, _getsignal
    if _mask is not None:
        signal.pthread_sigmask = _pthread_sigmask
    if _fork is not None:
        os.fork = _forks


def serve(gate: Interrupts) -> None:
    """Says whose cells handlers interrupt from now on."""
    global _gate
    _gate = gate


def leave(gate: Interrupts) -> None:
    """Has handlers do what they do in any program from now on: in a process that the
    user's code has forked. What has come before is raised."""
    global _gate
    try:
        err = gate.leave()
    finally:
        _gate = None
    if err is not None:
        raise err


@functools.wraps(_set)
def _signal(signalnum: Any, handler: Any) -> Any:
    if callable(handler) and type(handler) is not Guard and not _is_ours(handler):
        handler = Guard(handler)
    return _bare(_set(signalnum, handler))


@functools.wraps(_get)
def _getsignal(signalnum: Any) -> Any:
    return _bare(_get(signalnum))


def _pthread_sigmask(how: Any, mask: Any) -> Any:
    if _gate is not None:
        _gate.masked = True
    assert _mask is not None
    return _mask(how, mask)


if _mask is not None:
    functools.update_wrapper(_pthread_sigmask, _mask)


def _forks() -> int:
    """What is registered for a fork is Python code, in which a signal is met that has come
    during the fork, and Python drops what is raised there: code that does little but fork
    could not be interrupted. As this is the package's own frame, it is kept until after."""
    assert _fork is not None
    gate = _gate
    if gate is None or get_ident() != gate.main:
        return _fork()
    gate.forking = True
    try:
        pid = _fork()
    finally:
        gate.forking = False
    if pid != 0:
        gate.check()
    elif gate.away:
        leave(gate)
    return pid


if _fork is not None:
    functools.update_wrapper(_forks, _fork)


def _is_ours(handler: Any) -> bool:
    code = getattr(handler, "__code__", None)
    return code is not None and ours(code)


def _bare(handler: Any) -> Any:
    return handler.handler if type(handler) is Guard else handler
