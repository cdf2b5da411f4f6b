# Runs a Kernel Gateway as "python -m kernel_gateway" does, which takes its arguments,
# and has it answer sooner. Where forks.py is beside this file, its kernels are forked, and
# where walled.py is, it stands behind walls.
import gc
import importlib.util
import os
import runpy
import sys

# The directory of this file is not a place to import from: the package of this name is meant.
here = os.path.dirname(os.path.abspath(__file__))
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]


def beside(name):
    """Loads a file that is where this one is, None where there is none."""
    path = os.path.join(here, name + ".py")
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("coppice_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


forks = beside("forks")
if forks is not None:
    forks.begin()  # first: it comes up while the gateway does
beside("late").put_off()
walled = beside("walled")
if walled is not None:
    walled.serve()

# Nothing of what is imported becomes garbage, and looking for it is a fifth of this.
collects = gc.isenabled()
gc.disable()
import kernel_gateway.gatewayapp

if collects:
    gc.freeze()
    gc.unfreeze()
    gc.enable()
if forks is not None:
    forks.register()
beside("room").make()
runpy.run_module("kernel_gateway", run_name="__main__", alter_sys=True)
