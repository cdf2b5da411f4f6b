"""Tests of what a session may use."""

import os
import subprocess
import unittest
from unittest import mock

from driver import Driver


class LimitsTest(unittest.TestCase):
    def session(self, **limits):
        s = Driver(limits=limits)
        self.addCleanup(lambda: s.pid and s.close())
        return s

    def exceeded(self, session, code, name):
        """Runs code that meets a limit, and returns the error frame."""
        frames = session.execute(code)
        self.assertEqual(name, frames[-1].get("limit"), frames)
        (error,) = [f for f in frames if f["type"] == "error"]
        self.assertEqual("ResourceLimitExceeded", error["name"])
        self.assertTrue(error["message"].startswith(name + ": "), error)
        self.assertEqual("2", session.value("1 + 1"))
        return error

    def test_memory(self):
        s = self.session(memory=64 << 20)
        self.assertEqual("None", str(s.value("x = bytearray(32 << 20)")))
        error = self.exceeded(s, "y = bytearray(64 << 20)", "memory")
        self.assertIn("64 MiB", error["message"])
        # Small pieces, which are still there when the cell has failed.
        self.exceeded(s, "z = []\nwhile True: z.append(bytes(1000) + b'x')", "memory")
        s.execute("del z, x")
        self.assertEqual("16", s.value("len(bytearray(16 << 20)) >> 20"))
        self.exceeded(s, "y = bytearray(128 << 20)", "memory")
        # A MemoryError that is caught is not ours.
        frames = s.execute("try: bytearray(1 << 40)\nexcept MemoryError: print('caught')")
        self.assertTrue(frames[-1]["ok"])
        self.assertNotIn("limit", frames[-1])

    def test_memory_that_is_refused_without_a_memory_error(self):
        s = self.session(memory=64 << 20)
        self.exceeded(s, "import mmap\nmmap.mmap(-1, 128 << 20)", "memory")
        self.exceeded(s, "raise ImportError('lib.so: cannot map: Cannot allocate memory')", "memory")
        # Threads, also those that have ended before what refused one is told.
        threads = "import threading\nthreading.stack_size(16 << 20)\nend = threading.Event()\n"
        self.exceeded(s, threads + "for _ in range(9): threading.Thread(target=end.wait, daemon=True).start()", "memory")
        s.execute("end.set()")
        s = self.session(memory=64 << 20)
        self.exceeded(s, threads + "try:\n    for _ in range(9): threading.Thread(target=end.wait).start()\nfinally:\n    end.set()\n    [t.join() for t in threading.enumerate() if t is not threading.current_thread() and not t.daemon]", "memory")
        # What only sounds like it, and what says nothing.
        s = self.session(memory=256 << 20)
        for code in ("raise OSError(2, 'no')", "raise RuntimeError(\"can't start new thread\")", "raise RuntimeError('no')", "raise OSError", "class E(OSError):\n    errno = args = property(lambda self: 1 / 0)\nraise E"):
            frames = s.execute(code)
            self.assertNotIn("limit", frames[-1], code)
            self.assertFalse(frames[-1]["ok"])

    def test_what_was_mapped_for_a_moment(self):
        """It is not the session's to use when its first cell begins."""
        from coppice_runner import limits

        one = limits.Limits(None)
        with mock.patch.object(limits, "_mapped", side_effect=[200 << 20, 72 << 20]), mock.patch.object(limits.Limits, "_set_memory") as was_set:
            one.apply({"memory": 64 << 20})
            one.begin()
            one.begin()
        self.assertEqual([mock.call(264 << 20), mock.call(136 << 20)], was_set.call_args_list)

    def test_cpu(self):
        s = self.session(cpu=1)
        self.exceeded(s, "while True: pass", "cpu")
        # Every cell has its own.
        self.assertEqual("499999500000", s.value("sum(range(10**6))"))
        self.exceeded(s, "while True: pass", "cpu")
        # A cell that will not hear of it ends the session.
        s.request({"type": "execute", "id": 99, "code": "while True:\n    try:\n        for _ in iter(int, 1): len('')\n    except BaseException: pass"})
        while s.frame() is not None:
            pass
        status, s.pid = s.close(), 0
        self.assertEqual(128 + 24, os.WEXITSTATUS(status))

    def test_files(self):
        s = self.session(files=20)
        error = self.exceeded(s, "fs = []\nwhile True: fs.append(open('/dev/null'))", "files")
        self.assertEqual("files: the session may have 20 files open, and 16 for itself and what it does", error["message"])
        self.assertTrue(20 <= int(s.value("len(fs)")) <= 36)

    def test_files_and_memory(self):
        """A session that can open nothing more cannot look what it has mapped."""
        s = self.session(files=20, memory=64 << 20)
        self.exceeded(s, "fs = []\nwhile True: fs.append(open('/dev/null'))", "files")
        self.exceeded(s, "y = bytearray(128 << 20)", "memory")
        self.exceeded(s, "z = []\nwhile True: z.append(bytes(1000) + b'x')", "memory")

    def test_descendants_are_found_in_two_ways(self):
        """A system that does not list children tells of parents."""
        import subprocess

        from coppice_runner import processes

        with subprocess.Popen(["sh", "-c", "sleep 100 & echo up; wait"], stdout=subprocess.PIPE, start_new_session=True) as p:
            try:
                self.assertEqual(b"up\n", p.stdout.readline())
                found = processes.descendants_of(os.getpid())
                self.assertEqual(2, len(found))
                self.assertEqual(found, processes._by_parents(os.getpid()))
            finally:
                os.killpg(p.pid, 9)

    def test_processes(self):
        for spare in (False, True):
            with self.subTest(spare=spare):
                self.processes(spare)

    def processes(self, spare):
        s = Driver(spare, limits={"processes": 3})
        self.addCleanup(lambda: s.pid and s.close())
        self.assertEqual("3", s.value("import subprocess\nps = [subprocess.Popen(['sleep', '100']) for _ in range(3)]\nlen(ps)"))
        self.exceeded(s, "ps += [subprocess.Popen(['sleep', '100']) for _ in range(3)]\nimport time\ntime.sleep(100)", "processes")
        self.assertEqual("{-9}", s.value("set(p.wait() for p in ps)"))
        # A cell that has ended before anything looked, and one that fails for another reason.
        for end in ("", "\n1 / 0"):
            self.exceeded(s, "ps = [subprocess.Popen(['sleep', '100']) for _ in range(9)]" + end, "processes")
            self.assertEqual("{-9}", s.value("set(p.wait() for p in ps)"))

    def test_what_a_cell_has_met_is_decided_once(self):
        """A look that is late changes nothing of what is told."""
        from coppice_runner import limits

        one = limits.Limits(mock.Mock(current=1))
        failed = OSError()
        self.assertIs(failed, one.settle(failed))
        one.exceeded = "processes"
        self.assertIsNone(one.met)
        self.assertIsInstance(one.settle(None), KeyboardInterrupt)
        self.assertEqual("processes", one.met)

    def test_bad_limits(self):
        for limits in ({"memory": -1}, {"memory": "1"}, {"wishes": 3}):
            with self.assertRaises(AssertionError) as caught:
                Driver(limits=limits)
            self.assertIn("failed", str(caught.exception))

    def test_no_limits(self):
        s = self.session()
        self.assertEqual("(True, True)", s.value("import resource, signal\nresource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY, signal.getsignal(signal.SIGXCPU) == signal.SIG_DFL"))

    def test_copies_have_them_too(self):
        s = self.session(memory=64 << 20, cpu=1)
        (copy,) = s.copies(1)
        self.addCleanup(copy.close)
        self.exceeded(copy, "y = bytearray(128 << 20)", "memory")
        self.exceeded(copy, "while True: pass", "cpu")


if __name__ == "__main__":
    unittest.main()
