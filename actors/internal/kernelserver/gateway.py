# Runs a Kernel Gateway that hosts share, and looks after it: see the document of
# package coordinator. argv: the settings file, then the gateway's arguments.
import fcntl
import glob
import json
import os
import shutil
import sys
import tempfile
import threading
import time

# The directory of this file is not a place to import from.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]


def detach(pid_file):
    """Leaves the host: it would have to wait for this process otherwise."""
    ready, told = os.pipe()
    child = os.fork()
    if child:
        os.close(told)
        os._exit(0 if os.read(ready, 1) else 1)
    os.setsid()
    os.close(ready)
    with open(pid_file + ".new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(pid_file + ".new", pid_file)
    os.write(told, b".")
    os.close(told)


def held(path):
    """Says whether a process holds the lock."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # not known: nothing is ended on a guess
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def load(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


class Keeper:
    """Ends what nobody claims. All of it runs in one thread."""

    def __init__(self, s):
        self.s = s
        self.hosts = os.path.join(s["dir"], "hosts")
        self.sessions = os.path.join(s["dir"], "sessions")
        self.record = os.path.join(s["dir"], "gateway.json")
        self.mine = None  # our entry in the record, once there is one
        self.idle = None  # since when
        self.unclaimed = {}  # kernel: since when
        self.app = None
        self.loop = None

    def run(self):
        while True:
            time.sleep(0.25 if self.mine is None else 1)
            try:
                self.look()
            except Exception as e:
                print("keeper:", repr(e), file=sys.stderr)

    def look(self):
        leases = set()
        for path in glob.glob(os.path.join(self.hosts, self.s["fingerprint"] + "-*.lock")):
            if held(path):
                leases.add(os.path.basename(path))
            else:
                try:
                    os.unlink(path)  # its host was killed
                except FileNotFoundError:
                    pass
        entry = self.find()
        if entry is not None:
            self.mine = entry
        elif self.mine is None:
            if os.path.basename(self.s["lease"]) not in leases and self.find() is None:
                self.end()  # who started it was killed before it could say so
            return
        kernels = self.kernels(leases)
        if leases or kernels:
            self.idle = None
            if entry is None:
                self.change(lambda gateways: gateways + [self.mine])
            return
        now = time.monotonic()
        if self.idle is None:
            self.idle = now
        if now - self.idle >= self.s["idle"]:
            self.leave()

    def find(self):
        for g in load(self.record).get("gateways") or []:
            if g.get("dir") == self.s["private"]:
                return g
        return None

    def change(self, how):
        """Rewrites the record under the lock; False: the lock is not to be had."""
        fd = os.open(os.path.join(self.s["dir"], "gateway.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
            gateways = how(load(self.record).get("gateways") or [])
            if gateways is None:
                return False
            new, path = tempfile.mkstemp(dir=self.s["dir"], prefix=".new-")
            with os.fdopen(new, "w") as f:
                json.dump({"gateways": gateways}, f)
            os.rename(path, self.record)
            return True
        finally:
            os.close(fd)

    def leave(self):
        """Ends, unless a host came in the meantime: hosts come under the lock."""

        def without(gateways):
            for path in glob.glob(os.path.join(self.hosts, self.s["fingerprint"] + "-*.lock")):
                if held(path):
                    return None
            return [g for g in gateways if g.get("dir") != self.s["private"]]

        if self.change(without):
            self.end()

    def kernels(self, leases):
        """Ends the kernels that nobody claims and returns how many are left."""
        if self.app is None:
            return 0
        manager = self.app.kernel_manager
        journalled = set()
        for path in glob.glob(os.path.join(self.sessions, "*.json")):
            try:
                old = time.time() - os.stat(path).st_mtime > self.s["keep"]
            except OSError:
                continue
            e = load(path)
            if e.get("gateway") != self.mine.get("process"):
                continue
            if old and not held(path[: -len(".json")] + ".lock"):
                os.unlink(path)
            else:
                journalled.add(e.get("kernel"))
        now, ids = time.monotonic(), list(manager.list_kernel_ids())
        self.unclaimed = {k: t for k, t in self.unclaimed.items() if k in ids}
        for kernel in ids:
            try:
                made = (manager.get_kernel(kernel)._launch_args or {}).get("env") or {}
            except (KeyError, AttributeError):
                continue
            lease = made.get("KERNEL_COPPICE_LEASE")
            if lease is None or lease in leases or kernel in journalled:
                self.unclaimed.pop(kernel, None)
            elif now - self.unclaimed.setdefault(kernel, now) >= 2:
                self.unclaimed[kernel] = now + 10
                self.loop.add_callback(self.shutdown, manager, kernel)
        return len(ids)

    def shutdown(self, manager, kernel):
        import asyncio

        task = asyncio.ensure_future(manager.shutdown_kernel(kernel, now=True))
        task.add_done_callback(lambda t: t.cancelled() or t.exception())

    def end(self):
        shutil.rmtree(self.s["private"], ignore_errors=True)
        os._exit(0)


def own(path):
    """Waits until no other gateway serves this fingerprint."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    until = time.monotonic() + 10
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except OSError:
            if time.monotonic() > until:
                sys.exit("another gateway serves this environment and is not recorded")
            time.sleep(0.05)


settings = load(sys.argv[1])
detach(os.path.join(settings["private"], "pid"))
keeper = Keeper(settings)
threading.Thread(target=keeper.run, daemon=True).start()
owned = own(os.path.join(settings["dir"], settings["fingerprint"] + ".own"))

from kernel_gateway.gatewayapp import KernelGatewayApp
from tornado.ioloop import IOLoop

app = KernelGatewayApp.instance()
app.initialize(sys.argv[2:])
keeper.loop = IOLoop.current()
keeper.loop.add_callback(setattr, keeper, "app", app)
app.start()
