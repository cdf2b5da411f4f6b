# Runs a Kernel Gateway as "python -m kernel_gateway" does, which takes its arguments,
# and has it answer sooner.
import gc
import importlib.util
import os
import runpy
import sys

# The directory of this file is not a place to import from: the package of this name is meant.
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

spec = importlib.util.spec_from_file_location("coppice_late", os.path.join(os.path.dirname(__file__), "late.py"))
late = importlib.util.module_from_spec(spec)
spec.loader.exec_module(late)
late.put_off()

# Nothing of what is imported becomes garbage, and looking for it is a fifth of this.
collects = gc.isenabled()
gc.disable()
import kernel_gateway.gatewayapp

if collects:
    gc.freeze()
    gc.unfreeze()
    gc.enable()
runpy.run_module("kernel_gateway", run_name="__main__", alter_sys=True)
