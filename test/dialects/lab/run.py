"""Drives JupyterLab in a headless Chromium, with its kernels in a coppice serve --jupyter.

    python run.py COPPICE PYTHON EXTRAS SCRATCH PICTURES [BACKEND...]

COPPICE is the command, PYTHON the interpreter of its sessions, which has jupyter_kernel_gateway,
EXTRAS a folder with ipywidgets and matplotlib for it,
SCRATCH a folder with a copy of this one, in which node_modules is, and PICTURES one for
screenshots. This interpreter has JupyterLab; CHROMIUM names the browser. All of it runs on the
loopback interface, once for each backend. What does not work ends the run with 1.
"""

import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 1200  # seconds for what takes a minute


def drive(coppice: str, python: str, extras: str, scratch: pathlib.Path, pictures: str, backend: str, folder: pathlib.Path) -> list:
    """Drives JupyterLab on one backend. Returns what went wrong."""
    for sub in ("home", "work", "jupyter"):
        (folder / sub).mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER_", "JPY_", "COPPICE_"))} | {"COPPICE_HOME": str(folder / "home"), "HOME": str(folder / "jupyter")}
    wrong, running, logs, server = [], [], [], None

    def start(name, command, **more):
        logs.append(folder / f"{name}-{len(logs)}.log")
        with logs[-1].open("wb") as log:
            running.append(subprocess.Popen(command, cwd=folder / "work", stdin=subprocess.DEVNULL, stderr=log, **more))
        return running[-1]

    try:
        token = secrets.token_hex()
        keep = ["--keep-sessions"] if backend == "runner" else []

        def serve(addr):
            server = start("serve", [coppice, "serve", "--addr", addr, "--json", "--jupyter", *keep, "--backend", backend, "--python", python], env=env | {"PYTHONPATH": extras, "COPPICE_TOKEN": token}, stdout=subprocess.PIPE, text=True)
            return server, json.loads(server.stdout.readline())

        server, told = serve("127.0.0.1:0")
        lab = start("lab", [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0", f"--ServerApp.root_dir={folder / 'work'}",
            "--IdentityProvider.token=of-the-test", "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ], env=env | {"JUPYTER_GATEWAY_URL": told["jupyter_url"], "JUPYTER_GATEWAY_AUTH_TOKEN": token, "JUPYTER_RUNTIME_DIR": str(folder / "jupyter" / "runtime")}, stdout=subprocess.DEVNULL)
        url = address(folder / "jupyter" / "runtime", lab)
        p = subprocess.Popen(
            ["node", scratch / "lab.mjs", url + "lab?token=of-the-test", folder / "work", pictures, backend],
            cwd=scratch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        running.append(p)
        asked, over = folder / "work" / "restart", time.monotonic() + PATIENCE
        while p.poll() is None and time.monotonic() < over:
            if asked.exists():  # the page wants this server killed, and another one in its place
                running.remove(server)
                server.kill()
                server.wait(PATIENCE)
                server, _ = serve(told["url"].removeprefix("http://"))
                running.insert(0, running.pop())  # JupyterLab ends its kernels there first
                asked.unlink()
            time.sleep(0.1)
        p.kill()
        running.remove(p)
        print(f"{'ok ' if p.wait() == 0 else 'bad'} {backend}, JupyterLab in Chromium: {p.stdout.read().strip()}", flush=True)
        if p.returncode != 0:
            wrong.append(f"{backend}: exit code {p.returncode}")
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
            code = process.wait(PATIENCE)
            if process is server and code not in (0, 143):
                wrong.append(f"{backend}: coppice serve: exit code {code}")
        if wrong:
            print(*(log.read_text()[-3000:] for log in logs), sep="\n")
    return wrong


def address(runtime: pathlib.Path, process: subprocess.Popen) -> str:
    """Where JupyterLab listens, once it answers."""
    over = time.monotonic() + PATIENCE
    while time.monotonic() < over and process.poll() is None:
        for record in runtime.glob("jpserver-*.json"):
            try:
                url = json.loads(record.read_text())["url"]
                with urllib.request.urlopen(url + "api/status?token=of-the-test"):
                    return url
            except (ValueError, KeyError, urllib.error.URLError):
                pass  # it is being written, or the server begins
        time.sleep(0.1)
    raise SystemExit("JupyterLab did not start")


def main() -> None:
    coppice, python, extras = (os.path.abspath(a) for a in sys.argv[1:4])
    scratch, pictures = pathlib.Path(sys.argv[4]).resolve(), os.path.abspath(sys.argv[5])
    os.makedirs(pictures, exist_ok=True)
    wrong = []
    for backend in sys.argv[6:] or ("runner", "gateway"):
        with tempfile.TemporaryDirectory(prefix="coppice-lab-", ignore_cleanup_errors=True) as name:
            wrong += drive(coppice, python, extras, scratch, pictures, backend, pathlib.Path(name))
    if wrong:
        sys.exit("bad " + "; ".join(wrong))


main()
