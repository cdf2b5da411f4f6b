"""Tests of a session whose code takes away what the session stands on: it goes on
answering, and later cells can be interrupted."""

import os
import resource
import time
import unittest

from driver import Driver  # it makes the next import work

from coppice_runner import forkserver

LOOP = "print('begun')\nwhile True: pass"
SLEEP = "import time\nprint('begun')\ntime.sleep(60)"


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.session = Driver()
        self.addCleanup(self.session.close)

    def interrupted(self, code):
        """Runs a cell that says when it has begun, and interrupts it."""
        s = self.session
        s.cells += 1
        s.request({"type": "execute", "id": s.cells, "code": code})
        while b"begun" not in s.taken():
            time.sleep(0.005)
        s.request({"type": "interrupt", "n": 1, "id": s.cells}, s.control)
        done = s.cell()[-1]
        self.assertTrue(done.get("interrupted"), done)

    def works(self):
        s = self.session
        self.assertEqual("42", s.value("6 * 7"))
        self.interrupted(LOOP)
        self.interrupted(SLEEP)
        self.assertEqual(["hi\n"], [f["text"] for f in s.execute("import os\n_ = os.system('echo hi')") if f["type"] == "stdout"])

    def test_signals(self):
        for code in (
            "import signal\n_ = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})",
            "_ = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
            "import ctypes\n_ = ctypes.CDLL(None).signal(2, 1)",
            "_ = signal.signal(signal.SIGINT, signal.SIG_IGN)",
            "_ = signal.signal(signal.SIGINT, lambda *_: None)",
            "import sys\nsys.setswitchinterval(100)",
        ):
            with self.subTest(code):
                self.assertTrue(self.session.execute(code)[-1]["ok"])
                self.works()
        # What has no system call to end is interrupted in the cell that blocks the
        # signal, too.
        self.interrupted("signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n" + LOOP)

    def test_descriptors(self):
        for code in ("import os\nos.closerange(0, 3)", "os.close(1)", "os.close(2)\nos.close(1)"):
            with self.subTest(code):
                self.session.execute(code)
                self.works()
        # What the code has put there stays there.
        s = self.session
        s.execute("import tempfile\nf = tempfile.TemporaryFile()\n_ = os.dup2(f.fileno(), 1)")
        s.execute("_ = os.system('echo hidden')")
        self.assertEqual("b'hidden\\n'", s.value("os.pread(f.fileno(), 100, 0)"))

    def test_handlers_that_raise(self):
        """A timer that ends a loop of prints: no frame is broken by it."""
        s = self.session
        frames = s.execute(
            "import signal\n"
            "class Late(Exception): pass\n"
            "def handler(*_): raise Late\n"
            "_ = signal.signal(signal.SIGALRM, handler)\n"
            "times = 0\n"
            "for _ in range(40):\n"
            "    try:\n"
            "        signal.setitimer(signal.ITIMER_REAL, 0.005)\n"
            "        while True: print('x' * 100)\n"
            "    except Late:\n"
            "        times += 1\n"
            "times"
        )
        self.assertEqual("40", frames[-2]["data"]["text/plain"])
        self.assertEqual(list(range(1, len(frames))), [f["seq"] for f in frames[1:]])
        self.assertEqual({"x"}, set("".join(f["text"] for f in frames if f["type"] == "stdout").replace("\n", "")))
        self.assertEqual("True", s.value("signal.getsignal(signal.SIGALRM) is handler"))
        self.assertEqual("True", s.value("signal.signal(signal.SIGALRM, handler) is handler"))

    def test_handlers_that_raise_between_cells(self):
        s = self.session
        s.execute("import signal\ndef handler(*_): raise OSError('tick')\n_ = signal.signal(signal.SIGALRM, handler)\n_ = signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)")
        told = ""
        deadline = time.monotonic() + 20
        while "while no code of a cell ran" not in told and time.monotonic() < deadline:
            time.sleep(0.01)
            told += "".join(f["text"] for f in s.execute("") if f["type"] == "stderr")
        self.assertIn("OSError: tick", told)
        while not s.execute("signal.setitimer(signal.ITIMER_REAL, 0)")[-1]["ok"]:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual("42", s.value("6 * 7"))

    def test_builtins(self):
        for code in (
            *(f"import builtins\nbuiltins.{name} = None" for name in ("len", "isinstance", "str", "bytes", "type", "getattr", "open", "BaseException")),
            "import builtins\nvars(builtins).clear()",
            "import sys\nfor name in ('os', 'json', 'threading', 'traceback', 'linecache', 'signal'): sys.modules[name] = None",
            "import json, threading\njson.loads = threading.get_ident = None",
        ):
            with self.subTest(code):
                s = Driver()
                try:
                    self.assertTrue(s.execute(code)[-1]["ok"])
                    self.assertEqual("42", s.value("6 * 7"))
                    self.assertEqual("ZeroDivisionError", [f for f in s.execute("1 / 0") if f["type"] == "error"][0]["name"])
                    s.request({"type": "reset", "id": 9})
                    frame = s.frame()
                    self.assertEqual(("done", True), (frame["type"], frame["ok"]))
                    self.assertEqual("[2, 0]", s.value("[len('ab'), len('')]"))
                finally:
                    s.close()

    def test_a_replaced_builtin_stays_replaced(self):
        s = self.session
        s.execute("import builtins\nsaid = []\nbuiltins.print = lambda *a: said.append(a)")
        s.execute("print('x')")
        self.assertEqual("[('x',)]", s.value("said"))

    def test_hooks(self):
        s = self.session
        s.execute("import sys\ndef hook(event, args):\n    if event == 'open': raise RuntimeError('no')\nsys.addaudithook(hook)")
        self.assertEqual("42", s.value("6 * 7"))
        s.request({"type": "interrupt", "n": 3, "id": 999}, s.control)
        self.interrupted(LOOP)

    def test_numbers_beyond_measure(self):
        s = self.session
        for line in (b'{"type":"interrupt","n":1,"id":1E999}', b'{"type":"input","request":"1","idle":1' + b"0" * 400 + b"}"):
            s.send(line + b"\n", s.control)
            self.assertEqual("protocol_error", s.frame(s.control)["type"])
        s.send(b'{"type":"execute","id":1E999,"code":"1"}\n')
        self.assertEqual("protocol_error", s.frame()["type"])
        self.assertEqual("42", s.value("6 * 7"))

    def test_a_forked_process_has_its_handlers_as_ever(self):
        code = "import os, signal\npid = os.fork()\nif not pid:\n    def handler(*_): raise SystemExit(7)\n    signal.signal(signal.SIGALRM, handler)\n    signal.setitimer(signal.ITIMER_REAL, 0.01)\n    while True: pass\nos.waitpid(pid, 0)[1] >> 8"
        self.assertEqual("7", self.session.value(code))

    def test_a_forked_process_is_interrupted_when_it_has_let_go(self):
        """What comes while it lets go of the session is met by the code after its fork."""
        code = """
import os, sys, signal, threading
def sockets():
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd) and os.readlink("/proc/self/fd/" + fd).startswith("socket")]
def once(frame, event, _):
    if me != os.getpid() and event == "call" and frame.f_code.co_name == "close_descriptors":
        sys.setprofile(None)
        send()
def child():
    sys.setprofile(once)
    try:
        pid = fork()
    except caught:
        os._exit(7 if me != os.getpid() and not sockets() else 8)
    sys.setprofile(None)
    if not pid: os._exit(9)
    return os.waitpid(pid, 0)[1] >> 8
me, fork, caught, send = os.getpid(), os.fork, KeyboardInterrupt, lambda: os.kill(os.getpid(), signal.SIGINT)
assert sockets()
one = child()
class Late(Exception): pass
def late(*_): raise Late
before = signal.signal(signal.SIGUSR1, late)
caught, send = Late, lambda: os.kill(os.getpid(), signal.SIGUSR1)
two = child()
signal.signal(signal.SIGUSR1, before)
signal.signal(signal.SIGINT, late)
send = lambda: os.kill(os.getpid(), signal.SIGINT)
three = child()
signal.signal(signal.SIGINT, signal.SIG_IGN)
four = child()
one, two, three, four
"""
        self.assertEqual("(7, 7, 7, 9)", self.session.value(code))
        # A thread forks without this package between: it lets go all the same.
        code = "found = []\ndef run():\n    pid = os.fork()\n    if not pid: os._exit(len(sockets()))\n    found.append(os.waitpid(pid, 0)[1])\nt = threading.Thread(target=run)\nt.start()\nt.join()\nfound"
        self.assertEqual("[0]", self.session.value(code))
        self.assertEqual("2", self.session.value("1 + 1"))

    def test_few_descriptors(self):
        """Where the system allows few, a fork server keeps those of its children
        below that number."""
        for limit, want in ((20000, 64), (64, 32), (30, 24)):
            with self.subTest(limit):
                pid = os.fork()
                if pid == 0:
                    code = 99
                    try:
                        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
                        code = forkserver._kept_from()
                    finally:
                        os._exit(code)
                self.assertEqual(want, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    unittest.main()
