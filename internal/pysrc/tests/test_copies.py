"""Tests of copies of a live session."""

import os
import time
import unittest

from driver import Driver


class CopiesTest(unittest.TestCase):
    def setUp(self):
        self.session = Driver()
        self.addCleanup(self.session.close)

    def copies(self, n):
        made = self.session.copies(n)
        self.assertIsInstance(made, list, made)
        for copy in made:
            self.addCleanup(copy.close)
        return made

    def test_everything_is_there_and_nothing_is_shared(self):
        s = self.session
        s.execute("import os, threading, random\nlock = threading.Lock(); f = lambda: x; x = [1]; os.environ['COPPICE_C'] = 'c'")
        one, two = self.copies(2)
        self.assertEqual(3, len({s.pid, one.pid, two.pid}))
        for n, session in enumerate((s, one, two)):
            session.execute(f"x.append({n})")
        for n, session in enumerate((s, one, two)):
            with self.subTest(n):
                self.assertEqual(f"([1, {n}], 'c', True)", session.value("f(), os.environ['COPPICE_C'], lock.acquire()"))
                self.assertEqual(str(session.pid), session.value("os.getpid()"))
                self.assertEqual(str(session.pid), session.value("os.getpgrp()"))
        self.assertNotEqual(one.value("random.random()"), two.value("random.random()"))
        # A copy is a session: it prints, is pinged, interrupted, and copied.
        frames = one.execute("print('out'); os.system('echo child'); os.write(2, b'raw')")
        self.assertEqual("out\nchild\nraw", "".join(f.get("text", "") for f in frames))
        one.request({"type": "ping", "n": 3}, one.control)
        self.assertEqual({"type": "pong", "n": 3}, one.frame(one.control))
        one.request({"type": "execute", "id": 90, "code": "while True: pass"})
        one.request({"type": "interrupt", "n": 4, "id": 90}, one.control)
        self.assertTrue(one.cell()[-1]["interrupted"])
        (three,) = one.copies(1)
        self.addCleanup(three.close)
        self.assertEqual("[1, 1]", three.value("x"))
        self.assertEqual("[1, 2]", two.value("x"))

    def test_descriptors_of_others_are_not_there(self):
        one, two = self.copies(2)
        count = "import os; len(os.listdir('/proc/self/fd'))"
        self.assertEqual(self.session.value(count), one.value(count))
        self.assertEqual(one.value(count), two.value(count))
        one.main.close()
        one.control.close()
        deadline = time.monotonic() + 10
        while os.path.exists(f"/proc/{one.pid}") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{one.pid}"))
        self.assertEqual("2", two.value("1 + 1"))

    def test_the_session_is_not_their_parent(self):
        self.copies(1)
        frames = self.session.execute("import os\ntry: os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError: print('none')")
        self.assertEqual("none\n", frames[1]["text"])

    def test_await_works_on_both_sides(self):
        s = self.session
        s.execute("import asyncio; await asyncio.sleep(0)")
        (copy,) = self.copies(1)
        for session in (copy, s, copy, s):
            self.assertEqual("5", session.value("await asyncio.sleep(0.001, 5)"))

    def test_what_speaks_against_it(self):
        s = self.session
        s.execute("import threading, time\nstop = threading.Event()\nt = threading.Thread(target=stop.wait, name='mine'); t.start()")
        refused = s.copies(1)
        self.assertEqual(("refused", "threads"), (refused["type"], refused["name"]))
        self.assertIn("mine", refused["message"])
        s.execute("stop.set(); t.join()")
        s.execute("import _thread; l = _thread.allocate_lock(); l.acquire(); _thread.start_new_thread(l.acquire, ())")
        refused = s.copies(1)
        self.assertEqual("threads", refused["name"])
        self.assertIn("native", refused["message"])
        s.execute("import os\nl.release()\nwhile len(os.listdir('/proc/self/task')) > 2: time.sleep(0.001)")
        s.execute("import asyncio; task = asyncio.ensure_future(asyncio.sleep(100)); await asyncio.sleep(0)")
        self.assertEqual("tasks", s.copies(1)["name"])
        s.execute("task.cancel(); await asyncio.sleep(0)")
        self.assertEqual(1, len(self.copies(1)))

    def test_a_graphics_processor(self):
        s = self.session
        s.execute("import sys, tempfile\nf = tempfile.NamedTemporaryFile(prefix='nvidia')")
        self.assertEqual(1, len(self.copies(1)))
        # The file stands for the device: the list of devices is made to name it.
        s.execute("copies = sys.modules['coppice_runner.copies']\ndevices, copies._DEVICES = copies._DEVICES, (f.name,)")
        refused = s.copies(1)
        self.assertEqual(("refused", "gpu"), (refused["type"], refused["name"]))
        self.assertIn("nvidia", refused["message"])
        s.execute("f.close()")
        self.assertEqual(1, len(self.copies(1)))
        self.assertEqual("('/dev/nvidia', '/dev/kfd', '/dev/dri/')", s.value("devices"))

    def test_bad_requests(self):
        for n in (0, -1, 65, "x", None, 1.5):
            self.session.request({"type": "fork", "id": 0, "n": n})
            self.assertEqual("protocol_error", self.session.frame()["type"])
        self.session.request({"type": "fork", "id": 0})
        self.assertEqual("protocol_error", self.session.frame()["type"])

    def test_a_big_session(self):
        s = self.session
        s.execute("big = bytearray(300 << 20)")
        begin = time.monotonic()
        (copy,) = self.copies(1)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(str(300 << 20), copy.value("len(big)"))


if __name__ == "__main__":
    unittest.main()
