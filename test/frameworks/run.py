"""Run the agents in examples/frameworks, each in two conversations at once.

    python run.py COPPICE PYTHON EXAMPLES [NAME ...]

COPPICE is the command, PYTHON the interpreter of its sessions, and EXAMPLES the folder of
the examples, with node_modules in it where node is to be used. This interpreter has the
frameworks and the client. The model is test/frameworks/model.py; a real server runs
meanwhile, on the loopback interface, and nothing is sent elsewhere.
"""

import concurrent.futures
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import coppice
from model import QUESTION, Model

PATIENCE = 600  # seconds: imports of frameworks take long on a busy machine


@contextlib.contextmanager
def server(command: str, python: str, folder: pathlib.Path):
    """A coppice serve with a home of its own, until the block ends."""
    env = {**os.environ, "COPPICE_HOME": str(folder)}
    env.pop("COPPICE_TOKEN", None)
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [command, "serve", "--addr", "127.0.0.1:0", "--json", "--backend", "runner", "--python", python],
            cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
        )
    try:
        if not process.stdout.readline():
            sys.exit("coppice serve did not start:\n" + (folder / "serve.log").read_text())
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)


def converse(example: pathlib.Path, n: int, model: str, home: pathlib.Path) -> str:
    """Have one conversation; the complaint about it, or ""."""
    program = shutil.which("node") if example.suffix == ".mjs" else sys.executable
    env = {
        **os.environ, "COPPICE_HOME": str(home), "OPENAI_BASE_URL": model, "OPENAI_API_KEY": "none", "MODEL": "scripted",
        "OPENAI_AGENTS_DISABLE_TRACING": "1", "LANGSMITH_TRACING": "false", "NO_COLOR": "1",
    }
    p = subprocess.run(
        [program, str(example), f"{example.stem} {n}", QUESTION.format(n=n)], env=env, timeout=PATIENCE, cwd=home,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
    )
    said = p.stdout.strip().splitlines()  # some frameworks show the model's mistake, too
    if p.returncode == 0 and said and said[-1] == f"It is {n + 2}.":
        return ""
    return f"{example.name} with {n}: exit code {p.returncode}\n{p.stdout[-2000:]}{p.stderr[-4000:]}"


def main(command: str, python: str, examples: str, *names: str) -> int:
    """Run the examples; 1 when one of them did not do what it says."""
    found = sorted(p for p in pathlib.Path(examples).glob("with_*") if not names or p.stem in names)
    bad = 0
    with tempfile.TemporaryDirectory() as scratch, server(command, python, pathlib.Path(scratch)), Model() as model:
        home = pathlib.Path(scratch)
        for example in found:
            if example.suffix == ".mjs" and not (example.parent / "node_modules").is_dir():
                print(f"--  {example.name}: node or npm is missing")
                continue
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor() as pool:
                complaints = [c for c in pool.map(lambda n: converse(example, n, model.url, home), (40, 50)) if c]
            complaints += [f"the model: {c}" for c in model.complaints]
            model.complaints.clear()
            with coppice.Client(home=scratch) as client:
                complaints += [f"{s.name} is still there" for s in client.sessions()]
            print("bad" if complaints else "ok ", f"{example.name}: two conversations, {time.monotonic() - begin:.1f} s", flush=True)
            print("".join(f"    {c}\n" for c in complaints), end="")
            bad += bool(complaints)
    return int(bad > 0 or not found)


sys.exit(main(*sys.argv[1:]))
