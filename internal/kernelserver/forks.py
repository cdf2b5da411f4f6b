# Makes the kernels of a gateway by fork. It is loaded into the gateway's process: it
# starts the zygote, a process that has imported what a kernel needs (zygote.py), and
# is the provisioner by which Jupyter starts its kernels.
#
# A kernel is a child of the gateway, as one that is spawned: the zygote forks twice,
# and while it does so the gateway adopts what has lost its parent. So its end is
# waited for and its exit status read as always, no other process can take its number,
# and the zygote can end without a kernel noticing.
#
# A kernel begins when the gateway has said so, which it does when it knows the
# process: what it has given up waiting for never runs.
import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import string
import subprocess
import sys
import time

NAME = "coppice-fork"
MODULE = "coppice_forks"
HERE = os.path.dirname(os.path.abspath(__file__))

# What a zygote may take until it is ready, and a fork, in seconds in which it could have
# got on (Chance), before a kernel is spawned in its place. Nothing is lost by waiting
# but time.
READY, FORK = 30.0, 15.0

# So many zygotes in a row may end before they are ready. Then kernels are spawned for so
# many seconds, and for twice as many each time that another one ends so.
ATTEMPTS, PAUSE, LONGEST = 2, 15.0, 900.0

# Room in the environment of the zygote for that of a kernel, which is written over it.
SPARE = 4096
MARK = "COPPICE_ZYGOTE"

# A child of somebody's that is not waited for becomes ours to wait for after so long.
UNWAITED = 30.0

# What a kernel may have in its environment that the zygote has not: nothing that
# Python, the C library or a package reads while it is loaded.
FREE = ("KERNEL_", "PI_", "JPY_SESSION_NAME")

PR_SET_CHILD_SUBREAPER = 36


class Refused(Exception):
    """Why a kernel is spawned."""


def split(env):
    """Parts an environment in what the zygote must share and what is a kernel's own."""
    own = {k: v for k, v in env.items() if k.startswith(FREE)}
    return {k: v for k, v in env.items() if k not in own and k != "JPY_PARENT_PID"}, own


def expected():
    """The environment that requests of our hosts will ask for, and the kernelspec."""
    with open(os.path.join(HERE, "d", "kernels", "python3", "kernel.json")) as f:
        spec = json.load(f)
    names = os.environ.get("KG_ENV_PROCESS_WHITELIST", "").split(",")
    env = {k: v for k, v in os.environ.items() if k in names}
    env.setdefault("PATH", os.environ.get("PATH", ""))
    env.update({k: string.Template(v).safe_substitute(env) for k, v in spec.get("env", {}).items()})
    env.pop("PYTHONEXECUTABLE", None)
    return spec, split(env)[0]


class Adoption:
    """While it is entered, this process is the parent of what below it has lost its own.

    That holds for all that is below: what is no kernel is waited for when it has
    ended and nobody else has done so for a while.
    """

    def __init__(self):
        self.prctl = ctypes.CDLL(None, use_errno=True).prctl
        self.users = 0
        self.strays = {}  # pid: since when it is a zombie, None: it is not

    @contextlib.contextmanager
    def window(self, mine):
        before = children()
        self.set(1)
        try:
            yield
        finally:
            self.set(-1)
            for pid in children() - before - mine:
                self.strays.setdefault(pid, None)
            self.reap()

    def set(self, by):
        first, last = by > 0 and self.users == 0, by < 0 and self.users == 1
        always = os.getpid() == 1  # of its kernel
        if not always and (first or last) and self.prctl(PR_SET_CHILD_SUBREAPER, int(first), 0, 0, 0) and first:
            raise Refused("the system lets no process adopt others")
        self.users += by

    def reap(self):
        if os.getpid() == 1:
            for pid in children():
                self.strays.setdefault(pid, None)
        now = time.monotonic()
        for pid, since in list(self.strays.items()):
            try:
                with open("/proc/%d/stat" % pid, "rb") as f:
                    state, parent = f.read().rpartition(b")")[2].split()[:2]
            except OSError:
                del self.strays[pid]  # waited for
                continue
            if int(parent) != os.getpid():
                del self.strays[pid]
            elif state == b"Z" and since is None:
                self.strays[pid] = now
            elif state == b"Z" and now - since > UNWAITED:
                with contextlib.suppress(OSError):
                    os.waitpid(pid, os.WNOHANG)


def children(pid=None):
    pid = pid or os.getpid()
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return set(map(int, f.read().split()))
    except OSError:
        return set()


