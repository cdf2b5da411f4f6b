"""Tests of the parts of a session that need no process of their own."""

import json
import linecache
import os
import random
import signal
import socket
import subprocess
import threading
import time
import types
import unittest
import unittest.mock

import sources  # noqa: F401, it is what makes the next import work
from coppice_runner import display, errors, forks, forkserver, processes, shell, whole, wire
from coppice_runner.interrupts import Interrupts
from coppice_runner.source import Compiler


class WholeTest(unittest.TestCase):
    def test_whole_cells(self):
        for want, texts in {
            ("complete", None): [
                "", " ", "1", "x = (1,\n  2)", "def f(x):\n  return x*2\n\n\n", "class A:\n  x = 1\n", "if 1: pass", "s = '''\n  a'''",
                "await f()", "%matplotlib inline", "!ls", "%%bash\nls\n", "def f():\n    return 1\nf()", "# a",
            ],
            ("incomplete", 0): ["print('''hello", "x = (1,", "x = 1 \\", "%%bash\nls", "@wrapped", "await f("],
            ("incomplete", 2): ["def f(x):\n  x*2"],
            ("incomplete", 4): ["for i in x:", "try:\n    pass"],
            ("incomplete", 8): ["for i in x:\n    if i:"],
            ("invalid", None): ["import = 7q", "1 +", "x = )", "\0"],
        }.items():
            for text in texts:
                with self.subTest(text):
                    self.assertEqual(want, whole.check(text))


class JSONTest(unittest.TestCase):
    def test_what_is_said_to_be_json(self):
        for want, value in (
            ([{"type": ["a", "b"], "2": None}], [{"type": ("a", "b"), 2: None}]),
            (display.NOT_JSON, (1, float("nan"))),
            (display.NOT_JSON, {"a": float("inf")}),
            (display.NOT_JSON, [int]),
        ):
            self.assertEqual(want, display.encodable("application/json", value))
        cycle = []
        cycle.append((cycle,))
        self.assertIs(display.NOT_JSON, display.encodable("application/json", cycle))
        self.assertEqual("[<class 'int'>]", display.encodable("application/x", [int]))

    def test_what_is_no_json_is_left_out(self):
        note = "[left out because it is too large, or not JSON (NaN, infinity, an object of Python): application/json]"
        self.assertEqual(({"text/plain": note}, ""), display.fit({"application/json": display.NOT_JSON}))

        class Said:
            def _repr_json_(self):
                return {"a": float("nan")}

            def __repr__(self):
                return "said"

        self.assertEqual(({"text/plain": "said\n" + note}, ""), display.fit(display.bundle(Said())[0]))
        # Of what nobody says that it is, there is nothing to tell.
        self.assertEqual(({"text/plain": "[1, nan]"}, ""), display.fit(display.bundle([1, float("nan")])[0]))


class LinesTest(unittest.TestCase):
    def read(self, data, limit):
        a, b = socket.socketpair()
        with a, b:
            lines = wire.Lines(limit)
            lines.attach(b)

            def write():
                rnd = random.Random(len(data))
                at = 0
                while at < len(data):
                    n = rnd.choice([1, 3, 100, 70000])
                    a.sendall(data[at : at + n])
                    at += n
                a.shutdown(socket.SHUT_WR)

            thread = threading.Thread(target=write)
            thread.start()
            got = []
            while True:
                try:
                    line = lines.next()
                except wire.RequestTooLong:
                    got.append("too long")
                    continue
                if line is None:
                    break
                got.append(line)
            thread.join()
            return got

    def test_lines(self):
        self.assertEqual([], self.read(b"", 10))
        self.assertEqual([b"a", b"", b"b"], self.read(b"a\n\nb\n", 10))
        self.assertEqual([b"a"], self.read(b"a\nno end", 10))
        self.assertEqual([b"0123456789", "too long", b"x"], self.read(b"0123456789\n01234567890\nx\n", 10))

    def test_any_lines(self):
        rnd = random.Random(1)
        for _ in range(30):
            lines = [bytes([rnd.randrange(97, 123)]) * rnd.choice([0, 1, 99, 100, 101, 5000]) for _ in range(rnd.randrange(50))]
            want = [line if len(line) <= 100 else "too long" for line in lines]
            self.assertEqual(want, self.read(b"".join(line + b"\n" for line in lines), 100))


