"""Which life of a server has started a process: with that life, the process is gone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Optional, Tuple

from . import _wire
from ._errors import ServerError

#: How many processes are remembered.
MOST = 10_000


class Lives:
    """The lives of the server that processes of a client were started in."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: OrderedDict[Tuple[str, str], str] = OrderedDict()

    def started(self, workspace: str, process: str, header: _wire.Header) -> None:
        """A process was; the answer says where. A fleet has nodes in place of lives."""
        life = header(_wire.SERVER)
        if not life or header("Coppice-Node"):
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


def lost(life: str, header: _wire.Header) -> Optional[ServerError]:
    """What it means that a process of this life is not found by the server that has answered."""
    now: Any = header(_wire.SERVER)
    if not now or now == life or header("Coppice-Node"):
        return None
    return ServerError(410, "lost", "the server was started again while the process ran: what became of it is not known", "look at what it was to do before you start it again")
