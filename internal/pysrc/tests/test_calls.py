"""Tests of a session's calls of the host, by their frames."""

import time
import unittest

from driver import Driver


class CallsTest(unittest.TestCase):
    def setUp(self):
        self.session = Driver()
        self.addCleanup(self.session.close)

    def begin(self, code):
        self.session.cells += 1
        self.session.request({"type": "execute", "id": self.session.cells, "code": code})

    def call(self):
        """Returns the next call of the running cell."""
        while True:
            frame = self.session.frame()
            self.assertIsNotNone(frame)
            if frame["type"] == "host_call":
                return frame
            self.assertNotIn(frame["type"], ("done", "error"), frame)

    def answer(self, number, **reply):
        self.session.request({"type": "host_result", "call": number, **reply}, self.session.control)

    def ends(self):
        """Returns the frames of the end of the cell by their type."""
        return {f["type"]: f for f in self.session.cell()}

    def test_a_call(self):
        self.begin("tool.f(a=[1, 'é'])")
        call = self.call()
        self.assertEqual(("tool", "f", {"a": [1, "é"]}), (call["kind"], call["name"], call["args"]))
        self.answer(call["call"], ok=True, value={"b": None})
        self.assertEqual("{'b': None}", self.ends()["result"]["data"]["text/plain"])

    def test_answers_find_their_calls(self):
        self.begin("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(5) as pool:\n    got = list(pool.map(lambda n: tool.f(n=n), range(5)))\ngot")
        calls = [self.call() for _ in range(5)]
        self.answer(max(c["call"] for c in calls) + 1, ok=True, value="for nobody")
        for call in reversed(calls):
            self.answer(call["call"], ok=True, value=call["args"]["n"] * 10)
            self.answer(call["call"], ok=True, value="a second answer")
        self.assertEqual("[0, 10, 20, 30, 40]", self.ends()["result"]["data"]["text/plain"])

    def test_an_interrupt_gives_the_call_up(self):
        self.begin("tool.f()")
        call = self.call()
        self.session.request({"type": "interrupt", "n": 1, "id": self.session.cells}, self.session.control)
        ended = self.ends()
        self.assertTrue(ended["done"]["interrupted"])
        self.assertEqual(call["call"], ended["host_cancel"]["call"])
        self.answer(call["call"], ok=True, value="too late")
        self.assertEqual("2", self.session.value("1 + 1"))

    def test_an_interrupt_that_is_caught(self):
        self.begin("try: tool.f()\nexcept KeyboardInterrupt: pass\ntool.g()")
        self.call()
        self.session.request({"type": "interrupt", "n": 1, "id": self.session.cells}, self.session.control)
        call = self.call()
        self.assertEqual("g", call["name"])
        self.answer(call["call"], ok=True, value=7)
        self.assertEqual("7", self.ends()["result"]["data"]["text/plain"])

    def test_a_thread_outlives_its_cell(self):
        self.begin("import threading\nhow = []\ndef later():\n    try: tool.f()\n    except Exception as e: how.append(e.error_type)\nt = threading.Thread(target=later); t.start()\ntool.g()")
        calls = {c["name"]: c["call"] for c in (self.call(), self.call())}
        self.answer(calls["g"], ok=True)
        self.assertTrue(self.ends()["done"]["ok"])
        self.assertEqual("['CellEnded']", self.session.value("t.join(); how"))

    def test_between_cells_nobody_answers(self):
        self.session.execute("import threading, time\nhow, go = [], threading.Event()\ndef later():\n    go.wait()\n    time.sleep(0.2)\n    try: tool.f()\n    except Exception as e: how.append(str(e))\nt = threading.Thread(target=later); t.start(); go.set()")
        deadline = time.monotonic() + 30
        while self.session.value("time.sleep(0); t.is_alive()") == "True":
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.3)
        self.assertIn(self.session.value("how[0]"), ("'f: no cell is running, and the host answers only while one does'", "'f: the cell that made the call has ended'"))

    def test_a_process_that_the_cell_forked(self):
        frames = self.session.execute(
            "import os\npid = os.fork()\nif pid == 0:\n    try: tool.f()\n    except Exception as e: os._exit(3 if e.error_type == 'CellEnded' else 4)\n    os._exit(5)\nos.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        )
        self.assertEqual(["3"], [f["data"]["text/plain"] for f in frames if f["type"] == "result"])


if __name__ == "__main__":
    unittest.main()
