"""Measures other ways to have Python run code, from the package registries.

python registry_peer.py MODE CREATES CALLS prints the seconds that each new session
took to its first result, and each 1+1, as one JSON object. A mode that needs a
Kernel Gateway finds it in PEER_URL and PEER_TOKEN.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import Any, Callable, List

CODE = "1+1"

# A session is what opens it, by which it is closed, and returns its call.
Open = Callable[[ExitStack], Callable[[], Any]]


def measure(creates: int, calls: int, opened: Open, want: Any) -> "tuple[List[float], List[float]]":
    made, took = [], []
    for n in range(creates):
        with ExitStack() as stack:
            begin = time.perf_counter()
            call = opened(stack)
            got = call()
            made.append(time.perf_counter() - begin)
            assert got == want, got
            for _ in range(calls if n == 0 else 0):
                begin = time.perf_counter()
                got = call()
                took.append(time.perf_counter() - begin)
                assert got == want, got
    return made, took


EXECNET = """
names = {}
for code in channel:
    channel.send(repr(eval(code, names)))
"""


def execnet(stack: ExitStack) -> Callable[[], Any]:
    import execnet

    group = execnet.Group()
    stack.callback(group.terminate, timeout=5)
    channel = group.makegateway("popen//python=" + sys.executable).remote_exec(EXECNET)

    def call() -> str:
        channel.send(CODE)
        return channel.receive(timeout=60)

    return call


def rpyc(stack: ExitStack) -> Callable[[], Any]:
    import rpyc.utils.factory
    from rpyc.core.service import ClassicService

    serve = "import rpyc.core.service as s, rpyc.utils.factory as f; f.connect_stdpipes(s.SlaveService).serve_all()"
    connection = rpyc.utils.factory.connect_subproc([sys.executable, "-u", "-c", serve], ClassicService)
    stack.callback(connection.proc.wait)
    stack.callback(connection.close)
    return lambda: repr(connection.eval(CODE))


def ipyparallel(stack: ExitStack) -> Callable[[], Any]:
    import ipyparallel

    cluster = ipyparallel.Cluster(n=1, log_level=40)
    client = cluster.start_and_connect_sync(activate=False)
    stack.callback(cluster.stop_cluster_sync)
    stack.callback(client.close)
    view = client[0]

    def call() -> str:
        return view.execute(CODE, silent=False, block=True).execute_result["data"]["text/plain"]

    return call


def pexpect(stack: ExitStack) -> Callable[[], Any]:
    from pexpect import replwrap

    repl = replwrap.python(sys.executable)
    stack.callback(repl.child.close, force=True)
    return lambda: repl.run_command(CODE, timeout=60).strip()


def smolagents(stack: ExitStack) -> Callable[[], Any]:
    from smolagents import LocalPythonExecutor

    executor = LocalPythonExecutor(additional_authorized_imports=[])
    executor.send_tools({})
    return lambda: repr(executor(CODE).output)


def smolagents_jupyter(stack: ExitStack) -> Callable[[], Any]:
    import logging

    import requests
    from smolagents import remote_executors

    # What its DockerExecutor does once the gateway in its container is up.
    url, token = os.environ["PEER_URL"], os.environ["PEER_TOKEN"]
    executor = remote_executors.DockerExecutor.__new__(remote_executors.DockerExecutor)
    executor.logger, executor.allow_pickle = logging.getLogger("peer"), False
    kernel = remote_executors._create_kernel_http(f"{url}/api/kernels?token={token}", executor.logger)
    stack.callback(requests.delete, f"{url}/api/kernels/{kernel}?token={token}", timeout=60)
    executor.ws_url = f"ws{url[4:]}/api/kernels/{kernel}/channels?token={token}"
    return lambda: executor.run_code_raise_errors(CODE).output


def xeus(stack: ExitStack) -> Callable[[], Any]:
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="xpython")
    manager.start_kernel()
    stack.callback(manager.shutdown_kernel, now=True)
    client = manager.client()
    client.start_channels()
    stack.callback(client.stop_channels)
    client.wait_for_ready(timeout=60)

    def call() -> str:
        seen: List[str] = []

        def output(msg: Any) -> None:
            if msg["msg_type"] == "execute_result":
                seen.append(msg["content"]["data"]["text/plain"])

        client.execute_interactive(CODE, output_hook=output, timeout=60)
        return "".join(seen)

    return call


def kernel_client(stack: ExitStack) -> Callable[[], Any]:
    from jupyter_kernel_client import JupyterKernelClient

    # A Kernel Gateway knows the scheme "token", and not "Bearer".
    token = os.environ["PEER_TOKEN"]
    client = JupyterKernelClient(server_url=os.environ["PEER_URL"], token=token, headers={"Authorization": "token " + token})
    client.start(name="python3")
    stack.callback(client.stop)
    return lambda: client.execute(CODE)["outputs"][0]["data"]["text/plain"]


# Its command opens sockets for each look at whether its kernel answers, and closes
# none: where the kernel is slow it runs out of them, and must be called again. A call
# takes as long as that takes.
AGENTNB_TRIES = 5


def agentnb(stack: ExitStack) -> Callable[[], Any]:
    project = stack.enter_context(tempfile.TemporaryDirectory())
    command = [os.path.join(os.path.dirname(sys.executable), "agentnb")]

    def run(*args: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*command, *args], cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)

    def call() -> str:
        for _ in range(AGENTNB_TRIES):
            done = run("--result-only", CODE)
            if done.returncode == 0 and done.stdout.strip():
                return done.stdout.strip()
        raise RuntimeError("agentnb ended with status %d %d times: %s" % (done.returncode, AGENTNB_TRIES, done.stderr[-500:]))

    stack.callback(run, "stop")
    return call


MODES = {
    "execnet": execnet,
    "rpyc": rpyc,
    "ipyparallel": ipyparallel,
    "pexpect": pexpect,
    "smolagents": smolagents,
    "smolagents-jupyter": smolagents_jupyter,
    "xeus-python": xeus,
    "jupyter-kernel-client": kernel_client,
    "agentnb": agentnb,
}

if __name__ == "__main__":
    created, executed = measure(int(sys.argv[2]), int(sys.argv[3]), MODES[sys.argv[1]], "2")
    print("\n" + json.dumps({"create": created, "exec": executed}))
