"""Hold the runner backend to its behaviours on each Python and each older kernel there is.

    python run.py CONFORMANCE COPPICE [PYTHON ...]

CONFORMANCE is test/conformance, compiled; COPPICE is the command. Without PYTHON it takes each
version that it finds on PATH, below ~/.pyenv and below .cache/pythons (debian.py). With this interpreter it runs as on kernels
without some system calls, too (without.py). Besides, what needs such a call has to be refused
or to hold: code never runs without the wall that was asked for. It prints the tables that
docs/systems.md has, and writes what the tests said beside CONFORMANCE.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "3.13t", "3.14t")
# Those that debian.py has got.
GOT = HERE.parent.parent / ".cache" / "pythons"
# Not among them: the places of errors, whose tracebacks each version of Python draws in its own way.
TESTS = (
    "^(TestConformance|TestCallEnv|TestCodeReachesItsHost|TestTheBudgetOfACell|TestAFunctionMayUseItsSession"
    "|TestRuntimePrimitives|TestAStoreHoldsNoResult|TestAWorkingDirectoryThatIsMadeAgain|TestHibernation)$/^runner$"
)
# What wants a package, which an interpreter may not have.
WANT = {"IPython's_display,_where_code_imports_it": "IPython"}
LANDLOCK = ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]
PIDFD = ["pidfd_open", "pidfd_send_signal", "pidfd_getfd"]
OLD = [*LANDLOCK, *PIDFD, "clone3", "close_range", "openat2", "io_uring_setup"]
KERNELS = [
    ("Landlock (before Linux 5.13)", LANDLOCK),
    ("pidfd (before 5.3)", PIDFD),
    ("both, clone3, close_range, openat2 (as Linux 5.0)", OLD),
    ("seccomp", ["seccomp"]),
    ("control groups", ["cgroup"]),
]
ABOUT = """
import platform, sysconfig
free = sysconfig.get_config_var("Py_GIL_DISABLED")
print(platform.python_version() + (", free-threaded" if free else "") + "," , platform.libc_ver()[0] or "musl")
"""
# Code that says whether it got past a wall: this file is in no folder of the system.
READS = f"""
try:
    open({str(HERE / "run.py")!r}).read(1)
    print("got", "out")
except PermissionError as e:
    print("held:", e.strerror)
"""
TAKES = """
try:
    x = b"x" * (1 << 30)
    print("got", "out")
except MemoryError:
    print("held:", "MemoryError")
