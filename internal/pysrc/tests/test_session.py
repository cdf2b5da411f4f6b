"""Tests of a session by its frames."""

import json
import os
import random
import select
import signal
import string
import time
import unittest

from driver import Driver


class SessionTest(unittest.TestCase):
    def setUp(self):
        self.session = Driver()
        self.addCleanup(self.session.close)

    def test_frames_of_a_cell(self):
        frames = self.session.execute("print('a')\n1")
        self.assertEqual(["started", "stdout", "result", "done"], [f["type"] for f in frames])
        self.assertEqual([1, 2, 3], [f["seq"] for f in frames[1:]])
        self.assertEqual({1}, {f["id"] for f in frames})
        self.assertEqual({"id", "seq", "type", "ok", "count", "seconds"}, set(frames[-1]))
        self.assertTrue(frames[-1]["ok"])
        self.assertEqual(["started", "done"], [f["type"] for f in self.session.execute("")])

    def test_requests(self):
        s = self.session
        s.request({"type": "patch", "id": 9, "env": {"COPPICE_P": "1"}})
        self.assertEqual({"type": "done", "id": 9, "ok": True}, s.frame())
        self.assertEqual("'1'", s.value("import os; os.environ['COPPICE_P']"))
        s.request({"type": "patch", "env": {"COPPICE_P": None}})
        s.frame()
        self.assertEqual("False", s.value("'COPPICE_P' in os.environ"))
        s.request({"type": "reset"})
        s.frame()
        self.assertEqual("False", s.value("'os' in globals()"))
        self.assertEqual("True", s.value("'display' in globals()"))
        s.request({"type": "patch", "cwd": "/no/such/folder"})
        self.assertEqual("protocol_error", s.frame()["type"])

    def test_control(self):
        s = self.session
        s.request({"type": "ping", "n": 4}, s.control)
        self.assertEqual({"type": "pong", "n": 4}, s.frame(s.control))
        s.request({"type": "execute", "id": 5, "code": "while True: pass"})
        self.assertEqual("started", self.first_of_loop())
        s.request({"type": "ping", "n": 5}, s.control)
        self.assertEqual({"type": "pong", "n": 5}, s.frame(s.control))
        s.request({"type": "interrupt", "n": 6, "id": 4}, s.control)
        s.frame(s.control)
        s.request({"type": "interrupt", "n": 7, "id": 5}, s.control)
        self.assertEqual({"type": "interrupting", "n": 7}, s.frame(s.control))
        done = s.cell()[-1]
        self.assertTrue(done["interrupted"])
        # An interrupt that comes before its cell is kept for it, and hits no other.
        s.request({"type": "interrupt", "n": 8, "id": 101}, s.control)
        s.frame(s.control)
        s.cells = 99
        self.assertTrue(s.execute("1")[-1]["ok"])
        self.assertTrue(s.execute("1")[-1].get("interrupted"))
        self.assertTrue(s.execute("1")[-1]["ok"])

    def first_of_loop(self):
        """A cell that prints nothing sends nothing: ask whether it runs."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with open(f"/proc/{self.session.pid}/stat") as f:
                if f.read().rpartition(")")[2].split()[0] == "R":
                    return "started"
        return "not started"

    def test_the_host_is_gone(self):
        for name, end in {
            "main": lambda s: s.main.close(),
            "control": lambda s: s.control.close(),
            "lifeline": lambda s: os.close(s.lifeline),
        }.items():
            with self.subTest(name):
                s = Driver()
                end(s)
                if name == "lifeline":
                    s.lifeline = os.open(os.devnull, os.O_RDONLY)
                status = os.waitpid(s.pid, 0)[1]
                self.assertEqual(signal.SIGKILL, os.WTERMSIG(status))
                s.main.close()
                s.control.close()
                os.close(s.lifeline)

    def test_exit_runs_exit_functions(self):
        s = self.session
        s.execute("import atexit, os\n_ = atexit.register(lambda: os.write(1, b'bye'))")
        s.request({"type": "exit"})
        self.assertIsNone(s.frame())

    def test_garbage_on_main(self):
        """Whatever comes, a line costs that line."""
        rnd = random.Random(5)
        s = self.session
        seeds = [
            b'{"type":"execute","id":1,"code":"1"}',
            b'{"type":"patch","env":{"A":"1"},"cwd":"/"}',
            b'{"type":"init","version":1}',
            b'{"type":"reset","id":3}',
        ]
        for _ in range(1500):
            line = bytearray(rnd.choice(seeds))
            for _ in range(rnd.randrange(1, 6)):
                at = rnd.randrange(len(line) + 1)
                what = rnd.randrange(3)
                if what == 0 and at < len(line):
                    line[at] = rnd.randrange(256)
                elif what == 1:
                    line[at:at] = bytes(rnd.choice(string.printable.encode()) for _ in range(rnd.randrange(5)))
                else:
                    del line[at : at + rnd.randrange(6)]
            s.send(bytes(line).replace(b"\n", b" ") + b"\n")
            s.taken()  # a session that is not read from takes no more requests
        # "exit" cannot come out of these by chance, so that it answers still.
        s.cells = 10**9
        frames = s.execute("6 * 7")
        while frames[-1].get("id") != s.cells:
            frames = s.cell()
        self.assertEqual("42", [f for f in frames if f["type"] == "result"][-1]["data"]["text/plain"])

    def test_garbage_on_control(self):
        rnd = random.Random(6)
        s = self.session
        for _ in range(500):
            s.send(bytes(rnd.choice(b'{}[]":,\\\x00\xffptypeing0123 ') for _ in range(rnd.randrange(40))) + b"\n", s.control)
            self.assertEqual("protocol_error", s.frame(s.control)["type"])
        s.send(b"x" * (16 << 20) + b"y\n", s.control)
        s.request({"type": "ping", "n": 77}, s.control)
        self.assertEqual({"type": "pong", "n": 77}, s.frame(s.control))
        for _ in range(20_000):  # the answers are not read: some are dropped, whole
            s.request({"type": "ping", "n": 78}, s.control)
        seen = 0
        while True:
            try:
                self.assertEqual({"type": "pong", "n": 78}, s.frame(s.control, 0.5))
                seen += 1
            except AssertionError as err:
                self.assertEqual("nothing came", str(err))
                break
        self.assertGreater(seen, 100)
        self.assertEqual("2", s.value("1 + 1"))

    def test_a_request_that_is_too_long(self):
        s = self.session
        s.send(b'{"type":"execute","id":1,"code":"' + b" " * (16 << 20) + b'"}\n')
        self.assertEqual({"type": "protocol_error", "id": 0, "message": "the request is longer than 16777216 bytes"}, s.frame())
        self.assertEqual("2", s.value("1 + 1"))

    def test_objects_that_fight_back(self):
        s = self.session
        s.execute(
            "import random\n"
            "class Evil(Exception):\n"
            "    def __getattribute__(self, name):\n"
            "        if random.random() < 0.3: raise random.choice([ValueError, KeyError, RecursionError, MemoryError])(name)\n"
            "        return super().__getattribute__(name)\n"
            "    def __repr__(self): return random.choice(['e', 'é\\udc80', None, 1 / 0]) if random.random() < 0.5 else print('in repr') or 'r'\n"
            "    __str__ = __repr__\n"
            "    def __eq__(self, other): raise OSError\n"
            "    def __bool__(self): raise OSError\n"
            "    def __len__(self): raise OSError\n"
            "    def __hash__(self): return random.randrange(9)\n"
            "    def _repr_mimebundle_(self, **k): return random.choice([None, 1, {'a': self}, ({}, {}, {}), ({'text/html': b'x'}, None)])\n"
            "    def _repr_html_(self): return random.choice([None, 5, 'x', self, ('y', {'k': 1})])\n"
        )
        for code in ("Evil()", "raise Evil()", "display(Evil())", "[Evil()]", "{'a': Evil()}", "print(Evil())", "raise ValueError(Evil())", "raise Evil() from Evil()", "display({'text/plain': Evil()}, raw=True)"):
            for _ in range(30):
                with self.subTest(code):
                    frames = s.execute(code)
                    json.dumps(frames)
                    self.assertIn(frames[-2]["type"] if not frames[-1]["ok"] else "ok", ("ok", "error"))
        self.assertEqual("2", s.value("1 + 1"))

    def test_code_that_does_little_but_fork_can_be_interrupted(self):
        s = self.session
        # The interrupt comes in what is registered for a fork, and Python drops what is raised there.
        s.execute("import os, time\ndef slow():\n    print('on', flush=True)\n    time.sleep(0.2)\nos.register_at_fork(before=slow)")
        s.request({"type": "execute", "id": 7, "code": "while True:\n    pid = os.fork()\n    if pid == 0: os._exit(0)\n    os.waitpid(pid, 0)"})
        while b'"text":"on' not in s.taken():
            self.assertTrue(select.select([s.main], [], [], 20)[0])
        s.request({"type": "interrupt", "n": 1, "id": 7}, s.control)
        self.assertTrue(s.cell()[-1]["interrupted"])
        s.cells = 7
        self.assertEqual("2", s.value("1 + 1"))

    def test_an_error_that_takes_for_ever_can_be_interrupted(self):
        s = self.session
        s.request({"type": "execute", "id": 1, "code": "class E(Exception):\n    def __str__(self):\n        print('asked'); \n        while True: pass\nraise E"})
        while b"asked" not in s.taken():
            self.assertTrue(select.select([s.main], [], [], 20)[0])
        # It is described twice: for its message and for its traceback.
        deadline = time.monotonic() + 20
        while b'"done"' not in s.taken() and time.monotonic() < deadline:
            s.request({"type": "interrupt", "n": 1, "id": 1}, s.control)
            select.select([s.main], [], [], 0.1)
        self.assertEqual("E", [f for f in s.cell() if f["type"] == "error"][0]["name"])
        s.cells = 1
        self.assertEqual("2", s.value("1 + 1"))

    def test_init_comes_once(self):
        s = self.session
        s.request({"type": "init", "version": 1})
        self.assertEqual("protocol_error", s.frame()["type"])
        self.assertEqual("2", s.value("1 + 1"))

    def test_text_of_all_kinds(self):
        """What is printed comes back character by character."""
        rnd = random.Random(8)
        s = self.session
        for _ in range(200):
            text = "".join(chr(rnd.choice([rnd.randrange(128), rnd.randrange(0xD800), rnd.randrange(0xE000, 0x110000)])) for _ in range(rnd.randrange(60)))
            frames = s.execute(f"print({text!r}, end='')")
            self.assertEqual(text, "".join(f["text"] for f in frames if f["type"] == "stdout"))


if __name__ == "__main__":
    unittest.main()
