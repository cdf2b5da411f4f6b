"""Which life of a server has started a process, or had the variables of a session: with that life, they are gone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Optional, Tuple

from . import _wire
from ._epochs import Key
from ._errors import ServerError
from ._types import Event

#: How many processes are remembered, and how many sessions.
MOST = 10_000

#: Why a session begins anew that another life of its server had.
AGAIN = "the server was started again, and does not have what the session had"


def of_server(header: _wire.Header) -> Optional[str]:
    """The life of the server that has answered; None: it does not say. A fleet has nodes in place of lives."""
    return None if header("Coppice-Node") else header(_wire.SERVER)


class Lives:
    """The lives of the server that processes of a client were started in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: OrderedDict[Tuple[str, str], str] = OrderedDict()

    def started(self, workspace: str, process: str, header: _wire.Header) -> None:
        """A process was; the answer says where."""
        life = of_server(header)
        if not life:
            return
        with self._lock:
            self._of[workspace, process] = life
            if len(self._of) > MOST:
                self._of.popitem(last=False)

    def of(self, workspace: str, process: str, error: ServerError) -> Optional[str]:
        """The life to ask for when a process is not found; None: no question is left."""
        if error.status != 404 or error.code != "not_found":
            return None
        with self._lock:
            return self._of.get((workspace, process))


class Sessions:
    """In which life of the server a client has had a result of each session last. A server that was
    started again, and has not kept its sessions, knows nothing of those before: it cannot say that a
    session is anew."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: OrderedDict[Key, str] = OrderedDict()

    def result(self, session: Key, life: Optional[str], final: Event) -> Event:
        """The last event of a call that this life has begun, with what its server cannot know."""
        state = final.raw.get("state")
        if not life or not state:
            return final  # nothing ran
        with self._lock:
            before = self._of.pop(session, None)
            if state != "lost":  # else it is known that nothing is left
                self._of[session] = life
                if len(self._of) > MOST:
                    self._of.popitem(last=False)
        if state != "fresh" or final.raw.get("reason") or not before or before == life:
            return final
        note = f"[This call got a new kernel: {AGAIN}. The variables of earlier calls are gone.]"
        text = final.raw.get("text")
        return replace(final, raw={**final.raw, "reason": AGAIN, "text": f"{note}\n\n{text}" if text else note})

    def forget(self, session: Key) -> None:
        """We have ended it, or its interpreter: we know what is gone."""
        with self._lock:
            self._of.pop(session, None)

    def ended(self, workspace: str) -> None:
        """We have ended a workspace, and its sessions with it."""
        with self._lock:
            for session in [s for s in self._of if s[2] == workspace]:
                del self._of[session]


def lost(life: str, header: _wire.Header) -> Optional[ServerError]:
    """What it means that a process of this life is not found by the server that has answered."""
    now = of_server(header)
    if not now or now == life:
        return None
    return ServerError(410, "lost", "the server was started again while the process ran: what became of it is not known", "look at what it was to do before you start it again")
