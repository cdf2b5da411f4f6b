"""Copies of a live session: what speaks against one, and how it is made.

A copy is a fork of the session between two cells. It has everything that the
session has in memory, also what cannot be pickled. What is shared with the
outside stays shared: an open file has one position for both, and a directory
that one of them removes is gone for the other.

The session does not stay the parent of its copies, so that code which waits for
its children never meets one: a process in between forks them and ends at once.
"""

from __future__ import annotations

import array
import os
import socket
import sys
import threading
from typing import Any, Callable, List, Optional, Tuple

from . import forkserver

# How many copies are made at once.
MAX = 64
# Threads of a session that are its own: main and side.
_OWN_THREADS = 2
# Device files that belong to graphics processors, whose state cannot be forked.
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/")


def obstacle(loop: Any) -> Optional[Tuple[str, str]]:
    """Returns why the session cannot be copied now: a word and a sentence."""
    others = [t.name for t in threading.enumerate() if t is not threading.main_thread()]
    if others:
        names = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        return "threads", f"{len(others)} threads run in the session ({names}), and a copy would be without them: end them first"
    device = _device()
    if device is not None:
        return "gpu", f"the session has {device} open, and what a graphics processor holds cannot be copied"
    try:
        native = len(os.listdir("/proc/self/task")) - _OWN_THREADS
    except OSError:
        native = 0
    if native > 0:
        return "threads", (
            f"{native} native threads run in the session, and a copy would be without them: "
            "a library has started them; set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 before it is imported"
        )
    if loop is not None and not loop.is_closed():
        asyncio = sys.modules["asyncio"]
        tasks = [t for t in asyncio.all_tasks(loop) if not t.done()]
        if tasks:
            return "tasks", f"{len(tasks)} asyncio tasks wait in the session, and a copy would be without them: await or cancel them first"
    return None


def running(loop: Any) -> List[Tuple[str, str, str]]:
    """Returns what runs besides the main thread: for each its name, its type, and what
    becomes of it when the session is kept."""
    found = [(f"thread {t.name}", f"{type(t).__module__}.{type(t).__qualname__}", "a thread ends with its process") for t in threading.enumerate() if t is not threading.main_thread()]
    if loop is not None and not loop.is_closed():
        tasks = [t for t in sys.modules["asyncio"].all_tasks(loop) if not t.done()]
        found += [(f"task {t.get_name()}", "asyncio.Task", "a task ends with its event loop") for t in tasks]
    return found


def luck() -> Callable[[], None]:
    """Returns what gives a copy the random numbers that come next in the session: one
    that is looked at in its place has to have them, where others begin with their own."""
    again = []
    for name, get, put in (("random", "getstate", "setstate"), ("numpy.random", "get_state", "set_state")):
        try:
            module = sys.modules[name]
            again.append((getattr(module, put), getattr(module, get)()))
        except Exception:  # it was not imported, or is something of the user's
            pass

    def give() -> None:
        for put, state in again:
            put(state)

    return give


def _device() -> Optional[str]:
    try:
        for fd in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                continue
            if target.startswith(_DEVICES):
                return target
    except OSError:
        pass
    return None


def receive(sock: Any, n: int) -> List[List[int]]:
    """Takes the descriptors of n copies, which come with one byte each."""
    seats: List[List[int]] = []
    room = socket.CMSG_SPACE(forkserver.MOST_FDS * array.array("i").itemsize)
    try:
        for _ in range(n):
            data, ancillary, _, _ = sock.recvmsg(1, room, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
            fds = array.array("i")
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
            seats.append(list(fds))
            if not data or not len(forkserver.FDS) <= len(fds) <= forkserver.MOST_FDS:
                raise OSError(f"{len(fds)} descriptors came for a copy, not {len(forkserver.FDS)}")
    except OSError:
        close(seats)
        raise
    return seats


def receive_one(sock: Any) -> int:
    """Takes a file's descriptor, which comes with one byte."""
    room = socket.CMSG_SPACE(array.array("i").itemsize)
    _, ancillary, _, _ = sock.recvmsg(1, room, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            return array.array("i", payload[: array.array("i").itemsize])[0]
    raise OSError("no file came")


def close(seats: List[List[int]]) -> None:
    """Closes descriptors of copies."""
    for fds in seats:
        for fd in fds:
            os.close(fd)


def fork(seats: List[List[int]]) -> Optional[List[int]]:
    """Makes a copy for each seat and closes the seats here. It returns None in
    the session and its own seat in a copy."""
    between = os.fork()
    if between != 0:
        close(seats)
        try:
            _, status = os.waitpid(between, 0)
        except ChildProcessError:
            return None  # the user's code has the system reap its children
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
        if code != 0:
            raise OSError(code, "fork: " + os.strerror(code))
        return None
    # The process in between: nothing but _exit may end it.
    me, failed = os.getpid(), 1
    try:
        try:
            forkserver.own_part()  # a copy is nothing that the session's code has started
        except (ImportError, OSError, ValueError):
            pass  # as long as it is not taken, it counts as that
        for at, seat in enumerate(seats):
            if os.fork() == 0:
                close(seats[:at] + seats[at + 1 :])
                return seat
        failed = 0
    except OSError as err:
        failed = (err.errno or 1) & 0xFF
    finally:
        if os.getpid() == me:
            os._exit(failed)
    return None


def forget(loop: Any) -> None:
    """Lets go of an event loop in a copy, and does not touch what it shares with
    the session: closing the loop would take its descriptors out of the poller
    of both."""
    try:
        loop._selector._selector.close()
        loop._ssock.close()
        loop._csock.close()
        loop._closed = True
    except AttributeError:
        pass  # a loop of the user's own making
