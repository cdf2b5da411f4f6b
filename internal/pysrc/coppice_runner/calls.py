"""How a session's calls of the host travel: a frame on main, and its result on
control."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, Dict, List

from .hostcalls import Call, HostCallError
from .interrupts import Interrupts

# How long a waiting thread goes without looking whether it is to stop: the main
# thread, which interrupts are for, and any other.
_STEP_MAIN, _STEP_OTHER = 0.02, 0.2


class Calls:
    """The transport of a session. Any thread may call."""

    def __init__(self, interrupts: Interrupts, send: Callable[[bytes], bool]) -> None:
        self._interrupts = interrupts
        self._send = send
        self._lock = threading.Lock()
        self._count = 0  # guarded by the lock
        self._waiting: Dict[int, List[Any]] = {}  # by call: an event and the reply; guarded by the lock

    def __call__(self, call: Call) -> Dict[str, Any]:
        """Makes a call and waits for its reply."""
        cell = self._interrupts.current
        if not cell:
            raise HostCallError(f"{call.name}: no cell is running, and the host answers only while one does", "CellEnded")
        event = threading.Event()
        with self._lock:
            self._count += 1
            number = self._count
            self._waiting[number] = [event, None]
        call.abort = event.set
        answered = False
        try:
            head = json.dumps({"type": "host_call", "call": number, "kind": call.kind, "name": call.name}, ensure_ascii=True)
            if not self._send(f'{head[:-1]},"args":{call.args}}}\n'.encode()):
                raise HostCallError(f"{call.name}: the call could not be sent: its cell has ended, or this process was forked by it", "CellEnded")
            step = _STEP_MAIN if threading.get_ident() == self._interrupts.main else _STEP_OTHER
            while not event.wait(step):
                self._interrupts.check()
                if self._interrupts.current != cell:
                    raise HostCallError(f"{call.name}: the cell that made the call has ended", "CellEnded")
            reply = self._waiting[number][1]
            answered = reply is not None
            if not answered:
                raise HostCallError(f"{call.name}: the call was given up", "CancelledError")
            return reply
        finally:
            with self._lock:
                self._waiting.pop(number, None)
            if not answered and self._interrupts.current == cell:
                self._send(b'{"type":"host_cancel","call":%d}\n' % number)

    def answer(self, reply: Dict[str, Any]) -> None:
        """Delivers a reply; the side thread calls it. One that is not
        waited for is dropped."""
        with self._lock:
            waiting = self._waiting.get(int(reply["call"]))
            if waiting is not None and not waiting[0].is_set():
                waiting[1] = reply
                waiting[0].set()
