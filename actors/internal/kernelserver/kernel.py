# Runs an IPython kernel that does not outlive its gateway and does not lose
# output. ipykernel looks for its parent once a second from a thread, which a
# cell in native code can block.
import os
import sys
import time

# The directory of this file is not a place to import from.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

os.environ.pop("KERNEL_COPPICE_LEASE", None)  # for the gateway alone

if sys.platform == "linux":
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    except Exception:
        pass  # then the thread must do
    parent = os.environ.get("JPY_PARENT_PID", "")
    if parent.isdigit() and int(parent) != os.getppid():
        os._exit(1)  # it died before it was asked for

from ipykernel.kernelapp import IPKernelApp

try:
    import fcntl
    import termios
except ImportError:  # Windows, where ipykernel does not watch descriptors
    fcntl = None


class Kernel(IPKernelApp):
    def init_iopub(self, context):
        # By default ZeroMQ drops, without a word, what does not fit into a queue
        # of 1000 messages, and a loop that prints and flushes is that fast.
        context.sndhwm = 0
        super().init_iopub(context)


def settle():
    """Waits until what children of the cell wrote is on its way.

    ipykernel reads descriptors 1 and 2 in a thread, which the end of the cell
    can overtake: the output would be lost or shown in the next cell.
    """
    until = time.monotonic() + 0.25
    for stream in (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr):
        fd = getattr(stream, "_fid", None)
        try:
            while fd is not None and time.monotonic() < until:
                waiting = fcntl.ioctl(fd, termios.FIONREAD, bytes(4))
                if int.from_bytes(waiting, sys.byteorder) == 0:
                    break
                time.sleep(0.0005)
        except (OSError, TypeError, ValueError):
            pass  # not a pipe of ipykernel


app = Kernel.instance()
app.initialize()
if fcntl is not None and app.shell is not None:
    app.shell.events.register("post_execute", settle)
app.start()
