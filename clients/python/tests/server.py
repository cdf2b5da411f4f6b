"""A real ``coppice serve`` for the tests, and a proxy that breaks connections to it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

#: The command, and the Python of its sessions.
COPPICE = os.environ.get("COPPICE", "coppice")
PYTHON = os.environ.get("PYTHON", sys.executable)
#: Bounds every wait.
PATIENCE = 60


class Server:
    """A server with a home of its own."""

    def __init__(self, *flags: str) -> None:
        self.home = tempfile.mkdtemp(prefix="coppice-client-")
        env = {k: v for k, v in os.environ.items() if k != "COPPICE_TOKEN"}
        env["COPPICE_HOME"] = self.home
        self._log = pathlib.Path(self.home, "serve.log").open("wb")
        self._process = subprocess.Popen(
            [COPPICE, "serve", "--addr", "127.0.0.1:0", "--json", "--backend", "runner", "--max-sessions", "64", "--python", PYTHON, *flags],
            env=env, cwd=self.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True,
        )
        line = self._process.stdout.readline()
        if not line:
            self.end()
            raise RuntimeError("coppice serve did not start: " + self.said)
        told = json.loads(line)
        self.url = told["url"]
        self.record = pathlib.Path(told["token_file"])
        self.token = json.loads(self.record.read_text())["token"]

    def end(self) -> None:
        """End it as its user does."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self.code = self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.stdout.close()
            self._log.close()
            self.said = pathlib.Path(self.home, "serve.log").read_text()
            shutil.rmtree(self.home, ignore_errors=True)


class Breaker:
    """A proxy in front of a server, whose connections end after so many bytes of answers,
    each after half as many again as the one before: so that any event comes through."""

    def __init__(self, url: str, most: int) -> None:
        host, _, port = url.rpartition("://")[2].partition(":")
        self._to = (host, int(port))
        self.most = most
        self.broken = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._threads = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._carry, args=(client,))
            thread.start()
            self._threads.append(thread)

    def _carry(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._to) as server, contextlib.suppress(OSError):
            requests = threading.Thread(target=self._requests, args=(client, server))
            requests.start()
            left = self.most
            self.most += self.most // 2
            while left > 0:
                piece = server.recv(min(left, 1 << 16))
                if not piece:
                    break
                client.sendall(piece)
                left -= len(piece)
            else:
                self.broken += 1
            for s in (client, server):
                with contextlib.suppress(OSError):
                    s.shutdown(socket.SHUT_RDWR)
            requests.join(PATIENCE)

    @staticmethod
    def _requests(client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                piece = client.recv(1 << 16)
                if not piece:
                    break
                server.sendall(piece)

    def end(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)


def until(condition) -> None:
    """Wait for what is expected."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come to be")
        time.sleep(0.01)
