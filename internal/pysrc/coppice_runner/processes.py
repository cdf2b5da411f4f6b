"""The processes that a cell has started, as far as the system tells.

Linux only: elsewhere nothing is found, and a cell's children are left to the
cell.
"""

from __future__ import annotations

import os
import signal
import time
from time import monotonic
from typing import Dict, Iterator, List, Set, Tuple

try:
    _TICKS = os.sysconf("SC_CLK_TCK")
except (AttributeError, ValueError, OSError):
    _TICKS = 100
# Whether the system has a list of the children of a thread: a Linux that was built without
# it has none, nor has an older gVisor.
_TELLS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def started_since(begin: float) -> List[int]:
    """Returns the descendants of this process that started at begin, by the
    monotonic clock, or later, and belong to its process group, parents first.
    What was started before is left alone: a server that an earlier cell started
    is not part of this one."""
    if childless():
        return []
    return [pid for pid in descendants_of(os.getpid()) if _is_of_group(pid, os.getpgrp(), _ticks(begin))]


def childless() -> bool:
    """Says whether this process has no children for sure. One call says so, where to
    list them takes twenty: whoever asks beside code that computes has to wait for the
    interpreter after each of them, on a busy machine for half a second."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    except (AttributeError, OSError):
        pass  # this system does not say
    return False


def strays_since(begin: float) -> List[int]:
    """Returns the processes of this process's group that started at begin or
    later, are not descendants of it any more, since their parents have ended, and
    would heed an interrupt: what a shell runs in the background does not."""
    first, group, own = _ticks(begin), os.getpgrp(), {os.getpid()}
    found = [pid for pid in map(int, filter(str.isdigit, _listed("/proc"))) if pid not in own and _is_of_group(pid, group, first) and not _ignores_interrupts(pid)]
    if found:
        own.update(descendants_of(os.getpid()))
    return [pid for pid in found if pid not in own]


def _ticks(begin: float) -> float:
    """Returns a time of the monotonic clock as start times are given: they count
    from the boot."""
    try:
        return int((time.clock_gettime(time.CLOCK_BOOTTIME) - monotonic() + begin) * _TICKS)
    except (AttributeError, OSError):
        return float("inf")  # nothing has started since


def _is_of_group(pid: int, group: int, first: float) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        return int(fields[2]) == group and int(fields[19]) >= first and not _ended(fields)
    except (OSError, ValueError, IndexError):
        return False  # it has ended


def _ended(fields: List[bytes]) -> bool:
    """Says whether a process has, of which these are the fields of its stat file, from the
    state on. That is the state of its first thread, which others may outlive."""
    return fields[0] == b"X" or fields[0] == b"Z" and int(fields[17]) <= 1


def _ignores_interrupts(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", "rb") as f:
            for line in f:
                if line.startswith(b"SigIgn:"):
                    return bool(int(line.split()[1], 16) & 1 << (signal.SIGINT - 1))
    except (OSError, ValueError, IndexError):
        pass
    return True  # it has ended


def _listed(path: str) -> List[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def descendants_of(pid: int) -> List[int]:
    """Returns what a process has started and lives, parents first."""
    return list(_descendants(pid, set())) if _TELLS_CHILDREN else _by_parents(pid)


def _by_parents(pid: int) -> List[int]:
    """Finds descendants by what each process of the system says of its parent."""
    of: Dict[int, List[int]] = {}
    for child in map(int, filter(str.isdigit, _listed("/proc"))):
        try:
            with open(f"/proc/{child}/stat", "rb") as f:
                of.setdefault(int(f.read().rpartition(b")")[2].split()[1]), []).append(child)
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    found = [pid]
    for parent in found:
        found += of.get(parent, [])
    return found[1:]


def living(pids: List[int]) -> List[int]:
    """Returns those that have not ended: a zombie does not count."""
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                if not _ended(f.read().rpartition(b")")[2].split()):
                    found.append(pid)
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    return found


def runnable(pids: List[int]) -> Set[Tuple[int, bytes, bytes]]:
    """Returns those that have something to do, with the processor time they got so
    far, in the kernel and beside it: one that is found twice has waited in between."""
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as f:
                fields = f.read().rpartition(b")")[2].split()
            if fields[0] in (b"R", b"D"):
                found.add((pid, fields[11], fields[12]))
        except (OSError, IndexError):
            continue  # it has ended
    return found


def used(pid: int) -> float:
    """Returns the processor time that a process has used, in seconds, -1 when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, ValueError, IndexError):
        return -1


def program_of(pid: int) -> bytes:
    """Returns what differs between the programs that a process runs one after the
    other: where its stack begins, which differs with each. It is empty or always the
    same where the system does not tell, or places every stack alike."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rpartition(b")")[2].split()[25]
    except Exception:  # it has ended, or code has hooked into what this takes
        return b""


def interrupt(pid: int) -> None:
    """Sends SIGINT to a descendant."""
    _send(pid, signal.SIGINT)


def kill(pid: int) -> None:
    """Sends SIGKILL to a descendant."""
    _send(pid, signal.SIGKILL)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # it has ended


def _descendants(pid: int, seen: Set[int]) -> Iterator[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as f:
                children = [int(p) for p in f.read().split()]
        except (OSError, ValueError):
            continue
        for child in children:
            if child not in seen:
                seen.add(child)
                yield child
                yield from _descendants(child, seen)
