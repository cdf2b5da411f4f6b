"""Runs the test suites of nbclient and of jupyter_client on kernels of coppice, and the tests in
the folder libraries, of libraries that look for a notebook.

    python run.py COPPICE SCRATCH [SUITE...]

COPPICE is the command, SCRATCH a folder in which sources has the source archives of both. This
interpreter has what the suites need, and coppice-kernel, which stands under the names of the
kernels that they start: python3 and echo. What fails has to be in baseline.json with the reason
why it does not apply, and what is there has to fail. The suites have time limits of their own,
which a busy machine can miss: what fails and is not there is run once more by itself, and named.
"""

import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).parent
PATIENCE = 1800  # seconds for what takes two minutes

# The suites, with options for pytest; ours is in a folder here.
SUITES = {
    "nbclient": ["-o", "asyncio_default_fixture_loop_scope=function"],
    "jupyter_client": ["-p", "no:asyncio"],
    "libraries": ["-p", "no:asyncio"],
}


def unpack(scratch: pathlib.Path, name: str) -> pathlib.Path:
    """Has the tests of an archive in a folder, without the package that it has, too; or ours."""
    folder = scratch / "run" / name
    shutil.rmtree(folder, ignore_errors=True)
    if (HERE / name).is_dir():
        shutil.copytree(HERE / name, folder)
        return folder
    (archive,) = (scratch / "sources").glob(f"{name}-*.tar.gz")
    with tarfile.open(archive) as tar:
        top = archive.name[: -len(".tar.gz")]
        members = [m for m in tar.getmembers() if m.name == f"{top}/pyproject.toml" or m.name.startswith(f"{top}/tests/")]
        for m in members:
            m.name = m.name[len(top) + 1 :]
        tar.extractall(folder, members, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder


def kernelspec() -> str:
    """Returns what a kernel of coppice is to Jupyter, which held.py puts under the names of the
    kernels that the suites start."""
    spec = json.loads((pathlib.Path(sys.prefix) / "share/jupyter/kernels/coppice/kernel.json").read_text())
    spec["argv"][0] = sys.executable
    return json.dumps(spec)


def pytest(folder: pathlib.Path, env: dict, options: list, tests: list, log: str) -> "dict[str, tuple[str, str, bool]]":
    """Runs tests, and returns of each what came of it, the words for that, and whether it had a
    session in this process. What they say stands in the file log of the folder."""
    report = folder / f"{log}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-p", "held", "-q", "--color=no", "--durations=0", "--tb=short",
               "--timeout", "100", "--timeout-method=signal", "-o", "junit_family=xunit1", "--junitxml", str(report), *options, *tests]
    with (folder / log).open("wb") as out:
        p = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = p.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            code = "none in time"
        finally:
            try:
                os.killpg(p.pid, signal.SIGKILL)  # what a test has left
            except ProcessLookupError:
                pass
    if code not in (0, 1):
        sys.exit(f"bad pytest in {folder}: exit code {code}\n{(folder / log).read_text()[-8000:]}")
    said = {}
    for case in ET.parse(report).iter("testcase"):
        ident = f"{case.get('file')}::{case.get('classname').split('.', 2)[2] + '::' if case.get('classname').count('.') > 1 else ''}{case.get('name')}"
        bad = [e for e in case if e.tag in ("failure", "error")]
        skip = [e for e in case if e.tag == "skipped"]
        session = any(e.get("name") == "session" and e.get("value") == "True" for e in case.iter("property"))
        what = "failed" if bad else "skipped" if skip else "passed"
        said[ident] = (what, "".join((e.get("message") or "") + "\n" + (e.text or "") for e in bad or skip), session)
    return said


def hold(title: str, scratch: pathlib.Path, env: dict) -> "list[str]":
    """Runs a suite, and returns what is not as the baseline says."""
    folder, options = unpack(scratch, title), SUITES[title]
    known = {test: entry["reason"] for entry in json.loads((HERE / "baseline.json").read_text()) for test in entry["tests"].get(title, [])}
    said = pytest(folder, env, options, ["tests"], "log.txt")
    own = [line[len("held: ") :] for line in (folder / "log.txt").read_text().splitlines() if line.startswith("held: ")]
    again = {t: words for t, (what, words, _) in said.items() if what == "failed" and t not in known}
    for n, test in enumerate(again, 1):
        said.update(pytest(folder, env, options, [test], f"again-{n}.txt"))
    wrong = [f"{t} fails: {said[t][1][-3000:]}" for t in said if said[t][0] == "failed" and t not in known]
    wrong += [f"{t} does not fail, and the baseline has it: {reason}" for t, reason in known.items() if said.get(t, ("not run",))[0] != "failed"]
    counts = collections.Counter(what for what, _, _ in said.values())
    print(f"{'bad' if wrong else 'ok '} {title}: {counts['passed']} passed, {counts['failed']} do not apply, {counts['skipped']} are skipped by the suite; "
          f"{sum(session for _, _, session in said.values())} of them started a session" + (f"; {len(again)} were run twice" if again else "") + f"; {own[0]}", flush=True)
    for reason, n in collections.Counter(known.values()).items():
        print(f"      {n} not applicable: {reason}")
    for test, words in again.items():
        print(f"      run twice: {test}: {words.splitlines()[0] if words else 'no reason given'}")
    return [f"{title}: {w}" for w in wrong]


def main() -> None:
    coppice, scratch = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    wrong = []
    with tempfile.TemporaryDirectory(prefix="coppice-suites-") as name:
        top = pathlib.Path(name)
        for sub in ("home", "work", "jupyter", "config", "runtime"):
            (top / sub).mkdir()
        env = {k: v for k, v in os.environ.items() if k != "COPPICE_TOKEN" and not k.startswith(("JUPYTER_", "JPY_", "COPPICE_KERNEL_", "PYTEST_"))}
        env |= {"COPPICE_HOME": str(top / "home"), "COPPICE": coppice, "PYTHONDONTWRITEBYTECODE": "1", "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                "PYTHONPATH": str(HERE), "HELD_KERNELSPEC": kernelspec(), "JUPYTER_PATH": str(top / "jupyter"), "JUPYTER_CONFIG_DIR": str(top / "config"), "JUPYTER_RUNTIME_DIR": str(top / "runtime")}
        log = (top / "serve.log").open("wb")
        server = subprocess.Popen(
            [coppice, "serve", "--addr", "127.0.0.1:0", "--json", "--jupyter", "--backend", "runner", "--python", sys.executable],
            cwd=top / "work", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
        )
        try:
            json.loads(server.stdout.readline())
            for title in sys.argv[3:] or SUITES:
                wrong += hold(title, scratch, env)
        finally:
            server.send_signal(signal.SIGTERM)
            code = server.wait(PATIENCE)
            log.close()
        if code not in (0, 143):
            wrong.append(f"coppice serve: exit code {code}")
    if wrong:
        sys.exit("\n".join("bad " + w for w in wrong))


main()
