"""The server that a kernel's session is in: one that runs, or a private one."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Optional

# What the provisioner and the user say to the kernel, as variables of its environment.
URL = "COPPICE_KERNEL_URL"  # of a server, with /jupyter at its end
TOKEN = "COPPICE_TOKEN"
WHICH = "COPPICE_KERNEL_SERVER"  # running, private or auto
COMMAND = "COPPICE"  # the command coppice

# How long a request may take, in seconds: the start of a session can wait for others.
_PATIENCE = 120.0
# How long a private server has to end, in seconds.
_GRACE = 30.0


class ServerError(Exception):
    """What keeps a kernel from having a server."""


@dataclass
class Server:
    """A server whose kernels are sessions of coppice."""

    url: str  # with /jupyter at its end
    token: str
    process: Optional["subprocess.Popen[str]"] = None  # of a private one
    home: Optional[str] = None  # the folder of a private one

    def request(self, method: str, path: str, body: Optional[Dict[str, Any]] = None) -> Any:
        """Makes a request below /api and returns what was answered, None for nothing. It
        raises ServerError with what the server says."""
        data = None if body is None else json.dumps(body).encode()
        r = urllib.request.Request(f"{self.url}/api/{path}", data, {"Authorization": f"token {self.token}", "Content-Type": "application/json"}, method=method)
        try:
            # No proxy: the server is on this machine.
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(r, timeout=_PATIENCE) as answer:
                text = answer.read()
        except urllib.error.HTTPError as err:
            raise ServerError(f"{method} {path}: {err.code}: {_message(err.read())}") from None
        except OSError as err:
            raise ServerError(f"{method} {path}: {err}") from None
        return json.loads(text) if text else None

    def start_kernel(self, cwd: str) -> str:
        """Starts a session, which ends with the connection to it, and returns the id of
        the kernel that it is."""
        return str(self.request("POST", "kernels", {"name": "python3", "cwd": cwd, "leased": True})["id"])

    def end_kernel(self, ident: str) -> None:
        """Ends a session. One that is not there any more is no error."""
        try:
            self.request("DELETE", f"kernels/{ident}")
        except ServerError:
            pass  # the session has gone, or the server has, and all its sessions with it

    def close(self) -> None:
        """Ends a private server with all that runs in it, and removes its folder."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()
            self.process = None
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)
            self.home = None


def _message(text: bytes) -> str:
    try:
        said = json.loads(text)
        return f"{said['message']}: {said['reason']}" if said.get("reason") else str(said["message"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return text.decode(errors="replace")[:500]


def running(env: Mapping[str, str]) -> Optional[Server]:
    """Returns the server that the environment names, else the one of this user that runs
    and serves Jupyter's clients, None when there is none."""
    if env.get(URL):
        return Server(env[URL].rstrip("/"), env.get(TOKEN, ""))
    home = pathlib.Path(env.get("COPPICE_HOME") or os.path.expanduser("~"))
    try:
        with (home / ".coppice" / "serve.json").open() as f:
            if os.fstat(f.fileno()).st_mode & 0o077:
                raise OSError("others can read it, and may have written it")
            record = json.load(f)
        os.kill(record["pid"], 0)  # raises when that process has ended
        server = Server(record["url"] + "/jupyter", record["token"])
        server.request("GET", "kernelspecs")  # it answers, and takes the token
    except (OSError, ValueError, KeyError, TypeError, ServerError):
        return None  # none runs, or it serves no Jupyter's clients
    return server


def command(env: Mapping[str, str]) -> str:
    """Returns the command coppice. It raises ServerError where there is none."""
    found = shutil.which(env.get(COMMAND) or "coppice", path=env.get("PATH"))
    if found is None:
        raise ServerError(
            "no coppice serve --jupyter runs, and there is no command coppice to start one with; "
            f"start one, put coppice on PATH, or name it with {COMMAND}"
        )
    return found


def private(env: Mapping[str, str], cwd: str) -> Server:
    """Starts a server of this process's own, with the interpreter that runs this. On Linux
    it ends with this process, however that ends; elsewhere close has to be called."""
    home = tempfile.mkdtemp(prefix="coppice-kernel-")
    own = {k: v for k, v in env.items() if k not in (TOKEN, URL)}
    with open(os.path.join(home, "serve.log"), "wb") as log:
        process = subprocess.Popen(
            [command(env), "serve", "--jupyter", "--addr", "127.0.0.1:0", "--json", "--backend", "runner", "--python", sys.executable, "--cwd", cwd, "--idle", "-1"],
            env={**own, "COPPICE_HOME": home}, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=_end_with_parent(), start_new_session=True,
        )
    server = Server("", "", process, home)
    assert process.stdout is not None
    try:
        told = json.loads(process.stdout.readline())
        server.url = told["jupyter_url"]
        server.token = json.loads(pathlib.Path(told["token_file"]).read_text())["token"]
    except (OSError, ValueError, KeyError) as err:
        with open(os.path.join(home, "serve.log"), errors="replace") as said:
            why = said.read()[-2000:].strip()
        server.close()
        raise ServerError(f"coppice serve did not start: {why or err}") from None
    return server


def _end_with_parent() -> Optional[Callable[[], None]]:
    """Returns what has Linux end a process when its parent does."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (OSError, AttributeError):
        return None
    PR_SET_PDEATHSIG = 1
    return lambda: prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0) and None


def choose(env: Mapping[str, str], cwd: str) -> Server:
    """Returns the server that the environment asks for: one that runs, or a private one;
    without a word, the first where there is one."""
    which = env.get(WHICH) or "auto"
    if which not in ("auto", "running", "private"):
        raise ServerError(f"{WHICH} is running, private or auto, not {which!r}")
    found = None if which == "private" else running(env)
    if found is None and which == "running":
        raise ServerError("no coppice serve --jupyter runs for this user; start it in another terminal")
    return found or private(env, cwd)
