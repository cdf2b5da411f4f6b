"""Ends what the tools of a host have started when the host has been killed.

It reads lines from standard input: "+ TOKEN" for a tool that is about to start, "+ TOKEN
PID START" for one that has, "- TOKEN" for one that has ended. The end of the input is
the end of the host. Of tools that are left then it ends each process that has the token
in its environment, whatever session it is in, and each of the tool's process group."""

import os
import signal
import time

NAME = b"COPPICE_TOOL_TOKEN="
PATIENCE = 10  # seconds for all of it
watched = {}  # token -> (process group, start time of its leader), or ()


def read(pid, what):
    try:
        with open("/proc/%d/%s" % (pid, what), "rb") as f:
            return f.read()
    except OSError:
        return b""


def state(pid):
    """The process group and the start time; a process that has ended has none."""
    fields = read(pid, "stat").rpartition(b")")[2].split()
    if len(fields) < 20 or fields[0] in b"ZX":
        return b"", b""
    return fields[2], fields[19]


def ours(pid, marks, groups):
    group, _ = state(pid)
    return bool(group) and (group in groups or not marks.isdisjoint(read(pid, "environ").split(b"\0")))


def kill(pid, still):
    """Kills a process if it is still the one that was meant."""
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(pid, signal.SIGKILL)
            return
        handle = os.pidfd_open(pid)
        try:
            if still():
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)
    except OSError:
        pass  # it has ended by itself


def sweep():
    """Ends what is there and says whether anything was."""
    marks = {NAME + token for token in watched}
    groups = set()
    for leader in watched.values():
        # While a group has members its number is given to no other process.
        if leader and state(int(leader[0]))[1] in (b"", leader[1]):
            groups.add(leader[0])
    found = False
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and ours(int(name), marks, groups):
            found = True
            kill(int(name), lambda pid=int(name): ours(pid, marks, groups))
    return found


def main():
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    rest = b""
    while True:
        data = os.read(0, 1 << 16)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            what, token, *leader = line.split()
            if what == b"+":
                watched[token] = tuple(leader)
            else:
                watched.pop(token, None)
    end, quiet = time.monotonic() + PATIENCE, 0
    while watched and quiet < 3 and time.monotonic() < end:
        quiet = 0 if sweep() else quiet + 1  # one may have started another meanwhile
        time.sleep(0.02)


main()
