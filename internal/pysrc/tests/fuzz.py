"""Feeds a session and a fork server what no host would send, for as long as it is
told: python tests/fuzz.py TIME [SEED], with a time as Go writes it (90s, 10m).
Each batch must leave them able to answer; what is found is printed with the seed
that finds it again."""

import json
import os
import random
import select
import signal
import socket
import sys
import time

import sources  # noqa: F401, it finds coppice_runner
from driver import Driver

SESSION = [
    {"type": "execute", "id": 1, "code": "1"},
    {"type": "execute", "id": 2, "code": "print('x')", "allow_stdin": True, "env": {"A": "1"}, "cwd": "/"},
    {"type": "patch", "id": 3, "env": {"A": "1", "B": None}, "cwd": "/"},
    {"type": "reset", "id": 4},
    {"type": "init", "version": 1, "limits": {"memory": 1 << 40}, "prelude": "1"},
    {"type": "fork", "id": 5, "n": 0},
]
CONTROL = [
    {"type": "ping", "n": 1},
    {"type": "interrupt", "n": 2, "id": 7},
    {"type": "input", "request": "1.1", "value": "x"},
]
SERVER = [
    {"type": "ping", "n": 1},
    {"type": "fork", "n": 2},
    {"type": "signal", "n": 3, "pid": 0, "signal": 0, "group": True},
    {"type": "drain", "n": 4, "pid": 0},
]
VALUES = [None, True, 0, -1, 1.5, 1 << 70, "", "x", "\ud800", "\x00", [], [1], {}, {"a": 1}, [[[]]], "9" * 5000]


def mutated(rnd, seeds):
    """Returns one line that was a request once."""
    request = dict(rnd.choice(seeds))
    for _ in range(rnd.randrange(3)):
        name = rnd.choice([*request, "id", "n", "type", "more"])
        if rnd.random() < 0.2:
            request.pop(name, None)
        elif name != "type" or rnd.random() < 0.1:
            request[name] = rnd.choice(VALUES)
    line = bytearray(json.dumps(request).encode())
    for _ in range(rnd.choice([0, 0, 0, 1, 2, 8])):
        at = rnd.randrange(len(line) + 1)
        what = rnd.randrange(4)
        if what == 0 and at < len(line):
            line[at] = rnd.randrange(256)
        elif what == 1:
            line[at:at] = bytes(rnd.randrange(256) for _ in range(rnd.randrange(6)))
        elif what == 2:
            line[at:at] = line[: rnd.randrange(len(line) + 1)]
        else:
            del line[at : at + rnd.randrange(8)]
    return bytes(line).replace(b"\n", b" ")


def harmless(line):
    """Says whether a line cannot end or stop a session by its meaning."""
    return b'"exit"' not in line and b"forking" not in line


def session(rnd, lines):
    """Feeds one session, on both of its sockets."""
    s = Driver()
    try:
        for _ in range(lines):
            if rnd.random() < 0.5:
                line, sock = mutated(rnd, SESSION), s.main
            else:
                line, sock = mutated(rnd, CONTROL), s.control
            try:
                request = json.loads(line)
                n = request.get("n")
                if request.get("type") == "fork" and isinstance(n, int) and 0 < n <= 64:
                    continue  # it would wait for descriptors
            except (ValueError, AttributeError, RecursionError):
                pass
            if harmless(line):
                s.send(line + b"\n", sock)
            for other in (s.main, s.control):
                while select.select([other], [], [], 0)[0]:
                    data = other.recv(1 << 16)
                    assert data, "the session ended"
        s.buffers = {s.main: b"", s.control: b""}
        s.send(b"\n")  # what was left half read ends here
        s.request({"type": "execute", "id": 10**12, "code": "6 * 7"})
        seen = b""
        while b'"id":1000000000000,' not in seen or b'"done"' not in seen.split(b'"id":1000000000000,', 1)[1]:
            assert select.select([s.main], [], [], 30)[0], "no answer on main"
            data = s.main.recv(1 << 16)
            assert data, "the session ended"
            seen += data
        s.request({"type": "ping", "n": 10**12}, s.control)
        seen = b""
        while b'"n":1000000000000' not in seen:
            assert select.select([s.control], [], [], 30)[0], "no answer on control"
            data = s.control.recv(1 << 16)
            assert data, "the session ended"
            seen += data
    finally:
        s.close()


def server(rnd, lines):
    """Feeds one fork server, with descriptors now and then."""
    ours, theirs = socket.socketpair()
    life_read, life = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            os.close(life)
            from coppice_runner import forkserver

            try:
                forkserver.Server(theirs, life_read).serve(dict)
            except forkserver.Forked:
                os._exit(0)
        finally:
            os._exit(99)
    theirs.close()
    os.close(life_read)
    try:
        seen = b""
        for _ in range(lines):
            line = mutated(rnd, SERVER) + b"\n"
            fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(rnd.choice([0, 0, 0, 1, 6, 7]))]
            if fds:
                socket.send_fds(ours, [line], fds)
            else:
                ours.sendall(line)
            for fd in fds:
                os.close(fd)
            while select.select([ours], [], [], 0)[0]:
                data = ours.recv(1 << 16)
                assert data, "the fork server ended"
        ours.sendall(b'\n{"type":"ping","n":1000000000000}\n')
        while b'"n":1000000000000' not in seen:
            assert select.select([ours], [], [], 30)[0], "no answer"
            data = ours.recv(1 << 16)
            assert data, "the fork server ended"
            seen += data
    finally:
        ours.close()
        os.close(life)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def seconds_of(text):
    """Returns how long a time is."""
    units = {"s": 1, "m": 60, "h": 3600}
    return float(text[:-1]) * units[text[-1]] if text[-1] in units else float(text)


def main():
    seconds = seconds_of(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    deadline = time.monotonic() + seconds
    batches = lines = 0
    while time.monotonic() < deadline:
        rnd = random.Random(seed + batches)
        n = rnd.choice([20, 200, 1000])
        what = session if batches % 2 == 0 else server
        try:
            what(rnd, n)
        except (AssertionError, OSError) as err:
            sys.exit(f"{what.__name__}: {err!r}; seed {seed + batches}")
        batches += 1
        lines += n
    print(f"{lines} lines in {batches} batches, {seconds:.0f} s, no crash")


if __name__ == "__main__":
    main()