class Chance:
    """How long processes say nothing although they could: what they wait for a processor
    meanwhile does not count, nor what this process does not run itself."""

    LOOK = 0.05  # seconds between two looks

    def __init__(self, pids):
        self.pids = pids  # returns whose chance it is
        self.passed, self.last = 0.0, time.monotonic()
        self.waited = self.waits()

    def waits(self):
        """How many seconds each has waited for a processor, as proc(5) tells."""
        told = {}
        for pid in self.pids():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open("/proc/%d/schedstat" % pid) as f:
                    told[pid] = int(f.read().split()[1]) / 1e9
        return told

    def look(self):
        """Returns how many seconds count so far."""
        since = time.monotonic() - self.last
        if since < self.LOOK:
            return self.passed
        waited = self.waits()
        starved = sum(w - self.waited.get(pid, 0.0) for pid, w in waited.items())
        self.passed += max(0.0, min(since, 2 * self.LOOK) - starved)
        self.last, self.waited = self.last + since, waited
        return self.passed


class Zygote:
    """Starts, asks and ends zygotes, of which there is at most one that takes requests.
    It belongs to the thread of the gateway's event loop."""

    def __init__(self):
        self.spec, env = expected()
        self.script = self.spec["argv"][1]
        self.adoption = Adoption()
        self.process = self.control = None
        self.failed = 0  # in a row
        self.why, self.rest = "", 0.0  # why there is none, and until when
        self.over = ""  # why there will be none any more
        self.env = env
        self.begin()

    def begin(self):
        self.end()
        self.ready = False
        self.control, theirs = socket.socketpair()
        argv = [a.replace("{connection_file}", self.title()) for a in self.spec["argv"]]
        try:
            self.process = subprocess.Popen(
                argv, stdin=theirs, env=dict(self.env, JPY_PARENT_PID=str(os.getpid()), **{MARK: "x" * SPARE})
            )
        except OSError as e:
            self.pause("the process they are forked from cannot be started: %s" % e)
        finally:
            theirs.close()
        if self.control is not None:
            self.control.setblocking(False)
            self.chance = Chance(lambda pid=self.process.pid: {pid})

    def pause(self, why):
        """Has no zygote for a while."""
        self.end()
        self.why, self.rest = why, time.monotonic() + min(PAUSE * 2 ** max(self.failed - ATTEMPTS, 0), LONGEST)

    @staticmethod
    def title():
        """As long as the connection file of a kernel, whose name is written over it."""
        return os.path.join(os.environ.get("JUPYTER_RUNTIME_DIR", ""), "kernel-zygote00-0000-0000-0000-000000000000.json")

    def end(self):
        if self.control is not None:
            self.control.close()
            self.control = None
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def fits(self, cmd):
        """Says whether a command is what zygotes are made for."""
        argv = self.spec["argv"]
        if len(cmd) != len(argv) or [os.path.dirname(cmd[i]) for i, a in enumerate(argv) if a == "{connection_file}"] != [os.path.dirname(self.title())]:
            return False
        return all(a == "{connection_file}" and len(os.fsencode(c)) == len(os.fsencode(self.title())) or c == a for c, a in zip(cmd, argv))

    async def available(self, env):
        """Returns when there is a zygote with an environment."""
        common, _ = split(env)
        if common != self.env:
            names = sorted(k for k in set(common) | set(self.env) if common.get(k) != self.env.get(k))
            raise Refused("their environment differs in %s" % ", ".join(names))
        while not self.over:
            if self.process is None:
                if time.monotonic() < self.rest:
                    raise Refused(self.why)
                self.begin()
                continue
            if self.ready and self.process.poll() is None:
                return
            if not self.ready:  # what one that has ended said last is there to be read
                try:
                    told = self.control.recv(200)
                except BlockingIOError:
                    if self.chance.look() > READY:
                        raise Refused("the process they are forked from is not ready") from None
                    await asyncio.sleep(0.003)
                    continue
                except OSError:
                    told = b""
                if told == b"ready":
                    self.ready, self.failed = True, 0
                    return
                if told:
                    self.over = told.decode("utf-8", "replace")
                    break
            if not self.ready:
                self.failed += 1
                if self.failed >= ATTEMPTS:
                    self.pause("the process they are forked from ends before it is ready")
                    continue
            self.begin()
        self.end()
        raise Refused(self.over)

    async def fork(self, cmd, env, cwd):
        """Returns the pid of a kernel. Whatever else it does, no kernel runs then."""
        for _ in range(3):
            await self.available(env)
            ours, theirs = socket.socketpair()
            kernel = set()
            with ours, theirs, self.adoption.window(kernel):
                asked = self.process
                try:
                    socket.send_fds(self.control, [b"f"], [theirs.fileno()])
                    theirs.close()
                    answer = await self.answer(asked.pid, self.ask(ours, cmd, env, cwd))
                    if "pid" in answer:
                        ours.send(b"g")
                        kernel.add(answer["pid"])
                        return answer["pid"]
                except ConnectionError:  # it has ended, or what it forked has
                    answer = {"again": "the process they are forked from ends"}
                except (OSError, ValueError, asyncio.TimeoutError) as e:
                    answer = {"error": "the process they are forked from did not answer (%s)" % type(e).__name__}
                    if self.process is asked:
                        self.begin()  # it may be stopped: another is for the next
                if "again" not in answer:
                    raise Refused(answer["error"])
                if self.process is asked:
                    self.begin()
        raise Refused(answer["again"])

    @staticmethod
    async def answer(zygote, asking):
        """Awaits what is asked of a zygote, for as long as FORK says."""
        task = asyncio.ensure_future(asking)
        chance = Chance(lambda: {zygote} | children(zygote) | children())
        try:
            while not task.done():
                if chance.look() > FORK:
                    raise asyncio.TimeoutError
                await asyncio.wait({task}, timeout=Chance.LOOK)
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    async def ask(self, channel, cmd, env, cwd):
        channel.setblocking(False)
        loop = asyncio.get_running_loop()
        limits = {}
        for name in dir(resource):
            if name.startswith("RLIMIT_"):
                kind = getattr(resource, name)
                with contextlib.suppress(ValueError, OSError):
                    limits[kind] = resource.getrlimit(kind)
        request = {
            "argv": cmd, "env": env, "cwd": None if cwd is None else os.fspath(cwd), "limits": list(limits.items()),
            "nice": os.getpriority(os.PRIO_PROCESS, 0), "cgroup": groups(), "umask": mask(), "parent": os.getpid(),
            "ignored": [int(s) for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN],
        }
        await loop.sock_sendall(channel, json.dumps(request).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = await loop.sock_recv(channel, 65536)
            if not part:
                raise ConnectionResetError
            answer += part
        return json.loads(answer)


def groups():
    try:
        with open("/proc/self/cgroup") as f:
            return f.read()
    except OSError:
        return ""


def mask():
    with open("/proc/self/status") as f:
        return next((int(line.split()[1], 8) for line in f if line.startswith("Umask:")), None)


class Forked:
    """A kernel that was forked, as a subprocess.Popen: a child of this process, so that
    its number is its own until its end is waited for."""

    stdin = stdout = stderr = None

    def __init__(self, pid, args):
        self.pid, self.args, self.returncode = pid, args, None

    def poll(self):
        return self._wait(os.WNOHANG)

    def wait(self, timeout=None):
        if timeout is None:
            return self._wait(0)
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.005)
        return self.returncode

    def _wait(self, how):
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, how)
            except ChildProcessError:  # somebody else waited for it: as subprocess says it
                pid, status = self.pid, 0
            if pid == self.pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


