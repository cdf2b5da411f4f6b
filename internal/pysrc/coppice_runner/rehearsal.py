"""A rehearsal: the fork server goes through the life of a session some times
before it forks any. What the interpreter makes on the way (code made special for
its types, tables of attributes, names) is then there for all sessions, in memory
that they share, in place of made by each in memory of its own.
"""

from __future__ import annotations

import builtins
import json
import linecache
import os
import signal
import socket
import sys
from typing import Any, Callable, Tuple

from . import forkserver
from .wire import VERSION

# After the first time, most is there; the second finds what is made then. The
# interpreter changes code for its types when it has run eight times, and some of
# it several times more: it does so in the rounds that follow, which are short.
_ROUNDS = 2
_SHORT_ROUNDS = 18
_CELLS = ("1+1", "x = 1\nx", "print(x)", "1/0")
_SHORT_CELLS = _CELLS[:1]
# The descriptors that a session replaces by its own.
_STANDARD = (0, 1, 2)


def rehearse(make: Callable[[], Any], prelude: str) -> bool:
    """Rehearses with sessions that make makes, in a process with one thread, and
    puts back what they change. Returns whether they did what they should: if
    not, nothing is lost but memory."""
    streams = sys.stdin, sys.stdout, sys.stderr
    main, argv, path, env = sys.modules["__main__"], sys.argv, list(sys.path), dict(os.environ)
    getpass: Any = sys.modules.get("getpass")
    ask_password = getattr(getpass, "getpass", None)
    names = dict(vars(builtins))
    cells = set(linecache.cache)
    handlers = {s: signal.getsignal(s) for s in (signal.SIGINT, getattr(signal, "SIGCHLD", signal.SIGINT))}
    wakeup = signal.set_wakeup_fd(-1)
    outside = [os.dup(fd) for fd in _STANDARD]
    try:
        _forget_attributes()
        rounds = [_CELLS] * _ROUNDS + [_SHORT_CELLS] * _SHORT_ROUNDS
        return all([_live(make(), prelude, cells) for cells in rounds])
    except Exception:
        return False
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.modules["__main__"], sys.argv, sys.path[:] = main, argv, path
        for name in [n for n in os.environ if n not in env]:
            del os.environ[name]
        os.environ.update(env)
        if getpass is not None:
            getpass.getpass = ask_password
        for name in [n for n in vars(builtins) if n not in names]:
            delattr(builtins, name)
        vars(builtins).update(names)
        for name in [n for n in linecache.cache if n not in cells and n.startswith("<cell ")]:
            del linecache.cache[name]
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for fd, saved in zip(_STANDARD, outside):
            os.dup2(saved, fd)
            os.close(saved)


def _forget_attributes() -> None:
    """Empties the table in which the interpreter keeps attributes of types that
    were looked up. It is full by now, and whoever finds another attribute there
    lets go of its name: that writes to a page which nothing else brings a session
    to. From 3.12 on, names are not counted any more."""
    forget = getattr(sys, "_clear_type_cache", None)
    if forget is not None and sys.version_info < (3, 12):
        forget()


def _live(session: Any, prelude: str, cells: Tuple[str, ...]) -> bool:
    """Has a session do what most do first. This function alone is its host."""
    asker, gone = socket.socketpair()
    gone.close()
    forkserver.Server(asker, -1).leave()
    host, theirs = socket.socketpair()
    asks, asked = socket.socketpair()
    main, control, captured = forkserver.settle_in(theirs.detach(), asked.detach(), *os.pipe(), *os.pipe())
    try:
        session.sit(main, captured)
        session.side.sit(control)
        session.warm_up()
        requests = [{"type": "init", "version": VERSION, "cwd": os.getcwd(), "env": {"COPPICE_REHEARSAL": "1"}, "prelude": prelude}]
        requests += [{"type": "execute", "id": n + 1, "code": code} for n, code in enumerate(cells)]
        kinds = []
        for request in requests:
            host.sendall(json.dumps(request).encode() + b"\n")
            session.serve_one()
            frames = host.recv(1 << 16).splitlines()  # all of them: they are short and sent at once
            kinds.append(json.loads(frames[-1])["type"])
        asks.sendall(b'{"type":"ping","n":1}\n')
        session.side.serve()
        return kinds == ["ready"] + ["done"] * len(cells) and asks.recv(100) == b'{"type":"pong","n":1}\n'
    finally:
        for sock in (host, main, asks, control):
            sock.close()
        for fd in captured.values():
            os.close(fd)
