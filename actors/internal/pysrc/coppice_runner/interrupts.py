"""What SIGINT does: it raises KeyboardInterrupt in the cell's code, and never
anywhere else.

A signal handler runs between any two instructions of the main thread, so also
in the middle of this package's own code, where an exception would lose output
or leave a lock taken. The handler therefore looks at the frame it interrupted:
the innermost frame of this package decides. When it is one that does nothing
but call the user's code (see calls_user), the exception is raised; else it is
kept and raised when the package hands control back.
"""

from __future__ import annotations

import signal
import threading
from types import CodeType, FrameType
from typing import Any, Callable, Optional, Set, TypeVar

# The file names of this package's code, as the host compiles it.
FILES = "<coppice>/"

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
        self.main = threading.get_ident()
        self.current = 0  # the cell that runs, 0 between cells; written by the main thread
        self._wanted = 0  # the cell that is to be interrupted; written by the side thread
        self.pending = False  # an interrupt waits; the main thread's

    def install(self) -> None:
        """Makes SIGINT ours again, whatever an earlier cell did to it."""
        signal.signal(signal.SIGINT, self._on_signal)

    def request(self, ident: int) -> None:
        """Interrupts a cell, or the one of that number when it begins. It is
        called by the side thread."""
        self._wanted = ident
        if self.current == ident:
            signal.pthread_kill(self.main, signal.SIGINT)

    def begin(self, ident: int) -> None:
        """Opens the gate."""
        self.current = ident
        self.pending = self._wanted == ident

    def end(self) -> None:
        """Closes the gate. What still waits came too late."""
        self.current = 0
        self.pending = False

    def waiting(self) -> bool:
        """Says whether the calling thread has an interrupt to obey."""
        return self.pending and threading.get_ident() == self.main

    def check(self) -> None:
        """Raises the interrupt that waits. It is called where this package
        hands control back to the user's code."""
        if self.pending and threading.get_ident() == self.main:
            self.pending = False
            raise KeyboardInterrupt

    def _on_signal(self, _signum: int, frame: Optional[FrameType]) -> None:
        wanted, self._wanted = self._wanted, 0
        if not self.current or wanted not in (0, self.current):
            return  # nothing runs, or another cell was meant
        while frame is not None:
            if ours(frame.f_code):
                if frame.f_code not in _calls_user:
                    self.pending = True
                    return
                break
            frame = frame.f_back
        raise KeyboardInterrupt
