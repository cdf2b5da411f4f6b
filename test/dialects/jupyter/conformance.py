"""jupyter_kernel_test, the suite by which kernels are held to Jupyter's protocol, with all that
it can look at: over the WebSocket of coppice serve --jupyter, by jupyter_kernel_client, and over
ZeroMQ, by jupyter_client with the kernel of the package coppice-kernel."""

import os

import jupyter_kernel_test
from jupyter_kernel_test import ensure_sync
from jupyter_client.manager import start_new_kernel
from jupyter_kernel_client.manager import KernelHttpManager

PATIENCE = 120  # seconds; the suite itself gives a message a tenth of one


class Samples(jupyter_kernel_test.KernelTests):
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = [
        {"text": "zi", "matches": {"zip"}},
        {"text": "x = str.startsw", "matches": {"str.startswith"}},
    ]
    complete_code_samples = ["1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n", "%matplotlib inline", "await f()"]
    incomplete_code_samples = ["print('''hello", "def f(x):\n  x*2", "x = [1,", "for i in x:"]
    invalid_code_samples = ["import = 7q", "1 +"]
    code_page_something = "zip?"
    code_generate_error = "raise ValueError"
    code_execute_result = [
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    ]
    code_display_data = [
        {"code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))", "mime": "text/html"},
        {"code": "from IPython.display import Math, display; display(Math('\\\\frac{1}{2}'))", "mime": "text/latex"},
        {"code": "display({'image/png': b'x'}, raw=True)", "mime": "image/png"},
    ]
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"

    @classmethod
    def prepare(cls):
        """Gives messages the time that a busy machine takes, where they have to come."""
        cls.patient, get = False, ensure_sync(cls.kc.iopub_channel.get_msg)
        cls.kc.iopub_channel.get_msg = lambda timeout=None: get(timeout=PATIENCE if cls.patient else timeout)

    def execute_helper(self, *args, **more):
        type(self).patient = True
        try:
            return super().execute_helper(*args, **more)
        finally:
            type(self).patient = False


class OverTheWebSocket(Samples):
    @classmethod
    def setUpClass(cls):
        cls.km = KernelHttpManager(os.environ["JUPYTER_URL"], os.environ["JUPYTER_TOKEN_OF_SERVER"])
        cls.km.start_kernel("python3")
        cls.kc = cls.km.client
        cls.kc.start_channels()
        cls.kc.wait_for_ready(timeout=PATIENCE)
        cls.prepare()

    @classmethod
    def tearDownClass(cls):
        cls.kc.stop_channels()
        cls.km.shutdown_kernel(now=True)


class OverZeroMQ(Samples):
    kernel_name = "coppice"

    @classmethod
    def setUpClass(cls):
        cls.km, cls.kc = start_new_kernel(kernel_name=cls.kernel_name, startup_timeout=PATIENCE)
        cls.prepare()


del Samples  # it is no suite of its own
