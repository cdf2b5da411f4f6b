"""What SIGINT does: it raises KeyboardInterrupt in the cell's code, and never
anywhere else.

A signal handler runs between any two instructions of the main thread, so also
in the middle of this package's own code, where an exception would lose output
or leave a lock taken. The handler therefore looks at the frame it interrupted:
the innermost frame of this package decides. When it is one that does nothing
but call the user's code (see calls_user), the exception is raised; else it is
kept and raised when the package hands control back. What the user's own signal
handlers raise (see signals.py) is treated the same.
"""

from __future__ import annotations

import _signal
import _thread
import signal
import sys
from _thread import get_ident
from types import CodeType, FrameType
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple, TypeVar

from . import processes

# The file names of this package's code, as the host compiles it.
FILES = "<coppice>/"

_SIGINT = int(signal.SIGINT)  # signal's own functions take their time with enums

# What this package needs to get in the main thread.
_OURS = [_SIGINT] + [int(getattr(signal, name)) for name in ("SIGXCPU",) if hasattr(signal, name)]

_calls_user: Set[CodeType] = set()

F = TypeVar("F", bound=Callable[..., Any])


def calls_user(function: F) -> F:
    """Marks a function that keeps no state while it calls the user's code, so
    that an interrupt may pass through it."""
    _calls_user.add(function.__code__)
    return function


def ours(code: CodeType) -> bool:
    """Says whether code belongs to this package."""
    return code.co_filename.startswith(FILES)


