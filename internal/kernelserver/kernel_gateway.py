# Runs a Kernel Gateway whose kernels are forked: see forks.py. argv: the gateway's
# arguments.
import importlib.util
import os
import sys

# The directory of this file is not a place to import from.
here = os.path.dirname(os.path.abspath(__file__))
if not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

spec = importlib.util.spec_from_file_location("coppice_forks", os.path.join(here, "forks.py"))
forks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(forks)
forks.begin()  # first: it comes up while the gateway does

from kernel_gateway.gatewayapp import launch_instance

forks.register()
launch_instance()
