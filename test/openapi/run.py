"""Hold coppice serve against its OpenAPI document, as tools and programs of others do.

    python run.py COPPICE PYTHON SCRATCH

COPPICE is the command, PYTHON the interpreter of its sessions, and SCRATCH a folder with
a copy of this one, in which node_modules is. This interpreter has schemathesis and
openapi-python-client. A real server runs meanwhile, on the loopback interface.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
PATIENCE = 120  # seconds for what takes one


def command(name: str) -> str:
    """A program that is installed beside this interpreter."""
    return str(pathlib.Path(sys.executable).with_name(name))


def run(*args: object, cwd: pathlib.Path, timeout: float = 600, **env: str) -> None:
    """Run a program, and end with its output when it fails."""
    p = subprocess.run(
        [str(a) for a in args], cwd=cwd, env={**os.environ, **env}, timeout=timeout,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    if p.returncode != 0:
        print(p.stdout[-20_000:])
        sys.exit(f"bad {args[0]} {' '.join(map(str, args[1:4]))}: exit code {p.returncode}")
    if last := [line for line in p.stdout.splitlines() if line.startswith("ok  ")]:
        print("\n".join(last), flush=True)


class Server:
    """coppice serve, with one tool."""

    def __init__(self, coppice: str, python: str, folder: pathlib.Path):
        self.log = folder / "serve.log"
        self.env = env = {**os.environ, "COPPICE_HOME": str(folder / "home")}
        env.pop("COPPICE_TOKEN", None)
        for name in ("home", "work", "tools"):
            (folder / name).mkdir()
        for args in (["new", "sample", "--tools", folder / "tools"], ["setup", "--all", "--tools", folder / "tools", "--no-server"]):
            run(coppice, "tool", *args, cwd=folder, **env)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [coppice, "serve", "--addr", "127.0.0.1:0", "--json", "--developer", "--backend", "runner", "--max-sessions", "64",
                 "--python", python, "--tools", str(folder / "tools")],
                cwd=folder / "work", env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        told = json.loads(self.process.stdout.readline())
        self.url = told["url"]
        self.token = json.loads(pathlib.Path(told["token_file"]).read_text())["token"]

    def end(self) -> None:
        """End it as its user does. It has to end well."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        if code not in (0, 143):
            sys.exit(f"bad coppice serve: exit code {code}\n{self.log.read_text()[-5000:]}")


def check(server: Server, scratch: pathlib.Path) -> None:
    """Ask for everything that the document has, and hold the answers against it."""
    run(
        command("schemathesis"), "--config-file", here / "schemathesis.toml", "run", server.url + "/api/openapi.json",
        "-H", f"Authorization: Bearer {server.token}", "--no-color", "--generation-database", "none",
        "--max-examples", os.environ.get("SCHEMATHESIS_EXAMPLES", "40"), *(["--seed", seed] if (seed := os.environ.get("SCHEMATHESIS_SEED")) else []),
        cwd=scratch, timeout=1800, PYTHONPATH=str(here), SCHEMATHESIS_HOOKS="hooks", PYTHONDONTWRITEBYTECODE="1",
    )
    print("ok  schemathesis finds no answer that the document does not have", flush=True)


def python_client(server: Server, scratch: pathlib.Path, document: pathlib.Path) -> None:
    package = scratch / "python"
    path = {"PATH": os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])}
    package.mkdir(exist_ok=True)
    run(command("openapi-python-client"), "generate", "--path", document, "--output-path", package / "coppice_api", "--meta", "none", "--overwrite", cwd=scratch, **path)
    run(sys.executable, here / "client.py", server.url, server.token, cwd=scratch, PYTHONPATH=str(package))


def typescript_client(server: Server, scratch: pathlib.Path, document: pathlib.Path) -> None:
    bin = scratch / "node_modules" / ".bin"
    run(bin / "openapi-typescript", document, "-o", scratch / "schema.ts", cwd=scratch)
    run(bin / "tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable",
        "--module", "nodenext", "--types", "node", "--skipLibCheck", "client.mts", "schema.ts", cwd=scratch)
    run("node", scratch / "client.mjs", server.url, server.token, cwd=scratch)


def go_client(server: Server, scratch: pathlib.Path, document: pathlib.Path) -> None:
    module = scratch / "client"
    (module / "api").mkdir(exist_ok=True)
    run("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", module / "api" / "api.gen.go", document, cwd=module, GOFLAGS="")
    run("go", "build", "-o", "run", ".", cwd=module, GOFLAGS="")
    run(module / "run", server.url, server.token, cwd=module)


def main() -> None:
    coppice, python, scratch = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="coppice-openapi-"))
    server = None
    try:
        server = Server(coppice, python, folder)
        document = scratch / "openapi.json"
        run(sys.executable, "-c", "import httpx, pathlib, sys; pathlib.Path(sys.argv[3]).write_bytes(httpx.get(sys.argv[1], headers={'Authorization': 'Bearer ' + sys.argv[2]}).raise_for_status().content)",
            server.url + "/api/openapi.json", server.token, document, cwd=scratch)
        run(coppice, "workspace", "create", "sample", "--quota", "10M", cwd=folder, **server.env)
        for client in (python_client, typescript_client, go_client):
            client(server, scratch, document)
        check(server, scratch)
        server.end()
        server = None
    finally:
        if server:
            server.process.kill()
        shutil.rmtree(folder, ignore_errors=True)


main()
