# Runs an IPython kernel that does not outlive its gateway and does not lose
# output. ipykernel looks for its parent once a second from a thread, which a
# cell in native code can block. The start is as short as it can be made without
# another ipykernel: somebody waits for it.
import gc
import os
import sys
import time

# Until the kernel is up nearly nothing becomes garbage, and looking for it is a
# tenth of the start.
collects = gc.isenabled()
gc.disable()

# The directory of this file is not a place to import from.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

# It may be the process that kernels are forked from; see zygote.py.
forks = os.environ.pop("COPPICE_ZYGOTE", None) is not None


def owned():
    """Makes this process end with the gateway."""
    os.environ.pop("KERNEL_COPPICE_LEASE", None)  # for the gateway alone
    if sys.platform != "linux":
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    except Exception:
        pass  # then the thread must do
    parent = os.environ.get("JPY_PARENT_PID", "")
    if parent.isdigit() and int(parent) != os.getppid():
        os._exit(1)  # it died before it was asked for


def walls():
    """Returns what keeps this process from its siblings, None where there are no walls."""
    import importlib.util

    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "walled.py")
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("coppice_walled", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.apart


def listen():
    """Opens the sockets of the kernel before there is anything that reads them.

    ZeroMQ looks again for one that is not there after 0.1 to 0.2 s, so that a
    gateway would find the kernel that much later. Returns descriptors by port.
    """
    found = {}
    try:
        import json
        import socket

        with open(sys.argv[sys.argv.index("-f") + 1]) as f:
            told = json.load(f)
        if told["transport"] != "ipc" or not hasattr(socket, "AF_UNIX"):
            return found
        for channel in ("shell", "control", "iopub", "stdin"):
            port = told[channel + "_port"]
            path = "%s-%i" % (told["ip"], port)
            if port <= 0 or port in found:
                continue
            try:
                os.unlink(path)  # of a process before this one
            except FileNotFoundError:
                pass
            s = socket.socket(socket.AF_UNIX)
            try:
                s.bind(path)
                s.listen(100)
                found[port] = s.detach()
            finally:
                s.close()
    except (OSError, ValueError, LookupError, TypeError):
        pass  # ipykernel opens what is missing
    return found


apart = walls()
owned()
if apart is not None and not forks:
    apart()
early = {} if forks else listen()

# Kernels are not debugged over the gateway, and debugpy would be a third of the
# start and a sixth of the memory. Cells import it as usual: see the end.
halted = sys.modules.setdefault("debugpy", None) is None

import zmq
from ipykernel.iostream import IOPubThread, OutStream
from ipykernel.kernelapp import IPKernelApp

try:
    import fcntl
    import select
    import termios
except ImportError:  # Windows, where ipykernel does not watch descriptors
    fcntl = None


class Kernel(IPKernelApp):
    def _try_bind_socket(self, s, port):
        fd = early.pop(port, None) if hasattr(zmq, "USE_FD") else None
        if fd is not None:
            s.setsockopt(zmq.USE_FD, fd)
            try:
                return super()._try_bind_socket(s, port)
            except zmq.ZMQError:
                os.close(fd)  # whoever has connected tries again
                s.setsockopt(zmq.USE_FD, -1)
        return super()._try_bind_socket(s, port)

    def init_iopub(self, context):
        # By default ZeroMQ drops, without a word, what does not fit into a queue
        # of 1000 messages, and a loop that prints and flushes is that fast.
        context.sndhwm = 0
        super().init_iopub(context)


def without_pipe(self):
    """Takes the place of what opens a port for the output of processes that a cell forks:
    behind walls there is none, and ZeroMQ would end the process that asks for one."""
    self._pipe_flag = False


if apart is not None and hasattr(IOPubThread, "_setup_pipe_in"):
    IOPubThread._setup_pipe_in = without_pipe


# The pipes of which something was read that is not on its way yet, and how much is read at
# a time, as ipykernel does.
reading, PIPE = set(), 1000


def watch(self):
    """Takes the place of the same of ipykernel's streams, in the thread that reads what
    children write, and says besides when it has something in hand."""
    fd = self._fid
    if fd is None:
        return
    try:
        ready = select.poll()
        ready.register(fd, select.POLLIN)
        while self._should_watch:
            ready.poll()
            reading.add(fd)  # before it is read: for who looks, it is in the pipe, here, or on its way
            try:
                data = os.read(fd, PIPE)
                if not data or not self._should_watch:
                    return
                self.write(data.decode(errors="replace"))
            finally:
                reading.discard(fd)
            os.write(self._original_stdstream_copy, data)
    except Exception:
        self._exc = sys.exc_info()


def settle():
    """Waits until what children of the cell wrote is on its way.

    ipykernel reads descriptors 1 and 2 in a thread, which the end of the cell
    can overtake: the output would be lost or shown in the next cell. One that writes all
    the time is waited for as long as it takes to read for a while, and not longer.
    """
    most, until = time.process_time() + 0.25, time.monotonic() + 5
    for stream in (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr):
        fd = getattr(stream, "_fid", None)
        try:
            while fd is not None and time.process_time() < most and time.monotonic() < until:
                waiting = fcntl.ioctl(fd, termios.FIONREAD, bytes(4))
                if int.from_bytes(waiting, sys.byteorder) == 0 and fd not in reading:
                    break
                time.sleep(0.0005)
        except (OSError, TypeError, ValueError):
            pass  # not a pipe of ipykernel


if fcntl is not None and hasattr(OutStream, "_watch_pipe_fd"):
    OutStream._watch_pipe_fd = watch


def compiled():
    """Returns the tag and the code of what kernels are prepared with: compiled once, for
    all kernels of the gateway."""
    import marshal

    here = os.path.dirname(os.path.abspath(__file__))
    cache, codes = os.path.join(here, "modules.bin"), {}
    try:
        with open(cache, "rb") as f:
            version, tag, codes = marshal.load(f)
        if version != sys.version:
            codes = {}
    except (OSError, ValueError, TypeError, EOFError):
        pass
    if not codes:
        import json

        with open(os.path.join(here, "modules.json"), encoding="utf-8") as f:
            told = json.load(f)
        tag = told["tag"]
        codes = {name: compile(text, path, "exec", 0, True) for name, (path, text) in told["sources"].items()}
        new = "%s.%d" % (cache, os.getpid())
        try:
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
                marshal.dump((sys.version, tag, codes), f)
            os.replace(new, cache)
        except OSError:
            pass  # the next kernel compiles them again
    return tag, codes


def prepare(tag, codes):
    """Does for all hosts what each would do in each kernel, while no answer depends on
    it."""
    import types

    module = types.ModuleType("coppice_kernel")
    exec(codes["coppice_kernel"], module.__dict__)
    module.start(tag, codes.__getitem__)
    module.preload()
    sys.modules["coppice_kernel"] = module


def become():
    """Returns in each kernel that is forked from this process, with what prepares it."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("coppice_zygote", os.path.join(os.path.dirname(os.path.abspath(__file__)), "zygote.py"))
    zygote = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(zygote)
    zygote.preload()
    try:
        ready = compiled()
        zygote.helpers(ready[1])
    except Exception:
        ready = None  # each kernel tries
    zygote.serve()
    return ready


ready = None
if forks:
    ready = become()
    owned()
    if apart is not None:
        apart()
    early = listen()
app = Kernel.instance()
app.initialize()
try:
    prepare(*(ready or compiled()))
except Exception:
    pass  # then each host brings its own
if halted:
    del sys.modules["debugpy"]
for fd in early.values():
    os.close(fd)  # another ipykernel, which has opened its own
if fcntl is not None and app.shell is not None:
    app.shell.events.register("post_execute", settle)
sys.argv[:] = [""]  # those of this program are not for the code: argparse would refuse them
if collects:
    # What is there will stay: the first collection must not go through all of it.
    # Where memory is shared, it must never do so.
    gc.freeze()
    if not forks:
        gc.unfreeze()
    gc.enable()
app.start()
