"""Tests of cells whose text comes again: their code is not compiled again, and nobody can tell."""

import random
import unittest
import warnings

from driver import Driver

from coppice_runner.source import Compiler, _silent


class AgainTest(unittest.TestCase):
    def setUp(self):
        self.session = Driver()
        self.addCleanup(self.session.close)

    def frames(self, code, kind, times=4):
        """Runs a cell several times and returns its frames of a kind."""
        return [[f for f in self.session.execute(code) if f["type"] == kind] for _ in range(times)]

    def test_tracebacks_name_the_cell_that_ran(self):
        code = "def f(n):\n    return [1 / x for x in range(n)]\nf(3)"
        for (error,) in self.frames(code, "error"):
            text = "\n".join(error["traceback"])
            self.assertIn(f'File "<cell {self.last(error)}>", line 2', text)
            self.assertIn("return [1 / x for x in range(n)]", text)
            self.assertEqual(f"<cell {self.last(error)}>", error["place"]["filename"])
        for (error,) in self.frames("(lambda: 1 / 0)()", "error"):
            self.assertIn(f'File "<cell {self.last(error)}>", line 1, in <lambda>\n    (lambda: 1 / 0)()', "\n".join(error["traceback"]))

    def last(self, frame):
        return frame["id"]

    def test_functions_know_their_source(self):
        for _ in range(4):
            self.session.execute("def g():\n    return 1")
            self.assertEqual("'def g():\\n    return 1\\n'", self.session.value("__import__('inspect').getsource(g)"))

    def test_warnings_come_each_time(self):
        for code in ("1 is 1", "x = 1 is not 2", "'\\d'", "assert (1, 'x')", "f = lambda: (1, 2)(3) if False else 0", "f = lambda: [1]['a'] if False else 0", "0x1for x in ()"):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                try:
                    compile(code, "c", "exec")
                except SyntaxError:
                    continue
            if told:
                for found in self.frames("import warnings\nwarnings.simplefilter('always')", "stderr", 1) + self.frames(code, "stderr"):
                    if found:
                        self.assertIn("Warning", found[0]["text"], code)
                self.assertEqual(4, sum(map(len, self.frames(code, "stderr"))), code)

    def test_of_what_is_said_something_is_not_silent(self):
        parts = ["1", "'a'", "x", "f", "None", "True", "...", "1.", ".5", "(", ")", "[", "]", "{", "}", ":", ",", " ", " is ", " not ", "==", "\n", "assert ", "if ", "else", "# c\n", "f'{x}'", "lambda: ", "0", "é", "\\", "+", "=", "in "]
        draw = random.Random(7)
        told = 0
        for _ in range(20_000):
            text = "f = lambda: " + "".join(draw.choice(parts) for _ in range(draw.randint(1, 9)))
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                try:
                    compile(text, "c", "exec")
                except (SyntaxError, ValueError, OverflowError):
                    continue
            if found:
                told += 1
                self.assertFalse(_silent(text), text)
        self.assertGreater(told, 10)
        for text in ("1+1", "x = 1", "n += 1", "print(x)", "x[0]", "[1, 2]", "f(\n(1))", "a.b(c)[d]"):
            self.assertTrue(_silent(text), text)

    def test_futures_hold(self):
        code = "def f(a: unknown): pass\nf.__annotations__['a']"
        self.assertEqual(["NameError"] * 3, [e["name"] for (e,) in self.frames(code, "error", 3)])
        self.session.execute("from __future__ import annotations")
        for _ in range(4):
            self.assertEqual("'unknown'", self.session.value(code))

    def test_values(self):
        s = self.session
        for n in range(5):
            self.assertEqual(str(n), s.value(f"x = {n}") or s.value("x"))
            self.assertEqual("None", s.value("str(None)").strip("'"))
            s.execute("import asyncio\nawait asyncio.sleep(0)\ny = 7")
            self.assertEqual("7", s.value("await asyncio.sleep(0, y)"))
            self.assertIsNone(s.value("x;"))
            self.assertEqual("3", s.value("%%time\n1 + 2"))
        self.assertEqual("'%s'" % ("7" * 1200), s.value("'7' * 1200"))
        self.assertEqual("7" * 1200, s.value("int('7' * 1200)"))

    def test_it_is_bounded(self):
        c = Compiler()
        for n in range(1000):
            c.cell(str(n % 40), "<cell 1>")
        self.assertEqual((32, 40), (len(c._kept), len(c._seen)))
        for n in range(1000):
            c.cell(f"x{n} = 1", "<cell 1>")
        self.assertEqual((32, 128), (len(c._kept), len(c._seen)))
        c = Compiler()
        for n in range(5):
            self.assertEqual(f"<cell {n}>", c.cell("lambda: 1", f"<cell {n}>")[1].co_consts[0].co_filename)
            c.cell("x = '" + "1" * 5000 + "'", "<cell 1>")
        self.assertEqual(1, len(c._kept))


if __name__ == "__main__":
    unittest.main()