class EncodeTest(unittest.TestCase):
    def test_values(self):
        loop = []
        loop.append(loop)

        class Bad:
            def __repr__(self):
                raise ValueError

        for value, want in (
            ({"a": 1}, b'{"a":1}\n'),
            ({"a": "é\n"}, '{"a":"é\\n"}\n'.encode()),
            ({"a": float("nan")}, b'{"a":"nan"}\n'),
            ({"a": "\udc80"}, b'{"a":"\\\\udc80"}\n'),
            ({"a": {1: (2, None, True)}}, b'{"a":{"1":[2,null,true]}}\n'),
            ({"a": b"x"}, b'{"a":"b\'x\'"}\n'),
            ({"a": Bad()}, b'{"a":"<Bad whose repr raised ValueError>"}\n'),
        ):
            with self.subTest(want):
                self.assertEqual(want, wire.encode(value))
        self.assertIn(b"[[[", wire.encode({"a": loop}))

    def test_quoted(self):
        self.assertEqual('"é\\"\\n\\u0000"'.encode(), wire.quoted('é"\n\x00'))
        self.assertEqual(b'"a\\\\udc80"', wire.quoted("a\udc80"))


class CompilerTest(unittest.TestCase):
    def value(self, text):
        compiler = Compiler()
        statements, expression = compiler.compile(compiler.parse(text, "<t>"), text, "<t>")
        scope = {}
        if statements:
            exec(statements, scope)
        return eval(expression, scope) if expression else None

    def test_the_last_expression(self):
        for text, want in {"1": 1, "1;": None, "x = 1\nx": 1, "x = 1; x": 1, "x = 1; x;": None, "(\n1\n) ;": None, "'é;é';": None, "'é;é'": "é;é", "1 # ;": 1, "x = 2": None, "": None, "def f(): pass": None, "(1);  # c": None, "'''a\n;b'''": "a\n;b", "'''\r\n;''' ;": None}.items():
            with self.subTest(text):
                self.assertEqual(want, self.value(text))

    def test_short_expressions(self):
        """What the short way takes is what the long way gives."""
        compiler = Compiler()
        for text in ("1+1", "x", "f(1)", "await f()", "[i async for i in g()]", "'a;'", "x == 1", "f(a=1)", "x if y else z", "lambda: 1", "x := 1", "(x := 1)", "import os", "x = 1", " 1", "1\n", "", "%pwd", "!ls", "print(1)", "not x", "{'a': 1}", "yield", "return 1", "...", "None", "1 if"):
            short = compiler.expression(text, "<t>")
            if short is None:
                continue
            with self.subTest(text):
                statements, expression = compiler.compile(compiler.parse(text, "<t>"), text, "<t>")
                self.assertIsNone(statements)
                self.assertEqual(expression, short)

    def test_future_imports_stay(self):
        compiler = Compiler()
        text = "from __future__ import annotations"
        compiler.compile(compiler.parse(text, "<t>"), text, "<t>")
        text = "def f(a: b): pass"
        statements, _ = compiler.compile(compiler.parse(text, "<t>"), text, "<t>")
        scope = {}
        exec(statements, scope)
        self.assertEqual({"a": "b"}, scope["f"].__annotations__)

    def test_cells_are_forgotten_in_time(self):
        compiler = Compiler()
        for n in range(2100):
            compiler.register(f"<test cell {n}>", "x")
        self.assertNotIn("<test cell 0>", linecache.cache)
        self.assertEqual("x\n", linecache.getline("<test cell 2099>", 1))
        for n in range(5):
            compiler.register(f"<long test cell {n}>", "y" * (8 << 20))
        self.assertNotIn("<long test cell 0>", linecache.cache)
        self.assertIn("<long test cell 4>", linecache.cache)


