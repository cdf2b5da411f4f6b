"""A real ``coppice serve`` for the tests, a proxy that breaks connections to it, and a server that
answers as it is told."""

import contextlib
import http.server
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
    """A server with a home of its own, or with one that is another's too, and stays."""

    def __init__(self, *flags: str, home: str = "", addr: str = "127.0.0.1:0", token: str = "") -> None:
        self.home, self._stays = home or tempfile.mkdtemp(prefix="coppice-client-"), bool(home)
        env = {k: v for k, v in os.environ.items() if k != "COPPICE_TOKEN"}
        env.update({"COPPICE_HOME": self.home, **({"COPPICE_TOKEN": token} if token else {})})
        self._log = pathlib.Path(self.home, "serve.log").open("wb")
        self._process = subprocess.Popen(
            [COPPICE, "serve", "--addr", addr, "--json", "--backend", "runner", "--max-sessions", "64", "--python", PYTHON, *flags],
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

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it as its user does, or otherwise."""
        self._process.send_signal(how)
        try:
            self.code = self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.stdout.close()
            self._log.close()
            self.said = pathlib.Path(self.home, "serve.log").read_text()
            if not self._stays:
                shutil.rmtree(self.home, ignore_errors=True)


class Scripted(http.server.ThreadingHTTPServer):
    """A server that answers as it is told. ``answer`` gets a request as it stands in ``asked``, and
    returns a status, headers and a body of the answer; None: the connection ends without one."""

    class _Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = {"what": f"{self.command} {self.path}", "headers": self.headers, "body": body}
            self.server.asked.append(asked)
            told = self.server.answer(asked)
            self.close_connection = True
            if told is None:
                return
            status, headers, said = told
            self.send_response_only(status)
            said = said if isinstance(said, bytes) else json.dumps(said).encode()
            for name, value in {"Content-Length": len(said), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, *_) -> None:
            pass

    def __init__(self, answer, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), self._Handler)
        self.answer, self.asked = answer, []
        self.url = "http://127.0.0.1:%d" % self.server_address[1]
        self._serving = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._serving.start()

    @property
    def what(self) -> list:
        """What was asked, in turn."""
        return [asked["what"] for asked in self.asked]

    def end(self) -> None:
        self.shutdown()
        self._serving.join(PATIENCE)
        self.server_close()


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
        with contextlib.suppress(OSError), client, socket.create_connection(self._to) as server:
            requests = threading.Thread(target=self._requests, args=(client, server))
            requests.start()
            left = self.most
            self.most += self.most // 2
            try:
                while left > 0:
                    piece = server.recv(min(left, 1 << 16))
                    if not piece:
                        break
                    client.sendall(piece)
                    left -= len(piece)
                else:
                    self.broken += 1
            finally:  # also when the server was killed: a socket that is being read does not end by close
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
