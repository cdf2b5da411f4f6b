"""Measures coppice serve --jupyter beside a Jupyter Server with ipykernel, in turns, by one client.

    python run.py COPPICE PYTHON SCRATCH [KERNELS]

COPPICE is the command, PYTHON the interpreter of all kernels, which has jupyter_server and
ipykernel, SCRATCH a folder for figures.json. This interpreter has websocket-client. On each
server: how long it takes from asking for a kernel to the result of 1 + 1, what KERNELS (50)
kernels that have run that take of memory (PSS, with all processes of the server, less what it
takes without any; Linux), and how long 1 + 1 takes on one kernel. Both are on the loopback interface, and what
else the machine does meets both alike: trust the ratios. The load is printed.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

import websocket

PATIENCE = 600  # seconds for what takes a few
STARTS, ROUNDS, EACH = 11, 10, 50


class Kernel:
    """One kernel of a server, and a connection to it."""

    def __init__(self, server: "Server"):
        self.server = server
        self.id = server.ask("POST", "/api/kernels", {"name": "python3"})["id"]
        self.session = uuid.uuid4().hex
        self.socket = websocket.create_connection(
            f"{server.url.replace('http', 'ws', 1)}/api/kernels/{self.id}/channels?session_id={self.session}&token={server.token}", timeout=PATIENCE
        )

    def run(self, code: str) -> str:
        """Runs code, and returns the text of its result when the kernel has said all."""
        ident, result, replied, idle = uuid.uuid4().hex, "", False, False
        header = {"msg_id": ident, "msg_type": "execute_request", "session": self.session, "username": "", "version": "5.3", "date": ""}
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False, "stop_on_error": True}
        self.socket.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}))
        while not (replied and idle):
            m = json.loads(self.socket.recv())
            if m["parent_header"].get("msg_id") != ident:
                continue
            kind = m["header"]["msg_type"]
            replied = replied or kind == "execute_reply"
            idle = idle or kind == "status" and m["content"]["execution_state"] == "idle"
            if kind == "execute_result":
                result = m["content"]["data"]["text/plain"]
        return result

    def end(self) -> None:
        self.socket.close()
        self.server.ask("DELETE", f"/api/kernels/{self.id}")


class Server:
    """One of the two."""

    def __init__(self, name: str, command: list, env: dict, folder: pathlib.Path, where):
        self.name, self.token = name, "of-the-measurement-of-both"
        folder.mkdir()
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        over = time.monotonic() + PATIENCE
        while time.monotonic() < over and self.process.poll() is None:
            try:
                self.url = where(folder)
                self.ask("GET", "/api/kernelspecs")
                return
            except (OSError, ValueError, KeyError, IndexError):
                time.sleep(0.05)  # it is not there yet
        raise SystemExit(f"{name} did not start: {self.log.read_text()[-3000:]}")

    def ask(self, method: str, path: str, body=None):
        request = urllib.request.Request(
            self.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "token " + self.token, "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    def memory(self) -> int:
        """What all its processes take, in bytes, what they share counted once."""
        parents = {}
        for entry in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
        below, total = {self.process.pid}, 0
        while more := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= more
        for pid in below:
            try:
                rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
            except OSError:
                continue
            total += sum(int(line.split()[1]) << 10 for line in rollup.splitlines() if line.startswith("Pss:"))
        return total

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def timed(run) -> float:
    begin = time.perf_counter()
    if run() != "2":
        raise SystemExit("1 + 1 is not 2")
    return time.perf_counter() - begin


def measure(servers: list, kernels: int) -> dict:
    figures = {server.name: {} for server in servers}
    spent = {server.name: [] for server in servers}
    for _ in range(STARTS + 1):
        for server in servers:
            started = []
            spent[server.name].append(timed(lambda: started.append(Kernel(server)) or started[0].run("1+1")))
            started[0].end()
    for name, times in spent.items():
        times = sorted(times[1:])  # the first finds nothing prepared
        figures[name]["start_ms"] = {"p50": statistics.median(times) * 1e3, "most": times[-1] * 1e3}

    one = {server.name: Kernel(server) for server in servers}
    spent = {name: [] for name in one}
    for _ in range(ROUNDS):
        for name, kernel in one.items():
            spent[name] += [timed(lambda: kernel.run("1+1")) for _ in range(EACH)]
    for name, times in spent.items():
        times.sort()
        figures[name]["execute_ms"] = {"p50": statistics.median(times) * 1e3, "p99": times[len(times) * 99 // 100] * 1e3}
        one[name].end()

    for server in servers:
        before, all_of_them = server.memory(), []
        begin = time.perf_counter()
        for _ in range(kernels):
            all_of_them.append(Kernel(server))
            all_of_them[-1].run("1+1")
        took = time.perf_counter() - begin
        figures[server.name] |= {"kernels": kernels, "kernels_s": took, "memory_mib": (server.memory() - before) / kernels / (1 << 20)}
        for kernel in all_of_them:
            kernel.end()
    return figures


def main() -> None:
    coppice, python = (os.path.abspath(a) for a in sys.argv[1:3])
    scratch, kernels = pathlib.Path(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 50
    servers = []
    with tempfile.TemporaryDirectory(prefix="coppice-figures-", ignore_cleanup_errors=True) as name:
        folder = pathlib.Path(name)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER_", "JPY_", "COPPICE_", "IPYTHON"))}
        env |= {"HOME": str(folder), "COPPICE_HOME": str(folder / "home"), "COPPICE_TOKEN": "of-the-measurement-of-both", "PYTHONDONTWRITEBYTECODE": "1"}
        env |= {f"JUPYTER_{what}_DIR": str(folder / what.lower()) for what in ("RUNTIME", "CONFIG", "DATA")}
        try:
            servers.append(Server(
                "jupyter_server", [
                    python, "-m", "jupyter_server", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", "--no-browser", "--allow-root",
                    "--IdentityProvider.token=of-the-measurement-of-both",
                ], env, folder / "jupyter",
                lambda _: json.loads(next(iter((folder / "runtime").glob("jpserver-*.json")), pathlib.Path(os.devnull)).read_text())["url"].rstrip("/"),
            ))
            servers.append(Server(
                "coppice", [coppice, "serve", "--addr", "127.0.0.1:0", "--json", "--jupyter", "--backend", "runner", "--python", python], env, folder / "coppice",
                lambda at: json.loads((at / "log").read_text().splitlines()[0])["jupyter_url"],
            ))
            load = os.getloadavg()[0]
            figures = measure(servers, kernels)
        finally:
            for server in servers:
                server.end()
    theirs, ours = figures["jupyter_server"], figures["coppice"]
    print(f"{'':42} {'jupyter_server':>16} {'coppice':>10} {'times':>7}")
    for title, unit, get in (
        ("a kernel and 1 + 1, p50", "ms", lambda f: f["start_ms"]["p50"]),
        (f"a kernel and 1 + 1, the most of {STARTS}", "ms", lambda f: f["start_ms"]["most"]),
        ("1 + 1, p50", "ms", lambda f: f["execute_ms"]["p50"]),
        ("1 + 1, p99", "ms", lambda f: f["execute_ms"]["p99"]),
        (f"{kernels} kernels, one after the other", "s", lambda f: f["kernels_s"]),
        (f"memory of each of {kernels} kernels", "MiB", lambda f: f["memory_mib"]),
    ):
        print(f"{title:42} {get(theirs):12.2f} {unit:>3} {get(ours):6.2f} {unit:>3} {get(theirs) / max(get(ours), 1e-9):7.1f}")
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} processors")
    (scratch / "figures.json").write_text(json.dumps(figures, indent=1))


main()
