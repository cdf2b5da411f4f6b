"""Where bootstrap.py hands over: the process becomes a fork server, or one
session."""

from __future__ import annotations

import gc
import os
from typing import Any, Dict, List

from . import forkserver
from .session import Session, prepare


def run(role: str, sock: Any, fds: List[int], load: Dict[str, Any]) -> None:
    """Serves in a role until the end of the process. For "server", fds is the
    lifeline; for "session", the other descriptors of a fork request and then
    the lifeline."""
    prepare()
    session = Session()
    if role == "session":
        *rest, lifeline = fds
        seat = [os.dup(sock.detach()), *rest]
    else:
        (lifeline,) = fds
        server = forkserver.Server(sock, lifeline)
        try:
            server.serve(load.get("preload") or [])
            return
        except forkserver.Forked as forked:
            server.leave()
            seat = forked.fds
        gc.enable()
    session.run(*forkserver.take_seat(seat), lifeline)
