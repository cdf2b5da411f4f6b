"""Tests of the magics' syntax."""

import ast
import pathlib
import random
import sysconfig
import unittest

import sources  # noqa: F401, it is what makes the next import work
from coppice_runner.magics import Lexer, transform

CALL = "__coppice__."


class Transform(unittest.TestCase):
    def check(self, text, want):
        got = transform(text)
        self.assertEqual(want, got)
        if got is not None:
            ast.parse(got)

    def test_lines(self):
        for text, want in {
            "%pwd": CALL + "line('pwd', '')\n",
            "%cd  a b ": CALL + "line('cd', 'a b')\n",
            "!ls -l": CALL + "shell('ls -l')\n",
            "!!ls": CALL + "capture('ls')\n",
            "x = %pwd": "x = " + CALL + "line('pwd', '')\n",
            "x=!ls | wc": "x= " + CALL + "capture('ls | wc')\n",
            "a, b = !ls": "a, b = " + CALL + "capture('ls')\n",
            "d[0].x = !ls": "d[0].x = " + CALL + "capture('ls')\n",
            "if x:\n    !ls": "if x:\n    " + CALL + "shell('ls')\n",
            "!echo \"it's\" # '''": CALL + "shell('echo \"it\\'s\" # \\'\\'\\'')\n",
            "!a \\\n  b \\\n c\nx": CALL + "shell('a  b c')\n\n\nx",
            "%%bash -x\na\nb": CALL + "cell('bash', '-x', 'a\\nb')\n",
            "x = 1\n%%sh\n!a": "x = 1\n" + CALL + "cell('sh', '', '!a')\n",
            "%time a = '%b'": CALL + "line('time', \"a = '%b'\")\n",
            "!": CALL + "shell('')\n",
        }.items():
            with self.subTest(text):
                self.check(text, want)

    def test_what_is_no_magic(self):
        for text in (
            "",
            "x = 1",
            "'''\n%pwd\n'''",
            '"""\n!ls\n%%bash\n"""',
            "f(a\n%b)",
            "x = a \\\n%b",
            "'a\\\n%b'",
            "# %pwd",
            "x = 5 # = !ls",
            "a != b",
            "a %= b",
            "f'{a!r}'",
            "x == %y",
            "x = '!ls'",
            "'''a'''  '''\n%b'''",
            "[1, # (\n%b]",
            "%",
            "% 5",
            "x = %",
            "%%",
            "x = r'\\'\n",
        ):
            with self.subTest(text):
                self.check(text, None)

    def test_lines_keep_their_numbers(self):
        for text in ("%a\nx\n!b \\\n c\ny", "'''\n%a'''\n!x\nz", "!a\r\nx\r\n"):
            got = transform(text)
            self.assertEqual(text.count("\n"), got.count("\n") - (0 if text.endswith("\n") or not got.endswith("\n") else 1))

    def test_python_is_left_alone(self):
        """A magic after any Python text changes the text by that line alone."""
        library = pathlib.Path(sysconfig.get_paths()["stdlib"])
        files = sorted(library.glob("*.py")) + sorted((library / "test").glob("test_*string*.py"))
        seen = 0
        for path in files:
            if not path.is_file():  # a link that leads nowhere
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            if not text.endswith("\n"):
                continue
            with self.subTest(path.name):
                self.assertEqual(text + CALL + "shell('ls')\n", transform(text + "!ls"))
                seen += 1
        self.assertGreater(seen, 50)

    def test_any_text(self):
        """Nothing makes it raise, and what it makes of text with magics has as
        many lines."""
        rnd = random.Random(7)
        pieces = ["%", "%%", "!", "pwd", "'", '"', "'''", '"""', "\\", "\n", "(", ")", "[", "]", "{", "}", "=", " ", "#", "x", "\r\n", "f'", "rb'", ";", "\t", "é", "\x00"]
        for _ in range(5000):
            text = "".join(rnd.choice(pieces) for _ in range(rnd.randrange(30)))
            got = transform(text)
            if got is not None:
                self.assertIn(CALL, got)


class LexerTest(unittest.TestCase):
    def test_states(self):
        for text, start in {
            "x": True,
            "(": False,
            "(\n)": True,
            "'''": False,
            "'''\n'''": True,
            "'''\\'''": False,
            "'a": True,
            "'a\\": False,
            "x \\": False,
            "# \\": True,
            "# (": True,
            "')'": True,
            "'\"' \"'\"": True,
            ")": True,
            "'a\\\\'": True,
            "f'{x[\"a\"]}'": True,
            "b'''": False,
        }.items():
            with self.subTest(text):
                lexer = Lexer()
                for line in text.split("\n"):
                    lexer.feed(line)
                self.assertEqual(start, lexer.at_start())


if __name__ == "__main__":
    unittest.main()
