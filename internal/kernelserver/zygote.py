# The process that kernels are forked from: kernel.py loads this when it is started
# for that, has imported what a kernel needs, and calls serve, which returns in each
# kernel. Standard input is where the gateway asks (forks.py). It has one thread, and
# nothing in it belongs to a kernel: no socket of ZeroMQ, no event loop, no IPython.
import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import time

# What a kernel imports on its way up or with its first cell beyond what the module of
# its application does. What is not there in some version is imported by no kernel.
LATE = """
IPython.core.logger http.client IPython.extensions.storemagic IPython.core.completerlib
unicodedata IPython.core.oinspect difflib ipykernel.debugger faulthandler
tornado.platform.asyncio IPython.core.debugger stack_data executing
pygments.formatters.terminal256 pygments.lexers.python pygments.styles.default
""".split()


def preload():
    for name in LATE:
        try:
            __import__(name)
        except Exception:
            pass


def helpers(codes):
    """Imports the helpers of sessions."""
    module = type(sys)("coppice_kernel")
    exec(codes["coppice_kernel"], module.__dict__)
    module._code = codes.__getitem__
    module.preload()


def serve():
    """Answers requests for ever, but in the kernels: there it returns."""
    if len(os.listdir("/proc/self/task")) > 1:
        tell(b"something that Python loads at its start has begun a thread")
        os._exit(1)
    gc.collect()
    gc.freeze()  # its memory stays shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    seen = files()
    control = socket.socket(fileno=0)
    tell(b"ready")
    while True:
        try:
            asked, descriptors, _, _ = socket.recv_fds(control, 1, 1)
        except OSError:
            asked = b""
        if not asked:
            os._exit(0)  # the gateway needs no zygote any more, or is gone
        with socket.socket(fileno=descriptors[0]) as channel:
            if files() != seen:
                channel.sendall(b'{"again": "packages of their environment change"}\n')
                continue
            between = os.fork()
            if between == 0:
                between = os.getpid()
                try:
                    if os.fork():
                        os._exit(0)
                except OSError:
                    os._exit(1)
                control.detach()
                become(channel, between)
                return
        os.waitpid(between, 0)


def tell(text):
    try:
        os.write(0, text)
    except OSError:
        os._exit(0)


def files():
    """What the loaded modules, and the directories that were looked in for them, are
    like: kernels must not have another version than they would import."""
    found = {}
    for name in {getattr(m, "__file__", None) for m in list(sys.modules.values())} | set(sys.path):
        try:
            told = os.stat(name)
            found[name] = told.st_mtime_ns, told.st_size if not os.path.isdir(name) else 0
        except (OSError, TypeError, ValueError):
            found[name] = None
    return found


def become(channel, between):
    """Makes this process the one that the gateway asks for, and waits until it is to
    begin."""
    try:
        request = json.loads(line(channel))
        os.setsid()
        gone = select.poll()
        gone.register(channel, 0)
        while os.getppid() == between:
            if gone.poll(0.2):
                os._exit(1)  # the gateway waits no more
        if os.getppid() != request["parent"]:
            raise OSError("the gateway is not their parent")
        if cgroup() != request["cgroup"]:
            raise OSError("the gateway has moved to another control group")
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        for kind, limit in request["limits"]:
            if list(resource.getrlimit(kind)) != limit:
                resource.setrlimit(kind, tuple(limit))
        ignore(request["ignored"])
        if request["umask"] is not None:
            os.umask(request["umask"])
        nice = request["nice"]
        if os.getpriority(os.PRIO_PROCESS, 0) != nice:
            os.setpriority(os.PRIO_PROCESS, 0, nice)
        read, write = os.pipe()
        os.dup2(read, 0)
        end = os.dup(channel.fileno()) if channel.fileno() < 3 else channel.detach()
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2 and fd != end:
                with contextlib.suppress(OSError):
                    os.close(fd)
        channel = socket.socket(fileno=end)
        retitle(request["argv"], request["env"], request["parent"] == 1)
        os.environ.clear()
        os.environ.update(request["env"])
        time.tzset()
        sys.argv[:] = request["argv"][1:]
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[:] = request["argv"]
        fresh()
        channel.sendall(json.dumps({"pid": os.getpid()}).encode() + b"\n")
        if channel.recv(1) != b"g":
            os._exit(1)
        channel.close()
    except BaseException as e:
        try:
            channel.sendall(json.dumps({"error": "%s: %s" % (type(e).__name__, e)}).encode() + b"\n")
        finally:
            os._exit(1)


def ignore(signals):
    """Sets what is done about signals to what a program finds that the gateway runs, and
    Python then makes of it."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGPIPE}:
        if number == getattr(signal, "SIGXFSZ", None):
            continue
        how = signal.SIG_IGN if int(number) in signals else signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        if signal.getsignal(number) not in (how, None):
            signal.signal(number, how)


def line(channel):
    text = b""
    while not text.endswith(b"\n"):
        part = channel.recv(65536)
        if not part:
            os._exit(1)
        text += part
    return text


def cgroup():
    try:
        with open("/proc/self/cgroup") as f:
            return f.read()
    except OSError:
        return ""


def retitle(argv, env, inside):
    """Writes arguments and environment over those that this process was started with:
    whoever looks for a kernel finds it by them. Inside of a kernel whose first process the
    gateway is nobody looks, and that kernel may not tell where they are."""
    with open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    # The fields of proc(5) from the third on: 48 to 51.
    (a, b), (c, d) = (int(fields[45]), int(fields[46])), (int(fields[47]), int(fields[48]))
    if inside and not a:
        for name in list(os.environ):
            os.unsetenv(name)
        return
    with open("/proc/self/cmdline", "rb") as f:
        now = f.read()
    arguments = b"".join(os.fsencode(s) + b"\0" for s in argv)
    variables = b"".join(os.fsencode("%s=%s" % e) + b"\0" for e in env.items())
    if not a or b - a != len(arguments) or len(variables) > d - c or ctypes.string_at(a, b - a) != now:
        raise OSError("there is no room for their arguments and their environment")
    ctypes.memmove(a, arguments, len(arguments))
    # Python copies what it sets, and all of it is set anew.
    for name in list(os.environ):
        os.unsetenv(name)
    ctypes.memset(c, 0, d - c)
    ctypes.memmove(c, variables, len(variables))


def fresh():
    """Draws anew what no two processes may share."""
    importlib.invalidate_caches()
    if "multiprocessing.process" in sys.modules:
        sys.modules["multiprocessing.process"].current_process().authkey = os.urandom(32)
    if "ssl" in sys.modules:
        sys.modules["ssl"].RAND_add(os.urandom(32), 32.0)
    if "random" in sys.modules:
        sys.modules["random"].seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
