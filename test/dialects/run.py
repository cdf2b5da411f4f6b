"""Holds coppice serve --e2b against E2B's own SDKs.

    python run.py COPPICE PYTHON EXTRAS SCRATCH [COPPICE-FLEET]

COPPICE is the command, PYTHON the interpreter of its sessions, EXTRAS a folder with
matplotlib and pandas for it, and SCRATCH a folder with a copy of this one, in which
node_modules is. This interpreter has the SDK for Python. A real server runs meanwhile, on
the loopback interface; with COPPICE-FLEET it is a fleet, by its front. What every method does is printed; one that neither works nor is
refused with an error of the SDK ends the run with 1.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from fleet import Fleet

PATIENCE = 300  # seconds for what takes a minute

# What of the SDKs belongs to no sandbox.
OTHERS = ("Template", "Volume", "Secret")


class Server:
    """coppice serve --e2b."""

    def __init__(self, coppice: str, python: str, backend: str, folder: pathlib.Path, *flags: str):
        self.log = folder / "serve.log"
        for name in ("home", "work"):
            (folder / name).mkdir()
        env = {k: v for k, v in os.environ.items() if k != "COPPICE_TOKEN" and not k.startswith("E2B_")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [coppice, "serve", "--addr", "127.0.0.1:0", "--json", "--e2b", "--backend", backend, "--python", python, *flags],
                cwd=folder / "work", env={**env, "COPPICE_HOME": str(folder / "home")}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        told = json.loads(self.process.stdout.readline())
        token = json.loads(pathlib.Path(told["token_file"]).read_text())["token"]
        self.env = {"E2B_API_URL": told["e2b_url"], "E2B_SANDBOX_URL": told["e2b_url"], "E2B_API_KEY": token}

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


class Front:
    """A fleet that serves E2B's SDKs, by its front."""

    def __init__(self, program: str, python: str, folder: pathlib.Path):
        (folder / "work").mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith("E2B_")}
        self.fleet = Fleet(program, folder, folder / "work", env, "--python", python, "--e2b")
        self.log, self.end = self.fleet.log, self.fleet.end
        at = self.fleet.told["e2b_url"]
        self.env = {"E2B_API_URL": at, "E2B_SANDBOX_URL": at, "E2B_API_KEY": self.fleet.token}


def drive(coppice: str, python: str, extras: str, scratch: pathlib.Path, backend: str) -> tuple[list, list]:
    """Lets the SDKs use a server on a backend, or a fleet. Returns what each method did, and what went wrong besides."""
    bad, rows = [], []
    with tempfile.TemporaryDirectory(prefix="coppice-dialects-") as name:
        server = Front(coppice, python, pathlib.Path(name)) if backend == "fleet" else Server(coppice, python, backend, pathlib.Path(name))
        try:
            for sdk, args in {
                "JavaScript": ["node", scratch / "sandbox.mjs"], "Python": [sys.executable, scratch / "sandbox.py", "sync"], "Python, async": [sys.executable, scratch / "sandbox.py", "async"],
            }.items():
                p = subprocess.run([str(a) for a in args], cwd=scratch, env={**os.environ, **server.env, "EXTRAS": extras, "KEEPS": "0" if backend == "gateway" else "1"}, timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
                if p.returncode != 0:
                    bad.append(f"{sdk}: exit code {p.returncode}")
                    continue
                rows += [(sdk, method, said) for method, said in json.loads(p.stdout.splitlines()[-1])]
        finally:
            code = server.end()
        if code not in (0, 143):
            bad.append(f"coppice serve: exit code {code}")
        if bad:
            print(server.log.read_text()[-5000:])
    return rows, bad


# What uses the sandbox of E2B_DEBUG, with no key and no address.
DEBUG = """
from e2b_code_interpreter import Sandbox
s = Sandbox.create()
assert s.sandbox_id == "debug_sandbox_id" and s.is_running()
s.files.write("f", "text")
assert s.run_code("open('f').read()").text == "text"
assert s.commands.run("cat f").stdout == "text"
assert s.kill()
"""


def debug(coppice: str, python: str) -> None:
    """Lets the SDK for Python use a server as E2B_DEBUG has it, at its fixed ports."""
    with tempfile.TemporaryDirectory(prefix="coppice-dialects-") as name:
        server = Server(coppice, python, "runner", pathlib.Path(name), "--e2b-debug")
        try:
            env = {k: v for k, v in os.environ.items() if not k.startswith("E2B_")}
            subprocess.run([sys.executable, "-c", DEBUG], env={**env, "E2B_DEBUG": "true"}, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=True)
        finally:
            server.end()
    print("ok  E2B_DEBUG, Python: the sandbox of the fixed ports runs code and commands", flush=True)


def main() -> None:
    coppice, python, extras = (os.path.abspath(a) for a in sys.argv[1:4])
    scratch = pathlib.Path(sys.argv[4]).resolve()
    fleet = [os.path.abspath(a) for a in sys.argv[5:]]
    if not fleet:
        debug(coppice, python)
    wrong = []
    for backend in ["fleet"] if fleet else ["runner", "gateway"]:
        rows, bad = drive((fleet + [coppice])[0], python, extras, scratch, backend)
        for sdk, method, said in rows:
            print(f"{backend:8} {sdk:14} {method:32} {said}")
        for sdk in dict.fromkeys(row[0] for row in rows):
            for what, others in (("methods of sandboxes", False), ("of templates, volumes and secrets", True)):
                of = [said for name, method, said in rows if name == sdk and (method.split(".")[0] in OTHERS) == others]
                work, refused = sum(s == "works" for s in of), sum(s.startswith("refused") for s in of)
                if of:
                    print(f"ok  {backend}, {sdk}: {work} of {len(of)} {what} work ({100 * work // len(of)} %), {refused} are refused with E2B's error", flush=True)
                if not others and backend != "gateway" and work < 0.95 * len(of):
                    wrong.append(f"{backend}, {sdk}: fewer than 95 % of the methods work")
        wrong += [f"{backend}: {b}" for b in bad + [f"{sdk}: {method}" for sdk, method, said in rows if said.startswith("FAILS")]]
    if wrong:
        sys.exit("bad " + "; ".join(wrong))


main()