"""
RUNS = 'print("got", "out")'
WALLS = [
    ("Landlock", LANDLOCK, ["--isolation", "landlock"], READS),
    ("Landlock", LANDLOCK, ["--isolation", "seccomp"], READS),
    ("pidfd", PIDFD, ["--isolation", "landlock"], READS),
    ("pidfd", PIDFD, ["--isolation", "seccomp"], READS),
    ("seccomp", ["seccomp"], ["--isolation", "landlock"], READS),
    ("seccomp", ["seccomp"], ["--isolation", "seccomp"], READS),
    ("control groups", ["cgroup"], ["--max-memory", "256M"], TAKES),
    ("control groups", ["cgroup"], ["--max-processors", "1"], RUNS),
]


def installed() -> dict:
    """The Pythons of this machine by their versions, free-threaded ones too."""
    found = {}
    for version in VERSIONS:
        managed = sorted(pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        if version.endswith("t"):
            managed = sorted(pathlib.Path.home().glob(f".pyenv/versions/{version[:-1]}.*t/bin/python"))
        for name in [f"python{version}", *map(str, managed), str(GOT / version / "usr" / "bin" / f"python{version}")]:
            path = shutil.which(name)  # a shim on PATH may stand for a version that is not there
            if path and subprocess.run([path, "-c", ""], stderr=subprocess.DEVNULL).returncode == 0:
                found[version] = path
                break
    return found


def said(command, names, **more) -> subprocess.CompletedProcess:
    """What a command says, on a kernel without what is named."""
    if names:
        command = [sys.executable, "-B", str(HERE / "without.py"), ",".join(names), *command]
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **more)


def there(names) -> bool:
    """Whether what is named can be taken away here: control groups can by root alone."""
    return said(["true"], names).returncode == 0


def conformance(binary: pathlib.Path, python: str, names, log: pathlib.Path) -> tuple:
    """How many behaviours held, which did not, and which were left out, why."""
    left = {test: package for test, package in WANT.items() if said([python, "-c", "import " + package], []).returncode != 0}
    leave = ["-test.skip", "^TestConformance$/^runner$/^(" + "|".join(map(re.escape, left)) + ")$"] if left else []
    p = said([str(binary), "-test.v", "-test.run", TESTS, *leave, "-test.timeout", "60m"], names, cwd=HERE.parent / "conformance", env={**os.environ, "COPPICE_TEST_PYTHON": python})
    log.write_text(p.stdout)
    told = re.search(r"^conformance: (\d+) cases on the runner backend$", p.stdout, re.M)
    failed, skipped = (sorted(set(re.findall(rf"--- {word}: (\S+/runner\S*)", p.stdout))) for word in ("FAIL", "SKIP"))
    failed = [one for one in failed if not any(other.startswith(one + "/") for other in failed)]
    if not failed and (p.returncode != 0 or not told):
        failed = [f"the run as a whole, with code {p.returncode}"]
    return int(told[1]) if told else 0, failed, [f"{test}: there is no package {package}" for test, package in left.items()] + skipped


def wall(coppice: str, names, options, code: str) -> str:
    """What became of code that wants to get past a wall."""
    with tempfile.TemporaryDirectory() as home:
        command = [coppice, "run", "--backend", "runner", "--python", sys.executable, *options, "-c", code]
        p = said(command, names, cwd=home, env={**os.environ, "COPPICE_HOME": home})
    if "got out" in p.stdout:
        return ""
    held = re.search(r"^held: (.*)", p.stdout, re.M)
    if held:
        return "holds: " + held[1]
    return "refused: " + p.stdout.strip().splitlines()[0].replace("coppice: ", "") if p.returncode else ""


def main(conformance_binary: str, coppice: str, *pythons: str) -> int:
    binary, bad = pathlib.Path(conformance_binary).resolve(), 0
    found = {p: p for p in pythons} or installed()
    rows = [(version, python, "", []) for version, python in found.items()]
    rows += [("kernel-" + re.sub(r"\W+", "-", what), sys.executable, what, names) for what, names in KERNELS]
    print("| Python, C library | missing from the kernel | behaviours | time |\n| --- | --- | ---: | ---: |", flush=True)
    for name, python, what, names in rows:
        if not there(names):
            print(f"not run without {what}: it takes root", file=sys.stderr)
            continue
        about, begin = said([python, "-c", ABOUT], []).stdout.strip(), time.monotonic()
        log = binary.with_name(re.sub(r"[^\w.-]", "-", name) + ".log")
        held, failed, skipped = conformance(binary, python, names, log)
        bad += len(failed)
        print(f"| {about} | {what or '-'} | {held}{f', {len(failed)} failed' if failed else ''} | {time.monotonic() - begin:.0f} s |", flush=True)
        for word, some in (("failed", failed), ("left out", skipped)):
            for one in some:
                print(f"    {name}, {word}: {one}" + (f" ({log})" if word == "failed" else ""), file=sys.stderr, flush=True)
    if not pythons and len(found) < len(VERSIONS):
        print("\nnot on this machine: Python", ", ".join(v for v in VERSIONS if v not in found))

    print("\n| missing from the kernel | asked for | what happens to code that tries to break out |\n| --- | --- | --- |")
    for what, names, options, code in WALLS:
        if not there(names):
            continue
        became = wall(os.path.abspath(coppice), names, options, code)
        bad += not became
        print(f"| {what} | `{' '.join(options)}` | {became or '**it got out**'} |", flush=True)
    return int(bool(bad))


sys.exit(main(*sys.argv[1:]))
