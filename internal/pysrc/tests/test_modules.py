"""Modules of the user's: what they bring, and that none of them ends a session."""

import contextlib
import io
import sys
import time
import unittest

import sources  # noqa: F401, it is what makes the next import work

import coppice_prelude
from coppice_prelude import modules

LOOP = "while True:\n    pass\n"
STUBBORN = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n    n = globals().get('n', 0) + 1\n    if n > 2:\n        break\n"


class ModulesTest(unittest.TestCase):
    def setUp(self):
        self.ns = {}
        coppice_prelude.install(self.ns, lambda *a, **k: None, "application/x-test-status")
        modules.failed.clear()
        self.addCleanup(modules.failed.clear)

    def load(self, *sources, seconds=5):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            modules.load(self.ns, [[p, t, ""] if isinstance(t, str) else [p, "", t[0]] for p, t in sources], seconds)
        self.assertEqual("", out.getvalue(), "a module prints nothing")

    def test_what_is_public(self):
        self.load(
            ("/m/a.py", "import os\nprint('x')\n__category__ = 'Mine'\ndef greet(name): 'Greets.'; return 'hi ' + name\n_no = 1\nnumber = 2\n"),
            ("/m/b.py", "__all__ = ['_yes']\n_yes = 3\nno = 4\n"),
        )
        self.assertEqual([], modules.failed)
        self.assertEqual("hi you", self.ns["greet"]("you"))
        self.assertEqual((2, 3), (self.ns["number"], self.ns["_yes"]))
        for name in ("os", "_no", "no"):
            self.assertNotIn(name, self.ns)
        listed = {one["name"]: one for one in self.ns[coppice_prelude.DOCS]()}
        self.assertEqual({"name": "greet", "signature": "(name)", "docstring": "Greets.", "category": "Mine"}, listed["greet"])
        self.assertIn("greet", modules.installed, "it comes back after a reset")
        import coppice_modules.a

        self.assertIs(self.ns["greet"], coppice_modules.a.greet)

    def test_a_later_one_replaces(self):
        self.load(("/m/a.py", "def f(): return 1\n"), ("/m/b.py", "def f(): return 2\n"))
        self.assertEqual(2, self.ns["f"]())

    def test_bad_ones(self):
        self.load(
            ("/m/a.py", "x = = 1\n"),
            ("/m/b.py", "import sys\nsys.exit(3)\n"),
            ("/m/c.py", "def f():\n    return 1 / 0\n\nf()\n"),
            ("/m/d.py", "raise KeyboardInterrupt\n"),
            ("/m/e.py", ("it cannot be read: no",)),
            ("/m/f.py", "__all__ = ['none']\n"),
            ("/m/g.py", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n"),
            ("/m/h.py", "x = '\\x00'\n\0"),
            ("/m/z.py", "fine = True\n"),
        )
        self.assertTrue(self.ns["fine"])
        told = modules.told().split("\n")
        self.assertEqual(8, len(told), told)
        self.assertRegex(told[0], r"^/m/a.py: SyntaxError: .* \(line 1\)$")
        self.assertEqual("/m/b.py: SystemExit: 3 (line 2)", told[1])
        self.assertEqual("/m/c.py: ZeroDivisionError: division by zero (line 2)", told[2])
        self.assertEqual("/m/d.py: KeyboardInterrupt (line 1)", told[3])
        self.assertEqual("/m/e.py: it cannot be read: no", told[4])
        self.assertRegex(told[5], r"^/m/f.py: AttributeError: ")
        self.assertEqual("/m/g.py: E (line 3)", told[6])
        self.assertNotIn("coppice_modules.a", sys.modules)

    @unittest.skipIf(sys.platform == "win32", "there the start of the session is the bound")
    def test_endless_ones(self):
        began = time.monotonic()
        self.load(("/m/a.py", LOOP), ("/m/b.py", "import time\ntime.sleep(60)\n"), ("/m/c.py", STUBBORN), ("/m/z.py", "fine = 1\n"), seconds=0.2)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(1, self.ns["fine"])
        self.assertEqual(["/m/a.py: it was not loaded within 0.2 s", "/m/b.py: it was not loaded within 0.02 s"], modules.failed[:2])


if __name__ == "__main__":
    unittest.main()
