# What the provisioner of forks.py decides about its zygotes. The first argument is the
# file itself.
import asyncio
import importlib.util
import os
import sys
import time
import unittest

spec = importlib.util.spec_from_file_location("forks", sys.argv.pop(1))
forks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(forks)


class ChanceTest(unittest.TestCase):
    def look(self, waits, since):
        """What counts of one look, some seconds after the last one."""
        c = forks.Chance(lambda: set())
        c.waited, c.waits = waits[0], lambda: waits[1]
        c.last -= since
        return c.look()

    def test_silence_counts(self):
        self.assertAlmostEqual(self.look([{1: 5.0}, {1: 5.0}], 0.08), 0.08, delta=0.02)

    def test_waiting_for_a_processor_does_not(self):
        self.assertEqual(self.look([{1: 5.0}, {1: 9.0}], 4), 0)

    def test_waiting_of_one_that_is_new_does_not(self):
        self.assertEqual(self.look([{}, {2: 3.0}], 3), 0)

    def test_what_this_process_did_not_see_does_not(self):
        self.assertLessEqual(self.look([{1: 5.0}, {1: 5.0}], 200), 2 * forks.Chance.LOOK)

    def test_a_process_that_has_ended(self):
        c = forks.Chance(lambda: {2**22 + 1})
        time.sleep(c.LOOK)
        self.assertGreater(c.look(), 0)

    @unittest.skipUnless(os.path.exists("/proc/self/schedstat"), "the system does not tell")
    def test_what_the_system_tells(self):
        self.assertIn(os.getpid(), forks.Chance(lambda: {os.getpid()}).waited)


class AdoptionTest(unittest.TestCase):
    def test_what_failed_is_tried_again(self):
        a, calls, refuses = forks.Adoption(), [], [True, True, False]

        def prctl(what, on, *rest):
            calls.append(on)
            return -1 if on and refuses.pop(0) else 0

        a.prctl = prctl
        for _ in range(2):
            with self.assertRaises(forks.Refused), a.window(set()):
                self.fail("nothing adopts")
            self.assertEqual(a.users, 0)
        with a.window(set()), a.window(set()):
            self.assertEqual(a.users, 2)
        self.assertEqual((a.users, calls), (0, [1, 1, 1, 0]))


class ZygoteTest(unittest.TestCase):
    def zygote(self, *lives):
        """A zygote whose lives are these programs, one after the other."""
        lives = list(lives)

        class Fake(forks.Zygote):
            begun = 0

            def begin(self):
                self.begun += 1
                self.spec["argv"] = [sys.executable, "-c", lives.pop(0), "{connection_file}"]
                super().begin()

        forks.expected = lambda: ({"argv": ["", "", "", "{connection_file}"]}, {})
        z = Fake()
        self.addCleanup(z.end)
        return z

    READY = "import os, time; os.write(0, b'ready'); time.sleep(60)"

    def refused(self, z):
        with self.assertRaises(forks.Refused) as e:
            asyncio.run(z.available({}))
        return str(e.exception)

    def test_it_is_begun_again_after_a_while(self):
        z = self.zygote("", "", self.READY)
        self.assertIn("ends before it is ready", self.refused(z))
        self.assertIn("ends before it is ready", self.refused(z))
        self.assertEqual(z.begun, 2)
        z.rest = 0
        asyncio.run(z.available({}))
        self.assertEqual((z.begun, z.failed), (3, 0))

    def test_the_while_grows(self):
        z = self.zygote("", "", "", "")
        rests = []
        for _ in range(3):
            z.rest = 0
            self.refused(z)
            rests.append(z.rest - time.monotonic())
        for rest, want in zip(rests, (15, 30, 60)):
            self.assertLessEqual(rest, want)
            self.assertGreater(rest, want - 10)

    def test_what_it_says_itself_is_the_end(self):
        z = self.zygote("import os; os.write(0, b'it cannot')")
        self.assertEqual(self.refused(z), "it cannot")
        self.assertEqual(self.refused(z), "it cannot")
        self.assertEqual(z.begun, 1)

    def test_one_that_is_slow_is_waited_for(self):
        z = self.zygote("import time; time.sleep(60)")
        z.chance.passed = forks.READY + 1
        self.assertIn("not ready", self.refused(z))
        self.assertEqual(z.begun, 1, "it may still come")

    def test_one_that_cannot_be_started(self):
        z = self.zygote("", self.READY)
        z.failed, start = forks.ATTEMPTS, forks.subprocess.Popen

        def fails(*args, **kwargs):
            raise OSError("no processes")

        forks.subprocess.Popen = fails
        try:
            z.begin()
        finally:
            forks.subprocess.Popen = start
        self.assertIn("no processes", self.refused(z))


if __name__ == "__main__":
    unittest.main()
