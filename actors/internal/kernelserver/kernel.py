# Runs an IPython kernel that does not outlive its gateway. ipykernel looks for
# its parent once a second from a thread, which a cell in native code can block.
import os
import sys

# The directory of this file is not a place to import from.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

if sys.platform == "linux":
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    except Exception:
        pass  # then the thread must do
    parent = os.environ.get("JPY_PARENT_PID", "")
    if parent.isdigit() and int(parent) != os.getppid():
        os._exit(1)  # it died before it was asked for

from ipykernel.kernelapp import launch_new_instance

launch_new_instance()
