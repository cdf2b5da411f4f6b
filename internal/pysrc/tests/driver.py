"""A session in a process of its own, for tests: what the host does, in Python."""

import json
import os
import select
import signal
import socket
import sys
import time

import sources  # noqa: F401, it finds coppice_runner

PATIENCE = 60.0


class Driver:
    """Starts a session and talks to it. A spare has waited for its init: its side
    thread serves already. With pipes, leftovers tells what the session has left there."""

    def __init__(self, spare=False, pipes=False, **init):
        keep = pipes
        self.main, main = socket.socketpair()
        self.control, control = socket.socketpair()
        pipes = [*os.pipe(), *os.pipe()]
        self.lifeline, self.life = os.pipe()[::-1]
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.main.close()
                self.control.close()
                os.close(self.lifeline)
                from coppice_runner import forkserver
                from coppice_runner.session import Session, prepare

                prepare()
                Session().run(*forkserver.take_seat([main.detach(), control.detach(), *pipes]), self.life)
            finally:
                os._exit(99)
        main.close()
        control.close()
        os.close(self.life)
        self.kept = [os.dup(pipes[at]) for at in (0, 2)] if keep else []
        for fd in pipes:
            os.close(fd)
        self.buffers = {self.main: b"", self.control: b""}
        self.cells = 0
        self.parent = None
        self.mark = init.get("mark", "").encode()
        if spare:
            self.request({"type": "ping", "n": 1}, self.control)
            assert self.frame(self.control)["type"] == "pong"
        self.request({"type": "init", "version": 1, **init})
        ready = self.frame()
        if ready["type"] != "ready":
            self.close()
        assert ready["type"] == "ready" and ready["pid"] == self.pid, ready

    def send(self, data, sock=None):
        """Sends bytes. While there is no room for them, it takes what comes on main:
        a session that cannot answer takes no more requests."""
        sock = sock or self.main
        view = memoryview(data)
        while view:
            try:
                view = view[sock.send(view, socket.MSG_DONTWAIT) :]
                continue
            except BlockingIOError:
                readable, _, _ = select.select([self.main], [sock], [])
            if readable:
                data = self.main.recv(1 << 16)
                if not data:
                    raise ConnectionResetError("the session ended")
                self.buffers[self.main] += data

    def request(self, request, sock=None):
        """Sends a request."""
        self.send(json.dumps(request).encode() + b"\n", sock)

    def frame(self, sock=None, patience=PATIENCE):
        """Returns the next frame, or None when the session has ended."""
        sock = sock or self.main
        deadline = time.monotonic() + patience
        while b"\n" not in self.buffers[sock]:
            if not self._more(sock, deadline):
                return None
        line, _, self.buffers[sock] = self.buffers[sock].partition(b"\n")
        frame = json.loads(line[len(self.mark) if line.startswith(self.mark) else 0 :])
        if "raw" in frame:
            while len(self.buffers[sock]) < frame["raw"] and self.mark not in self.buffers[sock]:
                if not self._more(sock, deadline):
                    return None
            size = min(frame["raw"], self.buffers[sock].find(self.mark) % (1 << 32))
            frame["text"], self.buffers[sock] = self.buffers[sock][:size].decode("utf-8", "replace"), self.buffers[sock][size:]
        return frame

    def _more(self, sock, deadline):
        left = deadline - time.monotonic()
        assert left > 0 and select.select([sock], [], [], left)[0], "nothing came"
        data = sock.recv(1 << 16)
        self.buffers[sock] += data
        return bool(data)

    def taken(self):
        """Takes what has come on main already, keeps it for frame, and returns
        what is kept."""
        while select.select([self.main], [], [], 0)[0]:
            data = self.main.recv(1 << 16)
            if not data:
                break
            self.buffers[self.main] += data
        return self.buffers[self.main]

    def execute(self, code, **more):
        """Runs a cell and returns its frames."""
        self.cells += 1
        self.request({"type": "execute", "id": self.cells, "code": code, **more})
        return self.cell()

    def cell(self):
        """Returns the frames of the running cell."""
        frames = []
        while not frames or frames[-1]["type"] != "done":
            frame = self.frame()
            assert frame is not None, "the session ended"
            frames.append(frame)
        return frames

    def value(self, code):
        """Returns the text of a cell's result."""
        for frame in self.execute(code):
            if frame["type"] == "error":
                raise AssertionError(frame)
            if frame["type"] == "result":
                return frame["data"]["text/plain"]
        return None

    def copies(self, n, **more):
        """Has the session fork n copies of itself and returns their drivers, or
        the frame that says why not."""
        self.request({"type": "fork", "id": 0, "n": n, **more})
        frame = self.frame()
        if frame["type"] != "forking":
            return frame
        made = []
        for _ in range(n):
            copy = Driver.__new__(Driver)
            copy.mark = self.mark
            copy.main, main = socket.socketpair()
            copy.control, control = socket.socketpair()
            fds = [main.detach(), control.detach(), *os.pipe(), *os.pipe()]
            socket.send_fds(self.main, [b"\n"], fds)
            for fd in fds:
                os.close(fd)
            copy.lifeline, copy.cells, copy.parent, copy.kept = os.dup(self.lifeline), self.cells, self, []
            copy.buffers = {copy.main: b"", copy.control: b""}
            made.append(copy)
        assert self.frame() == {"type": "done", "id": 0, "ok": True}
        for copy in made:
            ready = copy.frame()
            assert ready["type"] == "ready", ready
            copy.pid = ready["pid"]
        return made

    def leftovers(self):
        """Returns what a session that has ended had printed and not sent."""
        from coppice_runner.wire import drain_descriptor

        return [drain_descriptor(fd) for fd in self.kept]

    def close(self):
        """Ends the session and returns its wait status, 0 of a copy, which is no
        child of this process."""
        self.main.close()
        self.control.close()
        os.close(self.lifeline)
        for fd in self.kept:
            os.close(fd)
        self.kept = []
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        return os.waitpid(self.pid, 0)[1] if self.parent is None else 0
