"""What a session may use. The host says so in init; the system enforces most of
it, the side thread the rest."""

from __future__ import annotations

import errno
import math
import os
import signal
import threading
import time
from typing import Any, Dict, Optional

from . import errors, processes

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# What the session itself may map beyond its limit, to say that it was reached.
_RESERVE = 32 << 20
# What of that a cell gets which finds the session full, so that it can still take
# things away: even 1 + 1 may need a page.
_ROOM = 4 << 20
# What Python says of a thread that the system refuses.
_NO_THREAD = "can't start new thread"
# What a thread maps beside its stack, and what its stack is where the system names no size.
_OF_THREAD = 1 << 20
_USUAL_STACK = 8 << 20
# The session's own descriptors, and a few for what it does: to be copied, for one, it takes in
# those of the copy. Code can open what of them is not in use.
_OWN_FILES = 16
# CPU seconds that a cell has to end after the first signal, in signals.
_CPU_GRACE = 2
# The exit code of a session whose cell goes on nevertheless.
CPU_EXIT = 128 + 24
# How often the side thread counts processes, in milliseconds: while a cell runs,
# and between cells, when it notices that way that one has begun.
LOOK_MS = 100
IDLE_MS = 1000

# How often surplus processes are ended before the cell gets its error.
_KILL_ROUNDS = 50

NAMES = ("memory", "cpu", "files", "processes")