class DisplayTest(unittest.TestCase):
    def test_as_json(self):
        deep = []
        for _ in range(200):
            deep = [deep]
        for value, good in (({"a": [1, 2.5, None, True, "x"]}, True), ({1: 2}, False), ([float("inf")], False), ([set()], False), (deep, False), ([1] * 200_000, False), (["x" * (4 << 20)], False), ({"x" * (4 << 20): 1}, False), ({"a": (1,)}, False), ([], True)):
            self.assertEqual(good, display.as_json(value) is value)

    def test_a_tree_that_is_said_to_be_json_may_be_larger(self):
        for part, good in (({"y": list(range(200_000))}, True), ({"y": tuple(range(200_000))}, True), ({"y": "x" * (6 << 20)}, True), ([1] * 300_000, False), (["x" * (9 << 20)], False)):
            self.assertEqual(good, display.encodable("application/x+json", part) is not display.NOT_JSON)

    def test_parts_that_are_too_long_are_left_out(self):
        class Long:
            def _repr_html_(self):
                return "x" * wire.MAX_FRAME

            def __repr__(self):
                return "Long()"

        data, text = display.fit(display.bundle(Long())[0])
        self.assertEqual("", text)
        self.assertEqual(["text/plain"], list(data))
        self.assertRegex(data["text/plain"], r"Long\(\)\n\[left out because it is too long: text/html")

    def test_bundles_are_asked_for_as_ipython_asks(self):
        class Rich:
            def _repr_mimebundle_(self, include, exclude, **more):
                return {"text/html": f"{include} {exclude} {more}"}

        class Plain:
            def _repr_mimebundle_(self):
                return {"text/html": "plain"}, {"text/html": {"a": 1}}

        class Broken:
            def _repr_mimebundle_(self, include=None, exclude=None):
                raise TypeError("in the object")

            def __repr__(self):
                return "Broken()"

        self.assertEqual("None None {}", display.bundle(Rich())[0]["text/html"])
        data, metadata = display.bundle(Plain())
        self.assertEqual(("plain", {"text/html": {"a": 1}}), (data["text/html"], metadata))
        self.assertEqual(({"text/plain": "Broken()"}, {}), display.bundle(Broken()))

    def test_long_text_is_printed(self):
        long = "x" * (wire.MAX_FRAME // 4 + 1)
        self.assertEqual(({}, long), display.fit({"text/plain": long}))
        self.assertEqual(({"text/html": "h"}, long), display.fit({"text/html": "h", "text/plain": long}))


class ErrorsTest(unittest.TestCase):
    def caught(self, code, filename="<cell 1>"):
        try:
            exec(compile(code, filename, "exec"), {})
        except BaseException as err:
            return errors.describe(err)
        raise AssertionError("nothing was raised")

    def test_describe(self):
        got = self.caught("class E(Exception):\n    def __str__(self): return 'm' * 100000\nraise E")
        self.assertEqual("E", got["name"])
        self.assertIn("… (34464 more characters)", got["message"])
        got = self.caught("def f(): f()\nf()")
        self.assertLess(len(got["traceback"]), 50)
        got = self.caught("a = ValueError('a')\nb = KeyError('b')\na.__cause__ = b\nb.__cause__ = a\nraise a")
        self.assertEqual("ValueError", got["name"])


class PlaceTest(unittest.TestCase):
    """Where exceptions come from; test/conformance has the cases that need a
    session, on one version of Python."""

    def place(self, code, text=None, filename="<cell 901>"):
        Compiler().register(filename, code if text is None else text)
        try:
            exec(compile(code, filename, "exec"), {})
        except BaseException as err:
            return errors.describe(err, filename)["place"]
        raise AssertionError("nothing was raised")

    def test_every_version_knows_the_line(self):
        got = self.place("def f(x):\n    return x / 0\n\nf(1)")
        self.assertEqual(("<cell 901>", 2, "    return x / 0"), (got["filename"], got["line"], got["snippet"]))
        if "column" in got:  # Python 3.11 and newer
            self.assertEqual((12, 2, 17, "           ^^^^^"), (got["column"], got["end_line"], got["end_column"], got["pointer"]))
        self.assertTrue(got["summary"].startswith("ZeroDivisionError: division by zero\nat <cell 901>:2"), got["summary"])
        self.assertIn('File "<cell 901>", line 4, in <module>\n    f(1)\n', got["user_traceback"])

    def test_the_compiler_knows_the_column(self):
        got = self.place("x = 1\ny = = 2")
        self.assertEqual((2, 5, "y = = 2"), (got["line"], got["column"], got["snippet"]))
        self.assertTrue(got["pointer"].startswith("    ^"))

    def test_libraries_are_folded(self):
        got = self.place("import json\njson.loads('{')")
        self.assertEqual((2, "json.loads('{')"), (got["line"], got["snippet"]))
        self.assertRegex(got["user_traceback"], r"\n  \[\d frames in json/__init__.py, json/decoder.py; the last is \w+, line \d+\]\n")

    def test_a_long_line_is_shown_around_the_column(self):
        got = self.place("x = [" + "1, " * 1000 + "1 / 0" + ", 1" * 1000 + "]")
        self.assertLessEqual(len(got["snippet"]), 401)
        if "column" in got:
            self.assertEqual("1 / 0", got["snippet"][len(got["pointer"]) - 5 : len(got["pointer"])])

    def test_what_is_known_is_not_what_ran(self):
        self.assertNotIn("snippet", self.place("\n\n1 / 0", text="short"))

    def test_chains_and_circles_end(self):
        got = self.place("a = ValueError('a')\nb = KeyError('b')\na.__cause__ = b\nb.__cause__ = a\nraise a")
        self.assertIn("caused by KeyError: 'b'", got["summary"])
        got = self.place("e = None\nfor n in range(500):\n    n = ValueError(n)\n    n.__cause__ = e\n    e = n\nraise e")
        self.assertLess(len(got["user_traceback"]), 5000)


class ShellTest(unittest.TestCase):
    def test_expand(self):
        names = {"x": 5, "d": {"k": "v"}, "__hidden": 1}
        for text, want in {
            "echo {x}": "echo 5",
            "echo $x": "echo 5",
            "echo $$x": "echo $x",
            "echo {{x}}": "echo {x}",
            "echo {d['k']}": "echo v",
            "echo {x + 1:}": "echo {x + 1:}",
            "awk '{print $1}'": "awk '{print $1}'",
            "echo {a,b} ${HOME} $HOME": "echo {a,b} ${HOME} $HOME",
            "echo {1/0}": "echo {1/0}",
            "echo $__hidden": "echo $__hidden",
        }.items():
            self.assertEqual(want, shell.expand(text, names))

    def test_lines(self):
        lines = shell.capture("printf 'a\\nb'; exit 3", Interrupts())
        self.assertEqual((["a", "b"], "a\nb", "a b", ["a", "b"], 3), (lines, lines.n, lines.s, lines.l, lines.returncode))


def program(pid):
    """Returns the name that a process was started by."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().partition(b"\0")[0]
    except OSError:
        return b""


class LateSignalsTest(unittest.TestCase):
    def setUp(self):
        self.interrupts = Interrupts()
        self.handler = signal.signal(signal.SIGINT, self.interrupts._handler)
        self.addCleanup(signal.signal, signal.SIGINT, self.handler)

    def test_a_signal_that_comes_when_its_cell_has_ended(self):
        """The side thread is held up between its look at the cell and the signal."""
        i = self.interrupts
        i.begin(1, time.monotonic())
        with unittest.mock.patch("coppice_runner.interrupts.processes.started_since", lambda _: self.next(i)):
            i.request(1)
        self.assertEqual(2, i.current)
        self.assertFalse(i.waiting(), "the next cell is to be interrupted")
        i.end()
        i.begin(3, time.monotonic())
        with self.assertRaises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)  # somebody else's is for whatever runs

    def next(self, i):
        if i.current == 1:
            i.end()
            i.begin(2, time.monotonic())
        child = subprocess.Popen(["sleep", "100"])
        self.addCleanup(lambda: self.assertEqual(-signal.SIGKILL, child.wait(), "it was interrupted"))
        self.addCleanup(child.kill)
        return [child.pid]


class ForkServerTest(unittest.TestCase):
    def setUp(self):
        self.host, theirs = socket.socketpair()
        life = os.pipe()
        self.server = forkserver.Server(theirs, life[0])
        self.server._alone = True
        self.addCleanup(lambda: [os.close(fd) for fd in (*life, self.server._woken, self.server._wake)])
        self.addCleanup(self.host.close)
        self.addCleanup(theirs.close)

    def told(self):
        return json.loads(self.host.recv(1 << 16))

    def test_a_warm_up_that_fails_costs_nothing_else(self):
        def warm():
            raise ValueError("negative count")

        self.server._warm = warm
        self.server._warm_up()
        told = self.told()
        self.assertEqual("warm", told["type"])
        self.assertIn("negative count", str(told["failed"]))

    def test_a_fork_that_fails_is_told_by_its_number(self):
        ends = [fd for _ in range(3) for fd in os.pipe()]
        self.addCleanup(lambda: [os.close(fd) for fd in ends])
        self.server._attached.append(list(ends))
        with unittest.mock.patch.object(forks, "fork", side_effect=ValueError("no")):
            self.server._request(b'{"type":"fork","n":7}')
        told = self.told()
        self.assertEqual(("failed", 7), (told["type"], told["n"]))
        self.assertIn("ValueError: no", told["message"])

    def test_what_fills_gaps_has_a_size_where_objects_are_larger(self):
        own = bytes().__sizeof__()
        for size, fillers in zip(range(512, 0, -16), reversed(forkserver._fill())):
            self.assertEqual({size}, {own + len(one) for one in fillers})


class ProcessesTest(unittest.TestCase):
    def test_only_what_was_started_since(self):
        old = subprocess.Popen(["sleep", "100"])
        self.addCleanup(old.wait)
        self.addCleanup(old.kill)
        time.sleep(0.05)  # start times are counted in hundredths of a second
        begin = time.monotonic()
        new = subprocess.Popen(["sh", "-c", "sleep 100; true"])
        self.addCleanup(new.wait)
        self.addCleanup(new.kill)
        away = subprocess.Popen(["sleep", "100"], start_new_session=True)
        self.addCleanup(away.wait)
        self.addCleanup(away.kill)
        deadline = time.monotonic() + 10
        # A shell's child that is no sleep yet may lose the signal.
        while not any(program(pid) == b"sleep" for pid in processes.descendants_of(new.pid)) and time.monotonic() < deadline:
            time.sleep(0.001)
        found = processes.started_since(begin)
        (grandchild,) = processes.descendants_of(new.pid)
        self.assertEqual({new.pid, grandchild}, set(found))
        self.assertLessEqual({old.pid, new.pid, away.pid, grandchild}, set(processes.descendants_of(os.getpid())))
        for pid in found:
            processes.interrupt(pid)
        self.assertEqual(-2, new.wait(10))
        processes.kill(grandchild)
        processes.kill(new.pid)  # it is gone, and nothing happens


class InterruptsTest(unittest.TestCase):
    def test_what_waits(self):
        gate = Interrupts()
        gate.check()
        gate.begin(3, 0.0)
        gate.check()
        gate._asked = gate.wanted = 2  # another cell
        gate.check()
        gate._asked = gate.wanted = 3
        self.assertTrue(gate.waiting())
        with self.assertRaises(KeyboardInterrupt):
            gate.check()
        gate.check()
        gate.wanted = 3
        gate.end()
        gate.begin(4, 0.0)
        gate.check()


class DeepTracebackTest(unittest.TestCase):
    """A traceback of a million frames is described within a moment."""

    def deep(self, depth, code):
        """Returns an exception whose traceback alternates between the lines of code."""
        try:
            exec(compile(code, "<cell 9>", "exec"), {})
        except ZeroDivisionError as err:
            frames, tb = [], err.__traceback__
            while tb is not None:
                frames.append(tb)
                tb = tb.tb_next
            top, rest = None, frames[-2:]
            for n in range(depth):
                of = rest[n % 2]
                top = types.TracebackType(top, of.tb_frame, of.tb_lasti, of.tb_lineno)
            try:
                return err.with_traceback(top)
            finally:
                del frames, rest

    def test_it_is_bounded(self):
        code = "def f():\n    1 / 0\nf()\n"
        linecache.cache["<cell 9>"] = (len(code), None, code.splitlines(True), "<cell 9>")
        self.addCleanup(linecache.cache.pop, "<cell 9>")
        for cause in (False, True):
            err = self.deep(1_000_000, code)
            if cause:
                top = self.deep(4, code)
                top.__cause__, err = err, top
            begin = time.process_time()  # others may have the processors
            frame = errors.describe(err, "<cell 9>")
            self.assertLess(time.process_time() - begin, 20, "it took minutes")
            self.assertLess(len(frame["traceback"]), 1300)  # from 3.13 on a frame may have three lines
            self.assertIn("  [… 999600 more …]", frame["traceback"])
            told = frame["place"]["user_traceback"].split("\n")
            self.assertLess(len(told), 60)
            self.assertRegex("\n".join(told), r"\[… 9999\d\d more …\]")
            tb = (err.__cause__ or err).__traceback__
            while tb is not None:  # one by one: the interpreter would go as deep
                tb.tb_next, tb = None, tb.tb_next


if __name__ == "__main__":
    unittest.main()
