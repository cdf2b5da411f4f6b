"""The fork server: a process with one thread that has imported what sessions
need, and becomes a new session in a millisecond by forking.

It reads requests from one socket, with the descriptors of the session attached
(SCM_RIGHTS), and reports the end of every child there. It holds no descriptor
of a session but the two that its output can be read from, so that what a child
printed before it died is not lost.
"""

from __future__ import annotations

import _signal
import array
import errno
import fcntl
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import threading
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from . import forks, processes
from .wire import VERSION, drain_descriptor, encode

_SIGCHLD = int(signal.SIGCHLD)  # signal's own functions take their time with enums

# The descriptors of a fork request, in order. Those that may follow move the process that
# writes "0" to them into a control group: one, or for version 1 one in each of up to
# three hierarchies.
FDS = ("main", "control", "stdout_read", "stdout_write", "stderr_read", "stderr_write")
MOST_FDS = len(FDS) + 3

_READ = 64 << 10
_RLIMIT_LOCKS = 10  # which module resource does not know
_MAX_FDS = 64
# The descriptors that the server keeps of its children are numbered from here,
# so that a new child can close all of them at once: from the second number at least,
# where the system allows few.
_KEPT, _LEAST_KEPT = 64, 24
# How long no request must have come before the server does what takes its time.
_QUIET_MS = 20
# How many objects of each size fill the gaps; the gain grows no more beyond.
_FILLERS = 120