zygote = None
said = set()


def provisioner():
    """Returns the class of the provisioner."""
    from jupyter_client.provisioning import LocalProvisioner

    class ForkProvisioner(LocalProvisioner):
        """Starts a kernel of ours by fork and any other, or when that fails, as always."""

        async def launch_kernel(self, cmd, **kwargs):
            try:
                self.process = await self.forked(cmd, **kwargs)
            except Refused as why:
                if str(why) not in said:
                    said.add(str(why))
                    self.log.warning("Kernels are spawned, not forked: %s", why)
                return await super().launch_kernel(cmd, **kwargs)
            self.pid = self.pgid = self.process.pid
            self.cwd = kwargs.get("cwd", os.getcwd())
            return self.connection_info

        async def forked(self, cmd, env=None, cwd=None, independent=False, **kwargs):
            more = sorted(set(self._scrub_kwargs(kwargs)) | {k for k in ("independent",) if independent})
            if more:
                raise Refused("they are started with %s" % ", ".join(more))
            if not zygote.fits(cmd):
                raise Refused("another interpreter, or other arguments: %s" % cmd[0])
            env = dict(env, JPY_PARENT_PID=str(os.getpid()))
            return Forked(await zygote.fork(cmd, env, cwd), cmd)

        async def poll(self):
            if zygote.adoption.strays or os.getpid() == 1:
                zygote.adoption.reap()
            return await super().poll()

    return ForkProvisioner


def begin():
    """Starts the zygote, which takes as long as the gateway's own start. Of what goes
    wrong register makes that kernels are spawned."""
    global zygote
    try:
        zygote = Zygote()
    except Exception as e:
        print("forks:", repr(e), file=sys.stderr)


def register():
    """Makes the provisioner known, or the usual one by its name."""
    try:
        from importlib.metadata import EntryPoint

        from jupyter_client.provisioning import KernelProvisionerFactory
    except ImportError:
        return  # a Jupyter that knows no provisioners does not look for one
    target, group = "jupyter_client.provisioning:LocalProvisioner", KernelProvisionerFactory.GROUP_NAME
    try:
        if zygote is not None:
            made = type(sys)(MODULE)
            made.ForkProvisioner = provisioner()
            sys.modules[MODULE] = made
            target = MODULE + ":ForkProvisioner"
    except Exception as e:
        print("forks:", repr(e), file=sys.stderr)
    KernelProvisionerFactory.provisioners[NAME] = EntryPoint(NAME, target, group)
