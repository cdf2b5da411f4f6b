"""What runs a suite of Jupyter's on kernels of coppice, a plugin for pytest: it puts them under the
names of the kernels that tests start, leaves out what has nothing to do with them, and says of each
test whether it had one."""

import os
import pathlib

import pytest
from coppice_kernel.provisioner import CoppiceProvisioner

# What tests ask for that bring a kernel of their own, made of ipykernel.
OWN = ("install_kernel", "install_fail_kernel", "install_slow_fail_kernel", "install")

NAMES = ("python3", "echo")
SPECS = pathlib.Path(os.environ["JUPYTER_PATH"], "kernels")

started = 0
launch = CoppiceProvisioner.launch_kernel


async def counted(self, *args, **more):
    global started
    started += 1
    return await launch(self, *args, **more)


CoppiceProvisioner.launch_kernel = counted


def pytest_collection_modifyitems(config, items):
    own = [item for item in items if set(OWN) & set(item.fixturenames)]
    config.hook.pytest_deselected(items=own)
    items[:] = [item for item in items if item not in own]
    print(f"held: {len(own)} bring a kernel of their own, and are left out")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    for name in NAMES:  # each time: there are tests that remove kernels by their names
        (SPECS / name).mkdir(parents=True, exist_ok=True)
        (SPECS / name / "kernel.json").write_text(os.environ["HELD_KERNELSPEC"])
    before = started
    item.user_properties.append(("session", lambda: started > before))
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "call":
        item.user_properties[:] = [(k, str(v())) if callable(v) else (k, v) for k, v in item.user_properties]
    yield
