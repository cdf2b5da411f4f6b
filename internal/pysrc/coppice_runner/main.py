"""Where bootstrap.py hands over: the process becomes a fork server, or one
session."""

from __future__ import annotations

import gc
import os
import sys
from typing import Any, Dict, List

from . import forks

gc.disable()  # there is nothing to collect before the first cell
forks.share()  # before the modules that register something come

from . import apart, forkserver  # noqa: E402
from .rehearsal import rehearse  # noqa: E402
from .session import Session, prepare  # noqa: E402

# How a session came out of its fork server's code. It is held: to let go of it
# would write to all that the server was at, in pages that the session shares.
_left: List[BaseException] = []


def run(role: str, sock: Any, fds: List[int], load: Dict[str, Any]) -> None:
    """Serves in a role until the end of the process. For "server", fds is the
    lifeline; for "session", the other descriptors of a fork request and then
    the lifeline."""
    prepare()
    session = Session()
    user = wall = None
    if role == "session":
        *rest, lifeline = fds
        seat = [os.dup(sock.detach()), *rest]
    else:
        (lifeline,) = fds
        prelude = load.get("prelude") or ""
        session.prepare(prelude)
        server = forkserver.Server(sock, lifeline, apart.wall(load.get("scopes") or 0))

        def warm() -> Dict[str, str]:
            nonlocal session
            load["keep"]()
            failed = server.preload(load.get("preload") or [])
            rehearse(Session, prelude)
            rebuild = sys.modules.get(f"{__package__}.rebuild")
            if rebuild is not None:
                rebuild.settle()
            forks.settle()
            session = Session()
            session.prepare(prelude)
            return failed

        try:
            server.serve(warm)
            return
        except forkserver.Forked as forked:
            server.leave()
            seat, user, wall = forked.fds, forked.user, forked.wall
            _left.append(forked)
    forks.settle()
    # What its server has noted of each session before this one is not looked through here:
    # to do so would write to all of it.
    gc.freeze()
    gc.enable()
    session.run(*forkserver.take_seat(seat, user, wall), lifeline)
