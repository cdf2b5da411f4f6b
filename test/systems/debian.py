"""Gets versions of Python that Debian's unstable release has and the machine has not, into a
folder: `debian.py FOLDER VERSION...`. The packages are unpacked, with the C library that they
are made for, and nothing is installed: it takes apt-get, dpkg-deb and an interpreter with pip, and
no root.

Each is then FOLDER/VERSION/usr/bin/pythonVERSION. What cannot be had is said, and is no
failure: the tests go on with what there is."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

RELEASE = "sid"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LOADER = "ld-linux-x86-64.so.2"
HERE = pathlib.Path(__file__).parent


class Missing(Exception):
    """Says what cannot be had."""


def run(*command: str, **more) -> str:
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    except OSError as err:
        raise Missing(f"{command[0]}: {err.strerror}") from None
    if done.returncode:
        raise Missing(f"{command[0]}: {done.stdout.strip()[-300:]}")
    return done.stdout


def archive() -> str:
    """Where this machine has its packages of Debian from."""
    for line in run("apt-get", "indextargets", "--format", "$(REPO_URI) $(LABEL)", "Created-By: Packages").splitlines():
        uri, _, label = line.partition(" ")
        if label == "Debian":
            return uri
    raise Missing("this machine has no packages of Debian")


class Apt:
    """An apt of its own: what it knows and fetches is in a folder."""

    def __init__(self, folder: pathlib.Path) -> None:
        for name in ("lists/partial", "cache/archives/partial", "state"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "status").write_text("")
        (folder / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archive()} {RELEASE} main\n")
        options = {
            "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-", "Dir::State": folder / "state",
            "Dir::State::lists": folder / "lists", "Dir::State::status": folder / "status", "Dir::Cache": folder / "cache",
            "APT::Sandbox::User": "", "Debug::NoLocking": "1",
        }
        self._options = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        self._fetched = folder / "cache" / "archives"
        self("update")

    def __call__(self, *command: str) -> str:
        return run("apt-get", *self._options, *command)

    def unpack(self, root: pathlib.Path, *packages: str) -> None:
        """Unpacks packages, and all that they need."""
        for old in self._fetched.glob("*.deb"):
            old.unlink()
        self("--download-only", "-y", "--no-install-recommends", "install", *packages)
        for package in sorted(self._fetched.glob("*.deb")):
            run("dpkg-deb", "-x", str(package), str(root))


def works(python: pathlib.Path) -> bool:
    return python.exists() and subprocess.run([str(python), "-c", "import ssl, sqlite3, ctypes"], check=False, stderr=subprocess.DEVNULL).returncode == 0


def patcher(folder: pathlib.Path) -> pathlib.Path:
    """Returns patchelf. Later versions break what they change here."""
    at = folder / "patchelf"
    if not (at / "bin" / "patchelf").exists():
        run(sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "--target", str(at), "-r", str(HERE / "patchelf.txt"))
    return at / "bin" / "patchelf"


def get(apt: Apt, folder: pathlib.Path, version: str) -> pathlib.Path:
    """Gets one version: it finds its own C library, whatever that of the machine is."""
    root = folder / version
    python = root / "usr" / "bin" / f"python{version}"
    if works(python):
        return python
    shutil.rmtree(root, ignore_errors=True)
    half = folder / f"{version}.half"
    shutil.rmtree(half, ignore_errors=True)
    apt.unpack(half, f"python{version}", f"python{version}-venv")
    multiarch = next((p.parent.name for p in half.glob(f"usr/lib/*/{LOADER}")), None)
    if multiarch is None:
        raise Missing(f"Python {version}: this script knows amd64 alone")
    half.rename(root)
    libraries = root / "usr" / "lib" / multiarch
    run(str(patcher(folder)), "--set-interpreter", str(libraries / LOADER), "--force-rpath", "--set-rpath", str(libraries), str(python))
    if not works(python):
        raise Missing(f"{python} does not work here")
    return python


def main() -> None:
    folder, versions = pathlib.Path(sys.argv[1]).absolute(), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        apt = Apt(folder / "apt")
    except Missing as err:
        sys.exit(print(f"no further Pythons: {err}"))
    for version in versions:
        try:
            print(get(apt, folder, version))
        except Missing as err:
            print(f"no Python {version}: {err}")


main()