def _send(pid: int, number: int, group: bool) -> None:
    """Signals a child that was not reaped, or the group that it leads. One that does not
    lead a group yet has started nothing: then the signal is for it alone."""
    if group:
        try:
            return os.killpg(pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            return
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it ended just now


class Child:
    """A session that was forked off and not reaped yet."""

    def __init__(self, stdout: int, stderr: int) -> None:
        self.stdout = stdout
        self.stderr = stderr

    def leftovers(self) -> Dict[str, str]:
        """Returns what was printed and not read by the session itself."""
        found = {}
        for name, fd in (("stdout", self.stdout), ("stderr", self.stderr)):
            text = drain_descriptor(fd)
            if text:
                found[name] = text
        return found

    def close(self) -> None:
        os.close(self.stdout)
        os.close(self.stderr)


class Forked(BaseException):
    """Raised in the child, so that it leaves the server's code behind. It passes
    through everything that catches what goes wrong."""

    def __init__(self, fds: List[int], user: Optional[Dict[str, Any]], wall: Optional[Callable[[], None]]) -> None:
        super().__init__()
        self.fds = fds
        self.user = user
        self.wall = wall


class Server:
    """The loop of the fork server."""

    def __init__(self, control: Any, lifeline: int, wall: Optional[Callable[[], None]] = None) -> None:
        self._control = control
        self._wall = wall
        self._lifeline = lifeline
        self._children: Dict[int, Child] = {}
        self._forks = 0  # how many were asked for
        self._kept = _kept_from()
        self._highest = self._kept - 1  # the highest number that a kept descriptor ever had
        self._buffer = b""
        self._attached: Deque[List[int]] = deque()
        self._woken, self._wake = os.pipe()
        self._alone = False  # the process has one thread
        self._warm: Optional[Callable[[], Dict[str, str]]] = None  # to be called still
        self._filled: List[List[bytes]] = []  # held, also in the children: to let go of it writes to it

    def preload(self, modules: List[str]) -> Dict[str, str]:
        """Imports modules and returns why those that could not be imported
        could not."""
        from .outlive import bring  # it needs this module

        failed, own = {}, f"{__package__}."
        for name in modules:
            try:
                if name.startswith(own):
                    bring(name[len(own) :])
                else:
                    importlib.import_module(name)
            except BaseException as err:  # a module can raise anything, and is not needed
                failed[name] = f"{type(err).__name__}: {err}"
        return failed

    def serve(self, warm: Callable[[], Dict[str, str]]) -> None:
        """Serves until the host is gone. In a child it raises Forked. The first
        session need not wait for what the others will share: warm, which returns
        the modules that could not be imported and why, is called when the first
        was forked or when none is asked for, and before the second."""
        if not hasattr(os, "fork"):
            self._reply({"type": "failed", "message": "this system has no fork"})
            return
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for fd in (self._woken, self._wake):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        self._alone = _threads() == 1
        self._warm = warm
        self._reply({"type": "ready", "version": VERSION, "pid": os.getpid(), "python": ".".join(map(str, sys.version_info[:3]))})
        poll = select.poll()
        for fd in (self._control.fileno(), self._woken, self._lifeline):
            poll.register(fd, select.POLLIN)
        while True:
            events = poll.poll(_QUIET_MS if self._warm is not None else None)
            if not events:
                self._warm_up()
            for fd, _ in events:
                if fd == self._woken:
                    self._reap()
                elif fd == self._lifeline:
                    os._exit(0)
                elif not self._receive():
                    os._exit(0)

    def _warm_up(self) -> None:
        warm, self._warm = self._warm, None
        if warm is None:
            return
        try:
            failed = warm()
            self._reap()  # a rehearsal may have missed a signal
            self._alone = _threads() == 1
            # What is there now is never collected, so that its pages stay shared.
            gc.collect()
            self._filled = _fill()
            gc.freeze()
        except Exception as err:  # nothing is lost but memory
            failed = {"what sessions share": f"{type(err).__name__}: {err}"}
        self._reply({"type": "warm", "failed": failed})

    def _receive(self) -> bool:
        size = array.array("i").itemsize * _MAX_FDS
        data, ancillary, _, _ = self._control.recvmsg(_READ, socket.CMSG_SPACE(size), getattr(socket, "MSG_CMSG_CLOEXEC", 0))
        if not data:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                self._attached.append(list(fds))
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            self._request(line)
        return True

    def _request(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            kind, n = request["type"], request.get("n", 0)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as err:
            self._reply({"type": "protocol_error", "message": f"the request cannot be read: {err}"})
            return
        try:
            self._serve_request(kind, n, request)
        except Exception as err:  # whatever is in the request: it costs this request
            why = f"the {kind} request failed: {type(err).__name__}: {err}"
            self._reply({"type": "failed", "n": n, "message": why} if kind == "fork" else {"type": "protocol_error", "message": why})

    def _serve_request(self, kind: str, n: Any, request: Dict[str, Any]) -> None:
        if kind == "fork":
            self._fork(n, request.get("user"))
        elif kind == "signal":
            self._signal(n, request)
        elif kind == "used":
            pid = request.get("pid", 0)
            self._reply({"type": "used", "n": n, "seconds": processes.used(pid) if pid in self._children else -1})
        elif kind == "drain":
            child = self._children.get(request.get("pid", 0))
            self._reply({"type": "drained", "n": n, **(child.leftovers() if child else {})})
        elif kind == "ping":
            self._reply({"type": "pong", "n": n})
        else:
            self._reply({"type": "protocol_error", "message": f"unknown request {kind!r}"})

    def _fork(self, n: int, user: Optional[Dict[str, Any]]) -> None:
        fds = self._attached.popleft() if self._attached else []
        if not len(FDS) <= len(fds) <= MOST_FDS:
            for fd in fds:
                os.close(fd)
            self._reply({"type": "failed", "n": n, "message": f"{len(fds)} descriptors came with the request, not {len(FDS)}"})
            return
        if self._forks > 0:
            self._warm_up()
        self._forks += 1
        kept: List[int] = []
        try:
            # Before the fork: there may be no number left for them.
            kept.append(self._keep(fds[2]))
            kept.append(self._keep(fds[4]))
            pid = forks.fork() if self._alone else os.fork()
        except OSError as err:
            for fd in fds + kept:
                os.close(fd)
            why = f"fork: {err}"
            if err.errno == errno.EINVAL:  # what a number of a descriptor over the limit is
                import resource  # not on Windows, which has no fork

                why += f"; the limit of open files is {resource.getrlimit(resource.RLIMIT_NOFILE)[0]}, and a session's server needs at least {self._kept + 2}: raise it (RLIMIT_NOFILE, ulimit -n)"
            self._reply({"type": "failed", "n": n, "message": why})
            return
        if pid == 0:
            raise Forked(fds, user, self._wall)
        self._children[pid] = Child(*kept)
        for fd in fds:
            os.close(fd)
        self._reply({"type": "forked", "n": n, "pid": pid})

    def _keep(self, fd: int) -> int:
        kept = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, self._kept)
        os.set_blocking(kept, False)
        self._highest = max(self._highest, kept)
        return kept

    def _signal(self, n: int, request: Dict[str, Any]) -> None:
        pid, number = request.get("pid", 0), request.get("signal", 0)
        found = pid in self._children  # not reaped: the number is the child's own
        if found:
            _send(pid, number, bool(request.get("group")))
        self._reply({"type": "signalled", "n": n, "found": found})

    def _reap(self) -> None:
        try:
            while os.read(self._woken, 4096):
                pass
        except BlockingIOError:
            pass
        while True:
            pid = _ended()
            if pid == 0:
                return
            # The zombie holds the number of its group until it is reaped.
            try:
                os.killpg(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
            _, status = os.waitpid(pid, 0)
            child = self._children.pop(pid, None)
            if child is None:
                continue
            frame: Dict[str, Any] = {"type": "exit", "pid": pid, **child.leftovers()}
            if os.WIFSIGNALED(status):
                frame["signal"] = os.WTERMSIG(status)
            else:
                frame["code"] = os.WEXITSTATUS(status)
            child.close()
            self._reply(frame)

    def _reply(self, frame: Dict[str, Any]) -> None:
        try:
            self._control.sendall(encode(frame))
        except OSError:
            os._exit(0)  # the host is gone

    def leave(self) -> None:
        """Lets go, in a child, of all that is the server's."""
        signal.set_wakeup_fd(-1)
        _signal.signal(_SIGCHLD, _signal.SIG_DFL)
        forks.new_main_thread()
        self._control.close()
        os.close(self._woken)
        os.close(self._wake)
        os.closerange(self._kept, self._highest + 1)


def _fill() -> List[List[bytes]]:
    """Takes up the room that is left between objects, so that what a session
    makes goes to new pages, and not into the gaps of a hundred shared ones. The
    interpreter puts objects of up to 512 bytes into pages by their size, in steps
    of 16."""
    own = bytes().__sizeof__()  # larger where Python has no lock of its own
    return [[bytes(size - own) for _ in range(_FILLERS)] for size in range(-(-own // 16) * 16, 513, 16)]


def _kept_from() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _KEPT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _KEPT if soft == resource.RLIM_INFINITY else max(_LEAST_KEPT, min(_KEPT, soft // 2))


def _threads() -> int:
    """Returns how many threads the process has: those of Python where the system
    does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _ended() -> int:
    """Returns a child that has ended and is not reaped, or 0."""
    try:
        if hasattr(os, "waitid"):
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            return found.si_pid if found is not None else 0
    except ChildProcessError:
        pass
    return 0


def _enter(group: int, main: int) -> None:
    """Moves this process to its control group. Without it, its limits would not
    hold, and it does not begin."""
    try:
        os.write(group, b"0")
    except OSError as err:
        os.write(main, encode({"type": "failed", "message": f"enter the control group of the session: {err}"}))
        os._exit(1)
    os.close(group)


def own_part(mark: int = 0) -> None:
    """Makes this process, and what it starts, a part of its own of what has a mark, 0 for
    the one that it has: the mark is the higher limit, and the part the lower one."""
    import resource

    mark = mark or resource.getrlimit(_RLIMIT_LOCKS)[1]
    if mark > 1:  # else it has none
        resource.setrlimit(_RLIMIT_LOCKS, (1 + int.from_bytes(os.urandom(8), sys.byteorder) % (mark - 1), mark))


def _become(user: Dict[str, Any], main: int) -> None:
    """Makes this process another user's. Where that fails, it does not begin."""
    try:
        if user.get("mark"):
            own_part(user["mark"])
        os.setgroups([user["shared"]])
        os.setresgid(user["uid"], user["uid"], user["uid"])
        os.setresuid(user["uid"], user["uid"], user["uid"])
        os.chdir("/")
    except (OSError, AttributeError, ImportError, ValueError) as err:
        os.write(main, encode({"type": "failed", "message": f"become user {user['uid']}: {err}"}))
        os._exit(1)
    os.environ["HOME"] = os.environ["TMPDIR"] = user["folder"]


def _part(wall: Callable[[], None], main: int) -> None:
    """Keeps this process from its siblings. Where that fails, it does not begin."""
    try:
        wall()
    except OSError as err:
        os.write(main, encode({"type": "failed", "message": f"keep the session from others: {err}"}))
        os._exit(1)


def take_seat(fds: List[int], user: Optional[Dict[str, Any]] = None, wall: Optional[Callable[[], None]] = None) -> Tuple[Any, Any, Dict[str, int]]:
    """Makes the calling process a session's: a session and a process group of
    its own, its descriptors, its random numbers."""
    main, control, stdout_read, stdout_write, stderr_read, stderr_write, *group = fds
    for fd in group:
        _enter(fd, main)
    try:
        os.setsid()
    except OSError:
        pass  # it leads a group already
    if user is not None:
        _become(user, main)
    if wall is not None:
        _part(wall, main)
    return settle_in(main, control, stdout_read, stdout_write, stderr_read, stderr_write)


def settle_in(main: int, control: int, stdout_read: int, stdout_write: int, stderr_read: int, stderr_write: int) -> Tuple[Any, Any, Dict[str, int]]:
    """Does what take_seat does inside of the process."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(stdout_write, 1)
    os.dup2(stderr_write, 2)
    for fd in (null, stdout_write, stderr_write):
        if fd > 2:
            os.close(fd)
    for fd in (main, control, stdout_read, stderr_read):
        os.set_inheritable(fd, False)
    random.seed()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    captured = {"stdout": stdout_read, "stderr": stderr_read}
    return socket.socket(fileno=main), socket.socket(fileno=control), captured