class Interrupts:
    """The gate between SIGINT and the cells."""

    def __init__(self) -> None:
        self.main = get_ident()
        self.current = 0  # the cell that runs, 0 between cells; written by the main thread
        # The cell that is to be interrupted: set by the side thread, cleared by
        # the main thread when it raises.
        self.wanted = 0
        self._asked = 0  # the cell that the side thread asked for last
        self._sent = 0  # the cell that it sent a signal for, until the main thread has got that
        self._told: Dict[Tuple[int, bytes], object] = {}  # programs that the interrupt was sent to
        self._begun = 0.0  # when the cell began, by the monotonic clock
        self.kept: Optional[BaseException] = None  # what a handler of the user raised in this package's code; the main thread's
        self.told = 0  # how often that belonged to no cell since the last one
        self.forking = False  # the main thread forks: what is raised in what is registered for that is dropped
        self.away = False  # this process was forked off by the user's code
        self.masked = False  # code has changed which signals its threads get
        self._handler = self._on_signal

    def restore(self) -> None:
        """Makes SIGINT ours again, whatever an earlier cell did to it."""
        # Python does not know what C code does.
        if _signal.getsignal(_SIGINT) is not self._handler or "ctypes" in sys.modules:
            _signal.signal(_SIGINT, self._handler)
            self._sent = 0  # whoever had the signal has got it
        if self.masked:
            self.masked, self._sent = False, 0
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _OURS)

    def installed(self) -> bool:
        """Says whether SIGINT is ours, as far as Python knows."""
        return _signal.getsignal(_SIGINT) is self._handler

    def request(self, ident: int) -> None:
        """Interrupts a cell, or the one of that number when it begins, and what
        the cell has started: a terminal would do the same. It is called by the
        side thread."""
        self._asked = self.wanted = ident
        if self.current == ident:
            self._told = {}
            self._deliver(ident)

    def _deliver(self, ident: int) -> None:
        # The cell first: it is to see the interrupt, not a child that died of it.
        # But it may have ended by the time that its children are known.
        started = self._started(ident)
        self._sent = ident
        signal.pthread_kill(self.main, signal.SIGINT)
        self.tell(started)
        self.tell(self._started(ident))

    def _started(self, ident: int) -> List[int]:
        """Returns what a cell has started, nothing when it has ended: then it may be
        the next one that has."""
        try:
            found = processes.started_since(self._begun)
        except Exception:  # code has hooked into what this takes: the cell is interrupted all the same
            return []
        return found if self.current == ident else []

    def tell(self, pids: Iterable[int]) -> None:
        """Sends the interrupt of this moment to processes, once to each: a second
        one makes many programs drop everything. A process that has begun to run
        another program gets it again, since a shell that gets it between its fork
        and its exec forgets it. Any thread may call it."""
        told, mine = self._told, object()
        for pid in pids:
            if told.setdefault((pid, processes.program_of(pid)), mine) is mine:
                processes.interrupt(pid)

    def raise_now(self, frame: Optional[FrameType]) -> None:
        """Interrupts the cell from another signal's handler."""
        self.wanted = self.current
        self._obey(frame)

    def unheeded(self) -> bool:
        """Says whether an interrupt came to nothing so far: it met this
        package's own code on its way back, or was swallowed below Python, as
        os.system() does while its child runs. The side thread then asks again.
        """
        return self.wanted != 0 and self.wanted == self.current and self.installed()

    def again(self) -> None:
        """Interrupts once more what did not heed it, and what has started
        since."""
        ident = self.current
        if self.unheeded():
            self._deliver(ident)
            # Where code below Python has blocked or ignored the signal, the
            # interpreter can still be interrupted directly.
            self._sent = ident
            _thread.interrupt_main()

    def begin(self, ident: int, now: float) -> None:
        """Opens the gate."""
        self._begun = now
        self.told = 0
        self.current = ident

    def end(self) -> None:
        """Closes the gate. What still waits came too late."""
        ended, self.current = self.current, 0
        if self.wanted == ended:
            self.wanted = 0

    def keep(self, err: BaseException) -> bool:
        """Keeps what a handler of the user raised in this package's code, until
        check. Returns False when no cell runs that could get it."""
        if not self.current:
            return False
        self.kept = err
        return True

    def held(self) -> bool:
        """Says whether the calling thread forks, and raises what comes meanwhile after that."""
        return self.forking and get_ident() == self.main

    def forked(self) -> None:
        """Forgets what is not for the process that was forked off: what comes from now
        on is for that."""
        self.away = True
        self.wanted = self._asked = self._sent = 0
        self.kept = None

    def leave(self) -> Optional[BaseException]:
        """Has SIGINT do what it does in any program, for good. Returns what has come
        before."""
        try:
            if self.installed():
                _signal.signal(_SIGINT, signal.default_int_handler)
        finally:
            wanted, self.current = self.wanted, 0
        return KeyboardInterrupt() if wanted else self.left()

    def left(self) -> Optional[BaseException]:
        """Returns what was kept and came too late for its cell."""
        err, self.kept = self.kept, None
        return err

    def pending(self) -> bool:
        """Says whether check would raise."""
        return self.waiting() or (self.kept is not None and get_ident() == self.main and not self.forking)

    def waiting(self) -> bool:
        """Says whether the calling thread has an interrupt to obey."""
        return self.wanted != 0 and self.wanted == self.current and get_ident() == self.main and not self.forking

    def check(self) -> None:
        """Raises the interrupt that waits. It is called where this package
        hands control back to the user's code, and when the code has ended."""
        if self.wanted and self.waiting():
            self.wanted = 0
            raise KeyboardInterrupt
        if self.kept is not None and get_ident() == self.main and not self.forking:
            err, self.kept = self.kept, None
            raise err

    def reaches_user(self, frame: Optional[FrameType]) -> bool:
        """Says whether a handler that interrupts a frame interrupts a cell's
        code, and may raise."""
        if not self.current:
            return False
        while frame is not None:
            if ours(frame.f_code):
                return frame.f_code in _calls_user
            frame = frame.f_back
        return True

    def _on_signal(self, _signum: int, frame: Optional[FrameType]) -> None:
        sent, self._sent = self._sent, 0
        if not self.current or (sent and sent != self.current):
            return  # it was sent when its cell had just ended
        self._obey(frame)

    def _obey(self, frame: Optional[FrameType]) -> None:
        if not self.wanted and self._asked != self.current:
            self.wanted = self.current  # somebody else sent the signal
        if self.wanted != self.current:
            return  # another cell was meant, or the interrupt was raised already
        if not self.reaches_user(frame):
            return  # check() raises it
        self.wanted = 0
        raise KeyboardInterrupt
