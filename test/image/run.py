"""Run the container image as an orchestrator would: run.py LAYOUT NAME SCRATCH.

umoci unpacks it, and crun or runc runs it with a root that is read-only, no capabilities,
no new privileges, the image's own user, and a network of its own with nothing but the
loopback. What is written goes to /tmp, /home/coppice and /work. No daemon takes part.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid

# Bounds every wait: a machine with much to do takes long.
PATIENCE = 300
USER = 65532


class Image:
    def __init__(self, layout, name, scratch):
        self.runtime = next((r for r in ("crun", "runc") if shutil.which(r)), None)
        if not self.runtime or not shutil.which("umoci"):
            raise SystemExit("image: this test needs umoci, and crun or runc (packages of Debian)")
        scratch = pathlib.Path(scratch).resolve()
        self.bundle = scratch / "bundle"
        self.state = scratch / "state"
        self.places = scratch / "places"
        for old in (self.bundle, self.state, self.places):
            shutil.rmtree(old, ignore_errors=True)
        subprocess.run(["umoci", "unpack", "--image", f"{layout}:{name}", self.bundle], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.made = json.loads((self.bundle / "config.json").read_text())
        self.entry = self.made["process"]["args"][:3]
        self.checks = 0

    def call(self, *args, **options):
        return subprocess.run([self.runtime, "--root", self.state, *args], capture_output=True, text=True, timeout=PATIENCE, **options)

    def configure(self, home, args):
        config = json.loads(json.dumps(self.made))
        config["root"]["readonly"] = True
        process = config["process"]
        process.update(terminal=False, args=self.entry + args, noNewPrivileges=True, capabilities={})
        if (process["user"]["uid"], process["user"]["gid"]) != (USER, USER):
            raise SystemExit(f"image: it runs as {process['user']}")
        config["mounts"] = [m for m in config["mounts"] if m["destination"] not in ("/tmp", "/home/coppice", "/work", "/sys", "/sys/fs/cgroup", "/etc/resolv.conf")]
        config["mounts"].append({"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]})
        for name in ("home/coppice", "work"):
            place = self.places / home / name.replace("/", "-")
            if not place.exists():
                place.mkdir(parents=True)
                os.chown(place, USER, USER)
            config["mounts"].append({"destination": "/" + name, "type": "bind", "source": str(place), "options": ["bind", "rw", "nosuid", "nodev"]})
        config["linux"].pop("resources", None)
        config["linux"]["namespaces"] = [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]
        (self.bundle / "config.json").write_text(json.dumps(config))

    @contextlib.contextmanager
    def running(self, home, *args):
        """A container in the background, which is ended and removed."""
        name = "coppice-" + uuid.uuid4().hex[:12]
        self.configure(home, list(args))
        with open(self.places / (name + ".log"), "w+") as log:
            child = subprocess.Popen([self.runtime, "--root", self.state, *self.flags(), "run", "--bundle", self.bundle, name], stdin=subprocess.PIPE, stdout=log, stderr=log)
            try:
                yield name, child, log
            finally:
                self.call("kill", name, "KILL")
                child.stdin.close()
                child.wait(PATIENCE)
                self.call("delete", "--force", name)

    def flags(self):
        return ["--cgroup-manager=disabled"] if self.runtime == "crun" else []

    def once(self, *args, stdin=""):
        """A container that runs to its end."""
        name = "coppice-" + uuid.uuid4().hex[:12]
        self.configure(name, list(args))
        done = self.call(*self.flags(), "run", "--bundle", self.bundle, name, input=stdin)
        self.call("delete", "--force", name)
        return done

    def inside(self, name, *args):
        return self.call(*self.flags(), "exec", "--user", f"{USER}:{USER}", name, *args)

    def check(self, what, good, told=""):
        self.checks += 1
        if not good:
            raise SystemExit(f"image: {what}: no\n{told}")
        print(f"ok {self.checks:2d}  {what}", flush=True)


def healthy(image, name, child, log):
    """Wait until the server in a container says that it is well."""
    end = time.monotonic() + PATIENCE
    while True:
        told = image.inside(name, "coppice", "health", "--json")
        if told.returncode == 0 and json.loads(told.stdout)["healthy"]:
            return json.loads(told.stdout)
        if child.poll() is not None or time.monotonic() > end:
            log.seek(0)
            raise SystemExit(f"image: the server is not well: {told.stdout}{told.stderr}{log.read()}")
        time.sleep(0.2)


def apart():
    """On a machine with both generations of control groups crun refuses to work: hide the
    second from it, in a namespace of mounts of our own."""
    unified = pathlib.Path("/sys/fs/cgroup/unified")
    if unified.is_dir() and "COPPICE_TEST_APART" not in os.environ:
        script = f'umount {unified} && exec "$@"'
        os.environ["COPPICE_TEST_APART"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])


def main():
    if os.geteuid() != 0:
        raise SystemExit("image: this test makes namespaces and files of other users; run it as root")
    apart()
    image = Image(*sys.argv[1:])
    for backend in ("runner", "gateway"):
        done = image.once("run", "--backend", backend, "-c", "x = 40", "-c", "print(x + 2)")
        image.check(f"run, backend {backend}", done.returncode == 0 and "42" in done.stdout, done.stdout + done.stderr)
    done = image.once("run", "--backend", "runner", "-c", "import os\ntry:\n    open('/usr/x', 'w')\nexcept OSError as e:\n    print('refused:', e.strerror)\nprint('user', os.getuid())")
    image.check("the root is read-only, and the user is not root", "refused: Read-only file system" in done.stdout and "user 65532" in done.stdout, done.stdout + done.stderr)
    done = image.once("run", "--backend", "runner", "-c", "print([l for l in open('/proc/self/status') if l.startswith(('CapEff', 'NoNewPrivs'))])")
    image.check("no capabilities, no new privileges", "CapEff:\\t0000000000000000" in done.stdout and "NoNewPrivs:\\t1" in done.stdout, done.stdout + done.stderr)

    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    with image.running("mcp", "mcp") as (_, child, log):
        child.stdin.write("".join(json.dumps(a) + "\n" for a in asked).encode())
        child.stdin.flush()
        end = time.monotonic() + PATIENCE
        while '"id":2' not in pathlib.Path(log.name).read_text() and child.poll() is None and time.monotonic() < end:
            time.sleep(0.1)
        image.check("mcp lists its tools on standard streams", '"python"' in pathlib.Path(log.name).read_text(), pathlib.Path(log.name).read_text())

    for backend in ("runner", "gateway"):
        with image.running("serve-" + backend, "serve", "--backend", backend) as (name, child, log):
            told = healthy(image, name, child, log)
            image.check(f"serve, backend {backend}: coppice health", told["server"]["backend"] == backend, told)
            for code, want in (("x = 40", ""), ("print(x + 2)", "42")):
                done = image.inside(name, "coppice", "run", "--session", "work", "-c", code)
            image.check(f"a session of it stays between commands, backend {backend}", done.returncode == 0 and "42" in done.stdout, done.stdout + done.stderr)
            if backend == "runner":
                image.inside(name, "bash", "-c", "(sleep 0 & exec true) & wait")
                processes = image.inside(name, "bash", "-c", "grep -l '^State:.Z' /proc/[0-9]*/status || true")
                image.check("no process is left unreaped", processes.stdout == "", processes.stdout)
            image.call("kill", name, "TERM")
            child.wait(PATIENCE)
            log.seek(0)
            image.check(f"SIGTERM ends it, backend {backend}", child.returncode in (0, 143), f"{child.returncode}: {log.read()}")

    for again in ("the first", "the second, after SIGKILL of the first,"):
        with image.running("killed", "serve", "--backend", "runner") as (name, child, log):
            told = healthy(image, name, child, log)
            done = image.inside(name, "coppice", "run", "--session", "work", "-c", "print(6 * 7)")
            image.call("kill", name, "KILL")
            child.wait(PATIENCE)
    image.check(f"{again} starts with the same home and works", done.returncode == 0 and "42" in done.stdout, done.stdout + done.stderr)
    print(f"{image.checks} of {image.checks} checks, with {image.runtime}")


main()