class Limits:
    """The limits of a session, 0 for none."""

    def __init__(self, interrupts: Any) -> None:
        self._interrupts = interrupts
        self.memory = self.cpu = self.files = self.processes = 0
        self._told = False  # the host has said what the limits are
        self._address_space = 0  # what the soft limit of memory is
        self._relaxed = False
        self._settled = False  # a cell has begun since the limit of memory was set
        self.exceeded: Optional[str] = None  # which limit the running cell has met
        self.met: Optional[str] = None  # which one the last has met that has ended: any thread may change the other
        self._warned = 0  # how often it was warned about its CPU time

    def apply(self, wanted: Dict[str, Any]) -> None:
        """Sets limits. It raises ValueError for one that this system cannot
        set."""
        for name, value in wanted.items():
            if name not in NAMES or not isinstance(value, int) or value < 0:
                raise ValueError(f"the limit {name!r}: {value!r} is not understood")
            setattr(self, name, value)
        self._told = True
        if resource is None and any(wanted.values()):
            raise ValueError("this system has no resource limits")
        try:
            if self.memory:
                self._address_space = _mapped() + self.memory
                self._set_memory(self._address_space)
            if self.files:
                _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
                most = self.files + _OWN_FILES
                if hard != resource.RLIM_INFINITY:
                    most = min(most, hard)
                resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        except (OSError, ValueError) as err:
            raise ValueError(f"a limit cannot be set on this system: {err}") from err

    def _set_memory(self, soft: int) -> None:
        resource.setrlimit(resource.RLIMIT_AS, (soft, self._address_space + _RESERVE))

    def begin(self) -> None:
        """Begins a cell."""
        self.exceeded = None
        try:
            self._begin_memory()
        except OSError:  # code holds all files open that it may, so that nothing is known of what it has mapped
            self._set_memory(self._address_space + (_RESERVE // 2 if self._relaxed else 0))
        if self.cpu:
            self._warned = 0
            used = time.process_time()
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            soft = math.ceil(used) + self.cpu
            if hard != resource.RLIM_INFINITY:
                soft = min(soft, hard)
            resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
            signal.signal(signal.SIGXCPU, self._on_cpu)

    def _begin_memory(self) -> None:
        """Decides how much address space a cell may map."""
        if self.memory and not self._settled:
            # A thread that begins maps twice of what it keeps, for a moment: it may have been
            # counted when the limit was set.
            self._settled = True
            least = _mapped() + self.memory
            if least < self._address_space:
                self._address_space = least
                self._set_memory(least)
        if self._relaxed:
            needed = _mapped() + _ROOM
            self._relaxed = needed > self._address_space
            self._set_memory(min(max(needed, self._address_space), self._address_space + _RESERVE // 2))

    def _on_cpu(self, _signum: int, frame: Any) -> None:
        """The system tells once for every further second of CPU time."""
        if not self._interrupts.current:
            return
        self.exceeded = "cpu"
        self._warned += 1
        if self._warned > _CPU_GRACE:
            for pid in processes.descendants_of(os.getpid()):
                processes.kill(pid)
            os._exit(CPU_EXIT)
        self._interrupts.raise_now(frame)

    def failed(self, err: BaseException) -> Optional[str]:
        """Says which limit an exception stands for, if it does, and makes room
        to tell so."""
        if self.exceeded is None:
            if self.memory and self._no_memory(err):
                self.exceeded = "memory"
            elif self.files and errors.of(err, OSError) and _errno(err) == errno.EMFILE:
                self.exceeded = "files"
        if self.exceeded == "memory":
            self._relaxed = True
            self._set_memory(self._address_space + _RESERVE)
        return self.exceeded

    def _no_memory(self, err: BaseException) -> bool:
        """Says whether it is an exception of code that could map no more. A thread that cannot
        begin names no reason: it was this when its stack would not have fitted at the time when
        most was mapped, which may be over, since what fails may end its other threads first."""
        if errors.of(err, MemoryError):
            return True
        if errors.of(err, OSError) and _errno(err) == errno.ENOMEM:
            return True
        if errors.of(err, OSError) or errors.of(err, ImportError):  # a library that could not be mapped has no errno
            return os.strerror(errno.ENOMEM) in _text(err)
        return errors.of(err, RuntimeError) and _NO_THREAD in _text(err) and _most_mapped() + _stack() > self._address_space

    def settle(self, failed: Optional[BaseException]) -> Optional[BaseException]:
        """Decides, when a cell has ended, which limit it has met, and returns what it fails
        with. What it has started may have been there for less than a look."""
        try:
            if self.processes and not processes.childless():
                self._count(self._interrupts.current)
        except Exception:  # code has hooked into what this takes
            pass
        if failed is not None:
            self.failed(failed)
        elif self.exceeded == "processes":  # it has ended before its interrupt came
            failed = KeyboardInterrupt()
        self.met = self.exceeded
        return failed

    def describe(self) -> str:
        """Says in words what the limit is that was met."""
        name = self.met
        return {
            "memory": f"memory: the session may map {self.memory >> 20} MiB more address space than at its start",
            "cpu": f"cpu: a cell may use {self.cpu} s of processor time",
            "files": f"files: the session may have {self.files} files open, and {_OWN_FILES} for itself and what it does",
            "processes": f"processes: the session may have {self.processes} processes besides its own",
        }.get(name or "", name or "")

    def look(self) -> None:
        """Counts the processes that the session has started, and ends them when
        there are too many. The side thread calls it while a cell runs."""
        running = self._interrupts.current
        if self._count(running):
            self._interrupts.request(running)

    def _count(self, running: int) -> bool:
        """Says whether a cell has more processes than it may, and ends them then."""
        found = processes.living(processes.descendants_of(os.getpid()))
        if len(found) <= self.processes:
            return False
        if running == self._interrupts.current:  # else it has ended meanwhile
            self.exceeded = "processes"  # before what the cell may see of it
        for _ in range(_KILL_ROUNDS):  # they may go on starting others
            for pid in found:
                processes.kill(pid)
            found = processes.living(processes.descendants_of(os.getpid()))
            if not found:
                break
        return True

    def patience(self) -> Optional[int]:
        """Returns how long the side thread may wait, in milliseconds, None for
        ever. It begins to wait before the session has its limits, and nothing
        would wake it when it gets some."""
        if not self._told:
            return IDLE_MS
        if not self.processes:
            return None
        return LOOK_MS if self._interrupts.current else IDLE_MS


def _errno(err: BaseException) -> Any:
    try:
        return err.errno  # type: ignore[attr-defined]
    except BaseException:  # an exception can do anything
        return None


def _text(err: BaseException) -> str:
    """Returns what a built-in exception says, without a call of code: its class may be the
    user's."""
    try:
        return " ".join(a for a in BaseException.args.__get__(err) if type(a) is str)  # type: ignore[attr-defined]
    except Exception:
        return ""


def _stack() -> int:
    """Returns what a thread maps when it begins, in bytes."""
    size = threading.stack_size()
    if size == 0:
        size, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _OF_THREAD + (_USUAL_STACK if size == resource.RLIM_INFINITY else size)


def _most_mapped() -> int:
    """Returns the most address space that the process has ever had, in bytes, 0 where the
    system does not tell."""
    try:
        with open("/proc/self/status", "rb") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith(b"VmPeak:"))
    except Exception:
        return 0


def _mapped() -> int:
    """Returns how much address space the process has, in bytes."""
    with open("/proc/self/statm", "rb") as f:
        return int(f.read().split()[0]) * resource.getpagesize()
