# Runs a Kernel Gateway that hosts share, and looks after it: see the document of
# package sharedgateway. argv: the settings file, then the gateway's arguments.
import os
import sys

# The directory of this file is not a place to import from.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

# Whoever starts it leaves the hold on the environment's gateway in this
# descriptor. It is kept for as long as this process lives, and no kernel gets it.
HOLD = 3
os.set_inheritable(HOLD, False)


def detach(pid_file):
    """Leaves the host, which would have to wait for this process otherwise.

    The host ends the group of its child when that ends: so the child stays until
    the gateway has a group of its own.
    """
    ready, told = os.pipe()
    if os.fork():
        os.close(told)
        os.read(ready, 1)
        os._exit(0)
    os.setsid()
    os.close(ready)
    os.close(told)
    with open(pid_file + ".new", "w") as f:
        f.write(str(os.getpid()))
    os.rename(pid_file + ".new", pid_file)


detach(os.path.join(os.path.dirname(sys.argv[1]), "pid"))

import fcntl
import glob
import json
import shutil
import tempfile
import threading
import time


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
    """Ends what is not claimed. All of it runs in one thread."""

    def __init__(self, s):
        self.s = s
        self.hosts = os.path.join(s["dir"], "hosts")
        self.sessions = os.path.join(s["dir"], "sessions")
        self.record = os.path.join(s["dir"], "gateway.json")
        self.mine = None  # our entry in the record, once there is one
        self.idle = None  # since when
        self.unclaimed = {}  # kernel: since when
        self.free = {}  # file of a session that no host has: since when
        self.app = None
        self.loop = None

    def run(self):
        while True:
            try:
                self.look()
            except Exception as e:
                print("keeper:", repr(e), file=sys.stderr)
            time.sleep(1)

    def look(self):
        leases = set()
        for path in glob.glob(os.path.join(self.hosts, self.s["name"] + "-*.lock")):
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
            self.end()  # it was forgotten before it had begun: it cannot be found
            return
        kernels = self.kernels(leases)
        if leases or kernels:
            self.idle = None
            if entry is None:
                self.locked(self.back)
            return
        now = time.monotonic()
        if self.idle is None:
            self.idle = now
        if now - self.idle >= self.s["idle"]:
            self.locked(self.leave)

    def find(self):
        for g in load(self.record).get("gateways") or []:
            if g.get("dir") == self.s["private"]:
                return g
        return None

    def used(self):
        """Says whether a host is there. It does not remove what others left."""
        return any(held(path) for path in glob.glob(os.path.join(self.hosts, self.s["name"] + "-*.lock")))

    def write(self, how):
        gateways = how(load(self.record).get("gateways") or [])
        new, path = tempfile.mkstemp(dir=self.s["dir"], prefix=".new-")
        with os.fdopen(new, "w") as f:
            json.dump({"gateways": gateways}, f)
        os.rename(path, self.record)

    def locked(self, then):
        """Calls then under the lock, unless somebody else has it."""
        fd = os.open(os.path.join(self.s["dir"], "gateway.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            then()
        finally:
            os.close(fd)

    def back(self):
        if self.find() is None:
            self.write(lambda gateways: gateways + [self.mine])

    def leave(self):
        """Ends, unless a host came in the meantime."""
        if self.used():
            return
        self.write(lambda gateways: [g for g in gateways if g.get("dir") != self.s["private"]])
        # A host makes its lease, then it reads the record: one that has read the
        # old record is seen here, and any other does not find this gateway.
        if self.used():
            self.back()
        else:
            self.end()

    def kernels(self, leases):
        """Ends the kernels that are not claimed and returns how many are left."""
        if self.app is None:
            return 0
        manager = self.app.kernel_manager
        journalled, now, free = set(), time.monotonic(), {}
        for path in glob.glob(os.path.join(self.sessions, "*.json")):
            try:
                old = time.time() - os.stat(path).st_mtime > self.s["keep"]
            except OSError:
                continue
            e = load(path)
            if e.get("gateway") != self.mine.get("process"):
                continue
            if not held(path[: -len(".json")] + ".lock"):
                free[path] = self.free.get(path, now)
            if isinstance(e.get("keep"), (int, float)):  # for so long without a host
                old = path in free and now - free[path] >= e["keep"]
            if old and path in free:
                os.unlink(path)
                try:
                    os.unlink(path[: -len(".json")] + ".log")
                except FileNotFoundError:
                    pass
            else:
                journalled.add(e.get("kernel"))
        self.free, ids = free, list(manager.list_kernel_ids())
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


def beside(name):
    """Loads a file that is where this one is."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("coppice_" + name, os.path.join(os.path.dirname(__file__), name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def application(arguments):
    """Returns the gateway, or Jupyter Server in its place where that is all."""
    beside("late").put_off()
    try:
        from kernel_gateway.gatewayapp import KernelGatewayApp
    except ModuleNotFoundError as e:
        if e.name != "kernel_gateway":
            raise
        return beside("server").application(arguments, forks)
    if forks is not None:
        forks.register()
    beside("room").make()
    app = KernelGatewayApp.instance()
    app.initialize(arguments)
    return app


def bound(manager, limit):
    """Makes the manager refuse kernels beyond the limit.

    The server's own look at its limit is too early: of requests that come at once
    it lets all pass. And it fails, as the list of kernels does, in the instant
    before a kernel that starts has all its attributes. This one counts a kernel as
    soon as it is asked for.
    """
    from tornado import web

    start = manager.start_kernel

    def list_kernels():
        models = []
        for kernel in manager.list_kernel_ids():
            try:
                models.append(manager.kernel_model(kernel))
            except AttributeError:
                models.append({"id": kernel, "execution_state": "starting"})
            except (KeyError, web.HTTPError):
                pass  # it has just gone
        return models

    async def start_kernel(*args, **kwargs):
        starting = getattr(manager, "_pending_kernels", {})
        ids = set(manager.list_kernel_ids()) | {k for k, task in starting.items() if not task.done()}
        if len(ids) >= limit:
            raise web.HTTPError(403, "Resource Limit")
        return await start(*args, **kwargs)

    manager.start_kernel, manager.list_kernels = start_kernel, list_kernels


forks = None
if os.path.exists(os.path.join(os.path.dirname(__file__), "forks.py")):
    forks = beside("forks")
    forks.begin()
keeper = Keeper(load(sys.argv[1]))
threading.Thread(target=keeper.run, daemon=True).start()
app = application(sys.argv[2:])
if keeper.s.get("max_kernels"):
    bound(app.kernel_manager, keeper.s["max_kernels"])

from tornado.ioloop import IOLoop

keeper.loop = IOLoop.current()
keeper.loop.add_callback(setattr, keeper, "app", app)
app.start()
