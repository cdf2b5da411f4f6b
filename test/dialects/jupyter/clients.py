"""What clients of Jupyter do with kernels of coppice: jupyter_kernel_client over the WebSocket,
nbconvert and papermill with the kernel of the package coppice-kernel."""

import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from jupyter_kernel_client import JupyterKernelClient

PATIENCE = 120
URL, TOKEN = os.environ["JUPYTER_URL"], os.environ["JUPYTER_TOKEN_OF_SERVER"]


def kernels():
    """The ids of the server's kernels."""
    with urllib.request.urlopen(urllib.request.Request(URL + "/api/kernels", headers={"Authorization": "token " + TOKEN})) as answer:
        return {k["id"] for k in json.load(answer)}


def eventually(what):
    over = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > over:
            raise AssertionError("it did not come about")
        time.sleep(0.05)


class Client(unittest.TestCase):
    """jupyter_kernel_client."""

    def setUp(self):
        self.kernel = self.enterContext(JupyterKernelClient(server_url=URL, token=TOKEN))

    def test_execute(self):
        got = self.kernel.execute("x = 40; print('hi'); x + 2")
        self.assertEqual((got["status"], got["execution_count"]), ("ok", 1))
        self.assertEqual([o["output_type"] for o in got["outputs"]], ["stream", "execute_result"])
        self.assertEqual(got["outputs"][1]["data"], {"text/plain": "42"})
        self.assertEqual(self.kernel.execute("1/0")["status"], "error")

    def test_variables(self):
        for value in (5, "ä\n'\"\\", [1, {"a": (2, None)}], {"x": b"\0"}):
            self.kernel.set_variable("v", value)
            self.assertEqual(self.kernel.get_variable("v"), value)
        self.kernel.execute("w = v")
        self.assertEqual(self.kernel.get_variable("w"), {"x": b"\0"})
        listed = {v["name"]: tuple(v["type"]) for v in self.kernel.list_variables()}
        self.assertEqual((listed["v"], listed["w"]), (("builtins", "dict"), ("builtins", "dict")))
        data, _ = self.kernel.get_variable_mimetypes("w")
        self.assertEqual(data["text/plain"], "{'x': b'\\x00'}")
        with self.assertRaises(RuntimeError):
            self.kernel.get_variable("nothing")

    def test_interrupt_and_restart(self):
        self.kernel.execute("x = 1")
        timer = threading.Timer(0.5, self.kernel.interrupt)
        timer.start()
        got = self.kernel.execute("import time\nwhile True: time.sleep(.01)", timeout=PATIENCE)
        timer.join()
        self.assertEqual(got["outputs"][-1]["ename"], "KeyboardInterrupt")
        self.assertEqual(self.kernel.execute("x")["outputs"][0]["data"], {"text/plain": "1"})
        self.kernel.restart()
        self.assertEqual(self.kernel.execute("x")["outputs"][0]["ename"], "NameError")


