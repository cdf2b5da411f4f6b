"""input(), getpass and sys.stdin, answered by the host."""

from __future__ import annotations

import io
import threading
from typing import Any, Callable, Dict, List, Optional

from .interrupts import Interrupts
from .wire import encode

_STEP = 0.02


class StdinNotAllowed(RuntimeError):
    """Raised by a read from stdin when no answer is possible."""


class InputTimeout(TimeoutError):
    """Raised by input() when no answer came in time."""


InputTimeout.__module__ = "coppice"


class Input:
    """Questions to the host. Any thread may ask."""

    def __init__(self, interrupts: Interrupts, ask: Callable[[bytes], bool], flush: Callable[[], None]) -> None:
        self._interrupts = interrupts
        self._ask = ask
        self._flush = flush
        self._lock = threading.Lock()
        self._count = 0  # guarded by the lock
        self._answers: Dict[str, List[Any]] = {}  # by request: an event, the answer, how long it was waited for, and why there is none; guarded by the lock
        self.allowed = False  # of the running cell
        self.requested = False  # a question of the running cell could not be asked

    def read(self, prompt: object = "", password: bool = False) -> str:
        """Asks for a line."""
        self._flush()
        text = str(prompt)
        if not self.allowed:
            self.requested = True
            raise StdinNotAllowed("input was requested, but this call cannot be answered: provide the value in the code")
        event, cell = threading.Event(), self._interrupts.current
        with self._lock:
            self._count += 1
            ident = f"{cell}.{self._count}"
            self._answers[ident] = [event, None, 0.0, ""]
        try:
            if not self._ask(encode({"type": "input_request", "request": ident, "prompt": text, "password": password})):
                raise StdinNotAllowed("the cell that asked for input has ended")
            while not event.wait(_STEP):
                self._interrupts.check()
                if self._interrupts.current != cell:
                    raise StdinNotAllowed("the cell that asked for input has ended")
            _, value, idle, reason = self._answers[ident]
            if value is not None:
                return str(value)
            if idle:
                raise InputTimeout(f"input request timed out: no answer came within {idle:g} seconds")
            raise EOFError(f"there is no answer: {reason}" if reason else "there is no more input")
        finally:
            with self._lock:
                self._answers.pop(ident, None)

    def answer(self, ident: str, value: Optional[str], idle: float, reason: str = "") -> None:
        """Delivers an answer; the side thread calls it. None says that there is
        none, with how long somebody was waited for, or why. An answer to nothing is
        dropped."""
        with self._lock:
            waiting = self._answers.get(ident)
            if waiting is not None and not waiting[0].is_set():
                waiting[1:] = value, idle, reason
                waiting[0].set()


class Stdin(io.TextIOBase):
    """sys.stdin of a session: a line is a question to the host."""

    encoding = "utf-8"
    errors = "strict"
    newlines = None

    def __init__(self, source: Input) -> None:
        super().__init__()
        self._source = source
        self.name = "<stdin>"
        self.mode = "r"

    def readline(self, _size: int = -1) -> str:  # type: ignore[override]
        return self._source.read() + "\n"

    def read(self, _size: Optional[int] = -1) -> str:
        return self.readline()

    def __next__(self) -> str:
        return self.readline()

    def close(self) -> None:
        """Does nothing: exit() closes sys.stdin, and the session goes on."""

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 0
