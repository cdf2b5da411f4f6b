"""Holds coppice serve --jupyter, and the package coppice-kernel, against clients of Jupyter.

    python run.py COPPICE SCRATCH [COPPICE-FLEET]

COPPICE is the command, SCRATCH a folder with a copy of this one, in which node_modules is. This
interpreter has the clients, coppice-kernel, and what sessions import. A real server runs
meanwhile, on the loopback interface; with COPPICE-FLEET it is a fleet, by its front. What fails ends the run with 1.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from fleet import Fleet

PATIENCE = 600  # seconds for what takes a minute


class Server:
    """coppice serve --jupyter."""

    def __init__(self, coppice: str, folder: pathlib.Path, env: "dict[str, str]"):
        self.log = folder / "serve.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [coppice, "serve", "--addr", "127.0.0.1:0", "--json", "--jupyter", "--backend", "runner", "--python", sys.executable],
                cwd=folder / "work", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        self.told = json.loads(self.process.stdout.readline())
        self.token = json.loads(pathlib.Path(self.told["token_file"]).read_text())["token"]

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def main() -> None:
    fleet = sys.argv[3:]
    coppice, scratch = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="coppice-jupyter-") as name:
        folder = pathlib.Path(name)
        for sub in ("home", "work", "jupyter"):
            (folder / sub).mkdir()
        env = {k: v for k, v in os.environ.items() if k != "COPPICE_TOKEN" and not k.startswith(("JUPYTER_", "JPY_", "COPPICE_KERNEL_"))}
        env |= {"COPPICE_HOME": str(folder / "home"), "JUPYTER_CONFIG_DIR": str(folder / "jupyter"), "JUPYTER_RUNTIME_DIR": str(folder / "jupyter"), "COPPICE": coppice, "PYTHONDONTWRITEBYTECODE": "1"}
        if fleet:
            server = Fleet(os.path.abspath(fleet[0]), folder, folder / "work", env, "--python", sys.executable, "--jupyter")
            env["COPPICE_HOME"] = str(folder)  # by which the kernel finds the server that runs
        else:
            server = Server(coppice, folder, env)
        try:
            env |= {"JUPYTER_URL": server.told["jupyter_url"], "JUPYTER_TOKEN_OF_SERVER": server.token, "WORK": str(folder / "work")}
            for title, command in {
                "jupyter_kernel_test": [sys.executable, "-m", "unittest", "-v", "conformance"],
                "jupyter_kernel_client, nbconvert, papermill": [sys.executable, "-m", "unittest", "-v", "clients"],
                "@jupyterlab/services": ["node", "lab.mjs"],
                "VS Code's requests": ["node", "vscode.mjs"],
            }.items():
                p = subprocess.run(command, cwd=scratch, env=env, timeout=PATIENCE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                skipped = "skipped" in p.stdout
                if p.returncode != 0 or skipped:
                    print(p.stdout[-20000:])
                    wrong.append(f"{title}: exit code {p.returncode}{', and something was skipped' if skipped else ''}")
                else:
                    print(f"ok  {'fleet' if fleet else 'runner'}, {title}: {' '.join(line for line in p.stdout.splitlines() if line.startswith(('Ran ', 'works ')))}", flush=True)
        finally:
            code = server.end()
        if code not in (0, 143):
            wrong.append(f"coppice serve: exit code {code}")
        if wrong:
            print(server.log.read_text()[-5000:])
    if wrong:
        sys.exit("bad " + "; ".join(wrong))


main()