class Kernel(unittest.TestCase):
    """The kernel of coppice-kernel, by jupyter_client."""

    def start(self, **more):
        before = kernels()
        km, kc = start_new_kernel(kernel_name="coppice", startup_timeout=PATIENCE, **more)

        def end():
            kc.stop_channels()
            if km.has_kernel:
                km.shutdown_kernel()

        self.addCleanup(end)
        return km, kc, kernels() - before

    def run_cell(self, kc, code, **more):
        messages = []
        reply = kc.execute_interactive(code, timeout=PATIENCE, output_hook=messages.append, **more)
        return reply["content"], [(m["header"]["msg_type"], m["content"]) for m in messages if m["header"]["msg_type"] not in ("status", "execute_input")]

    def replies(self, kc, *ids):
        """The contents of the replies to requests, in the order in which they come. Others are
        left out: a client that starts asks more than once who the kernel is."""
        got = {}
        while len(got) < len(ids):
            m = kc.get_shell_msg(timeout=PATIENCE)
            if m["parent_header"]["msg_id"] in ids:
                got[m["parent_header"]["msg_id"]] = m["content"]
        return got

    def test_requests(self):
        _, kc, _ = self.start()
        reply, shown = self.run_cell(kc, "x = 1; x + 1", silent=True)
        self.assertEqual((reply["status"], reply["execution_count"], shown), ("ok", 0, []))
        reply, _ = self.run_cell(kc, "x", store_history=False, user_expressions={"a": "x * 7", "b": "nix"})
        self.assertEqual(reply["execution_count"], 0)
        self.assertEqual(reply["user_expressions"]["a"]["data"], {"text/plain": "7"})
        self.assertEqual(reply["user_expressions"]["b"]["ename"], "NameError")
        reply, shown = self.run_cell(kc, "input('who? ')", allow_stdin=True, stdin_hook=lambda m: kc.input("Ada"))
        self.assertEqual((reply["execution_count"], shown[0][1]["data"]), (1, {"text/plain": "'Ada'"}))
        ids = [kc.execute(c, stop_on_error=s) for c, s in (("import time; time.sleep(.3); 1/0", True), ("2", True))]
        self.assertEqual([(i, c["status"]) for i, c in self.replies(kc, *ids).items()], [*zip(ids, ("error", "aborted"))])
        ids = [kc.execute(c, stop_on_error=False) for c in ("import time; time.sleep(.3); 1/0", "2")]
        self.assertEqual([(i, c["status"]) for i, c in self.replies(kc, *ids).items()], [*zip(ids, ("error", "ok"))])
        ident = kc.comm_info()
        self.assertEqual(self.replies(kc, ident)[ident], {"status": "ok", "comms": {}})

    def test_interrupt_restart_and_death(self):
        km, kc, ids = self.start()
        self.assertEqual(len(ids), 1, "the session is in the server that runs")
        ident = kc.execute("import time\nprint('go', flush=True)\nwhile True: time.sleep(.01)")
        while kc.get_iopub_msg(timeout=PATIENCE)["header"]["msg_type"] != "stream":
            pass
        km.interrupt_kernel()
        self.assertEqual(self.replies(kc, ident)[ident]["ename"], "KeyboardInterrupt")
        self.run_cell(kc, "x = 1")
        km.restart_kernel()
        kc.wait_for_ready(timeout=PATIENCE)
        self.assertEqual(self.run_cell(kc, "x")[0]["ename"], "NameError")
        eventually(lambda: not ids & kernels())
        reply, _ = self.run_cell(kc, "import os; os._exit(3)")
        self.assertEqual(reply["ename"], "KernelDied")
        self.assertEqual(self.run_cell(kc, "1")[0]["status"], "ok", "the server has started the session again")
        km.shutdown_kernel(now=True)
        eventually(lambda: kernels() == set())

    def test_two_clients(self):
        km, kc, _ = self.start()
        other = BlockingKernelClient(connection_file=km.connection_file)  # as jupyter console --existing
        other.load_connection_file()
        other.start_channels()
        self.addCleanup(other.stop_channels)
        other.wait_for_ready(timeout=PATIENCE)
        self.run_cell(other, "x = 5")
        self.assertEqual(self.run_cell(kc, "x")[1][-1][1]["data"], {"text/plain": "5"})
        with self.assertRaises(queue.Empty):  # replies are for whoever asked
            while kc.get_shell_msg(timeout=0.2)["header"]["msg_type"] == "kernel_info_reply":
                pass
            self.fail("a reply went to another client")

    def test_a_private_server(self):
        with tempfile.TemporaryDirectory() as cwd:
            km, kc, ids = self.start(env={**os.environ, "COPPICE_KERNEL_SERVER": "private"}, cwd=cwd)
            self.assertEqual(ids, set())
            got = self.run_cell(kc, "import os, sys; [os.getcwd(), sys.prefix, os.getppid()]")[1][0][1]["data"]["text/plain"]
            where, prefix, _ = eval(got)
            self.assertEqual((os.path.realpath(where), prefix), (os.path.realpath(cwd), sys.prefix))
            children = pathlib.Path(f"/proc/{km.provisioner.process.pid}/task/{km.provisioner.process.pid}/children").read_text().split()
            self.assertEqual(len(children), 1)
            os.kill(km.provisioner.process.pid, signal.SIGKILL)
            eventually(lambda: not os.path.exists(f"/proc/{children[0]}"))

    def test_no_server(self):
        with tempfile.TemporaryDirectory() as home:
            env = {**os.environ, "COPPICE_HOME": home, "COPPICE": "/no/such/coppice"}
            with self.assertRaisesRegex(RuntimeError, "no command coppice"):
                start_new_kernel(kernel_name="coppice", env=env)
            with self.assertRaisesRegex(RuntimeError, "no coppice serve --jupyter runs"):
                start_new_kernel(kernel_name="coppice", env={**env, "COPPICE_KERNEL_SERVER": "running"})


class Notebooks(unittest.TestCase):
    """nbconvert and papermill."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        cells = [nbformat.v4.new_code_cell("n = 20", metadata={"tags": ["parameters"]}), nbformat.v4.new_code_cell("import os\nprint(os.getcwd())\n2 * n + 2")]
        book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "coppice", "display_name": "Python 3 (Coppice)", "language": "python"}})
        nbformat.write(book, self.folder / "in.ipynb")

    def check(self, want):
        cell = nbformat.read(self.folder / "out.ipynb", 4).cells[-1]
        self.assertEqual(cell.outputs[0].text.strip(), os.path.realpath(self.folder))
        self.assertEqual(cell.outputs[1].data, {"text/plain": want})
        self.assertEqual(kernels(), set())

    def run_tool(self, *command):
        p = subprocess.run([sys.executable, "-m", *command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, 0, p.stdout)

    def test_nbconvert(self):
        self.run_tool("nbconvert", "--execute", "--to", "notebook", "--output", "out.ipynb", "in.ipynb")
        self.check("42")

    def test_papermill(self):
        self.run_tool("papermill", "in.ipynb", "out.ipynb", "-k", "coppice", "-p", "n", "4", "--cwd", ".", "--no-progress-bar")
        self.check("10")


