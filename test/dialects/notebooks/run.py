"""Runs notebooks with Jupyter's own tools on kernels of coppice, and on ipykernel beside them.

    python run.py COPPICE PYTHON SCRIPTS SCRATCH [NOTEBOOK...]

COPPICE is the command, PYTHON the interpreter of all kernels, which has ipykernel and
jupyter_kernel_gateway, SCRIPTS a folder with notebooks as scripts in the percent format. In
SCRATCH a folder, notebooks, is made anew, for what is made of them. This interpreter has
nbconvert, papermill and the package coppice-kernel. Each notebook is run by both tools: on
ipykernel, and through coppice-kernel in a coppice serve --jupyter on each backend. The outputs
have to be the same but for what told.py tells, and all that it tells has to be so. How long
each run took is printed, and kept in times.json there. What is not as told ends the run with 1.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import differences
import nbformat
import papermill
from jupyter_client.manager import start_new_kernel
from nbconvert.preprocessors import ExecutePreprocessor

PATIENCE = 600  # seconds for what takes a few

# The kernels: each on its own interpreter process, of the same Python.
REFERENCE, KERNELS = "ipykernel", ("ipykernel", "runner", "gateway")
STARTS = 5  # how often each kernel is started for its time alone


class Server:
    """A coppice serve --jupyter on one backend."""

    def __init__(self, coppice: str, python: str, backend: str, folder: pathlib.Path):
        self.log = folder / "serve.log"
        for sub in ("home", "work"):
            (folder / sub).mkdir(parents=True)
        env = {k: v for k, v in os.environ.items() if k != "COPPICE_TOKEN"} | {"COPPICE_HOME": str(folder / "home")}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [coppice, "serve", "--addr", "127.0.0.1:0", "--json", "--jupyter", "--backend", backend, "--python", python],
                cwd=folder / "work", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        try:
            told = json.loads(self.process.stdout.readline())
            token = json.loads(pathlib.Path(told["token_file"]).read_text())["token"]
        except (ValueError, OSError, KeyError) as err:
            self.end()
            raise SystemExit(f"coppice serve --backend {backend} did not start: {err}: {self.log.read_text()[-3000:]}") from None
        self.env = {"COPPICE_KERNEL_URL": told["jupyter_url"], "COPPICE_TOKEN": token, "COPPICE_KERNEL_SERVER": "running"}

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.process.stdout.close()
        return self.process.wait(PATIENCE)


def settle(folder: pathlib.Path, python: str) -> None:
    """Has Jupyter keep all that it keeps in a folder, and know ipykernel on an interpreter."""
    for name in [k for k in os.environ if k.startswith(("JUPYTER_", "JPY_", "IPYTHON", "COPPICE_"))]:
        del os.environ[name]
    spec = folder / "jupyter" / "kernels" / REFERENCE
    spec.mkdir(parents=True)
    argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": REFERENCE, "language": "python"}))
    places = {"HOME": "home", "IPYTHONDIR": "ipython", "JUPYTER_PATH": "jupyter", "JUPYTER_CONFIG_DIR": "config", "JUPYTER_RUNTIME_DIR": "runtime", "JUPYTER_DATA_DIR": "data"}
    for variable, sub in places.items():
        (folder / sub).mkdir(exist_ok=True)
        os.environ[variable] = str(folder / sub)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def spec_of(kernel: str) -> str:
    """The name by which Jupyter knows a kernel."""
    return REFERENCE if kernel == REFERENCE else "coppice"


def recorded(source: pathlib.Path) -> pathlib.Path:
    """What ipykernel makes of a notebook, where nbclient runs that to its end two times in three alone."""
    return source.with_suffix(".nbclient.ipynb")


def by_nbconvert(source: pathlib.Path, out: pathlib.Path, spec: str) -> None:
    """Runs a notebook as nbconvert --execute --allow-errors does."""
    book = nbformat.read(source, 4)
    runs = ExecutePreprocessor(kernel_name=spec, allow_errors=True, timeout=PATIENCE, startup_timeout=PATIENCE, iopub_timeout=PATIENCE)
    runs.preprocess(book, {"metadata": {"path": str(out.parent)}})
    nbformat.write(book, out)


def by_papermill(source: pathlib.Path, out: pathlib.Path, spec: str) -> None:
    """Runs a notebook as papermill does, to the first error, which the notebook has then."""
    try:
        papermill.execute_notebook(
            source, out, kernel_name=spec, progress_bar=False, cwd=str(out.parent),
            execution_timeout=PATIENCE, start_timeout=PATIENCE, iopub_timeout=PATIENCE,
        )
    except papermill.PapermillExecutionError:
        pass


def started(kernel: str) -> float:
    """How long it takes from nothing to the first result of a kernel, in seconds."""
    begin = time.perf_counter()
    manager, client = start_new_kernel(kernel_name=spec_of(kernel), startup_timeout=PATIENCE)
    reply = client.execute_interactive("1 + 1", timeout=PATIENCE, output_hook=lambda m: None)
    took = time.perf_counter() - begin
    client.stop_channels()
    manager.shutdown_kernel()
    if reply["content"]["status"] != "ok":
        raise AssertionError(f"{kernel}: 1 + 1: {reply['content']}")
    return took


def run(servers: dict, books: list, folder: pathlib.Path) -> dict:
    """Runs every notebook by every tool on every kernel, one after the other, so that what else
    the machine does meets all alike. Returns how long each run took."""
    times = {}

    def on(kernel, fn, *args):
        env = servers[kernel].env if kernel in servers else {}
        os.environ.update(env)
        try:
            return fn(*args)
        finally:
            for name in env:
                del os.environ[name]

    for kernel in KERNELS:
        on(kernel, started, kernel)  # what the first finds on no page of memory, the others find
        times["start", kernel] = sorted(on(kernel, started, kernel) for _ in range(STARTS))[STARTS // 2]
    for source in books:
        for tool, runs in (("nbconvert", by_nbconvert), ("papermill", by_papermill)):
            for kernel in KERNELS:
                out = folder / f"{tool}-{kernel}" / source.name
                out.parent.mkdir(exist_ok=True)
                if kernel == REFERENCE and recorded(source).exists():
                    shutil.copy(recorded(source), out)
                    continue
                begin = time.perf_counter()
                on(kernel, runs, source, out, spec_of(kernel))
                times[tool, kernel, source.stem] = time.perf_counter() - begin
    return times


def main() -> None:
    coppice, python, scripts = (os.path.abspath(a) for a in sys.argv[1:4])
    scratch, only = pathlib.Path(sys.argv[4]).resolve(), set(sys.argv[5:])
    warnings.filterwarnings("ignore", module="(traitlets|jupyter_client|nbformat|zmq|papermill)")
    wrong, servers = [], {}
    folder = scratch / "notebooks"  # it is kept, to look at
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="coppice-notebooks-") as short:  # sockets want short paths
        settle(pathlib.Path(short), python)
        books = []
        folder.mkdir(parents=True)
        for script in sorted(pathlib.Path(scripts).glob("*.py")):
            if only and script.stem not in only:
                continue
            books.append(folder / f"{script.stem}.ipynb")
            if (known := script.with_suffix(".nbclient.ipynb")).exists():
                shutil.copy(known, recorded(books[-1]))
            subprocess.run([coppice, "notebook", "new", str(books[-1]), "--from", str(script)], check=True, stdout=subprocess.DEVNULL)
        try:
            for kernel in KERNELS[1:]:
                servers[kernel] = Server(coppice, python, kernel, pathlib.Path(short) / f"server-{kernel}")
            times = run(servers, books, folder)
        finally:
            for kernel, server in servers.items():
                if (code := server.end()) not in (0, 143):
                    wrong.append(f"coppice serve --backend {kernel}: exit code {code}")
                    print(server.log.read_text()[-3000:])
    (folder / "times.json").write_text(json.dumps([[*key, round(took, 4)] for key, took in times.items()], indent=0))
    wrong += differences.tell(folder, [b.stem for b in books], KERNELS, times)
    if wrong:
        sys.exit("bad " + "\nbad ".join(wrong))


main()
