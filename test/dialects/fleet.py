#!/usr/bin/env python3
"""A fleet of coppice-fleet, for clients that are given one address: two nodes, one of which runs
the directory, and a front.

As a program it is a coppice whose "serve", and "mcp --http", are such a fleet, by its front, for
tests that start a server: COPPICE_FLEET names coppice-fleet, and what else it is asked for is the
program's own."""

import json
import os
import pathlib
import secrets
import signal
import socket
import subprocess
import sys

PATIENCE = 300  # seconds for what takes a minute


def free() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def ends_with_us() -> None:
    """Has a server end when this program is killed, where the system can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


class Fleet:
    """Its front is told of as a server is, and has the folder for its home; those of the nodes are in it."""

    def __init__(self, program: str, folder: pathlib.Path, cwd: pathlib.Path, env: "dict[str, str]", *flags: str):
        self.token, self.processes = secrets.token_hex(16), []
        key, at = folder / "key", f"nats://127.0.0.1:{free()}"
        if not key.exists():  # else it is the fleet after another one
            key.touch(0o600)
            key.write_bytes(secrets.token_bytes(32))
        self.log = folder / "fleet.log"
        try:
            with self.log.open("wb") as log:
                for name, more in {"one": ["--fleet-embed"], "two": [], "front": ["--fleet-front"]}.items():
                    home = folder if name == "front" else folder / name
                    home.mkdir(exist_ok=True)
                    p = subprocess.Popen(
                        [
                            program, "serve", "--addr", "127.0.0.1:0", "--json", "--backend", "runner", "--fleet", at, "--fleet-name", name,
                            "--hibernate", "lossless", "--fleet-store", str(folder / "store"), "--fleet-store-key", str(key), "--drain-timeout", "5s", *more, *flags,
                        ],
                        cwd=cwd, env={**env, "COPPICE_HOME": str(home), "COPPICE_TOKEN": self.token}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                        preexec_fn=ends_with_us,
                    )
                    self.processes.append(p)
                    line = p.stdout.readline()
                    if not line:
                        raise SystemExit(f"{name} did not begin:\n{self.log.read_text()}")
                    self.told = json.loads(line)
        except BaseException:
            self.end()
            raise

    def end(self) -> int:
        """Ends the front first, and returns the first exit code that is not that of an end in order."""
        codes = []
        for p in reversed(self.processes):
            p.send_signal(signal.SIGTERM)
            codes.append(p.wait(PATIENCE))
        return next((code for code in codes if code not in (0, 143)), 0)


def main() -> int:
    program, arguments = os.environ["COPPICE_FLEET"], sys.argv[1:]
    token_file = None
    if arguments[:1] == ["mcp"] and "--http" in arguments:
        at = arguments.index("--token-file")
        token_file = pathlib.Path(arguments[at + 1])
        del arguments[at : at + 2]
        at = arguments.index("--http")
        del arguments[at : at + 2]
        arguments = ["serve", "--mcp", *arguments[1:]]
    if arguments[:1] != ["serve"]:
        os.execv(program, [program, *arguments])
    asked, ask = os.pipe()  # a signal that comes before it is waited for is not lost
    for which in (signal.SIGTERM, signal.SIGINT):
        signal.signal(which, lambda *_: os.write(ask, b"."))
    env = {name: value for name, value in os.environ.items() if name not in ("COPPICE_FLEET", "COPPICE_TOKEN")}
    home = pathlib.Path(env["COPPICE_HOME"])
    fleet = Fleet(program, home, pathlib.Path.cwd(), env, *arguments[1:])
    if token_file:
        token_file.write_text(fleet.token)
        print("serving at " + fleet.told["mcp_url"], file=sys.stderr, flush=True)
    else:
        print(json.dumps(fleet.told), flush=True)
    os.read(asked, 1)
    code = fleet.end()
    sys.stderr.write(fleet.log.read_text())
    return code


if __name__ == "__main__":
    sys.exit(main())
