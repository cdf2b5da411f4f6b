"""Tests of sessions whose memory outlives their process: what is kept, what is lost
and why, and what comes back otherwise. A row of TABLE is a thing."""

import builtins
import errno
import json
import os
import shutil
import socket
import sys
import tempfile
import unittest
import warnings

from driver import Driver

from coppice_runner import rebuild
from coppice_runner.freeze import freeze
from coppice_runner.session import Session


def kept(code, check, want="True", name="x"):
    return ("kept", name, code, check, want)


def lost(code, kind, reason, name="x"):
    return ("lost", name, code, kind, reason)


def changed(code, check, change, name="x", want="True"):
    return ("changed", name, code, check, want, change)


TABLE = {
    "values": kept("x = [1, 2.5, 'a', b'b', None, {1: (2,)}, {3}, frozenset([4]), 1j, range(3), ...]", "x == [1, 2.5, 'a', b'b', None, {1: (2,)}, {3}, frozenset([4]), 1j, range(3), ...]"),
    "a large number of bytes": kept("x = bytearray(range(256)) * 1000", "x == bytearray(range(256)) * 1000"),
    "shared references": kept("a = []\nx = {'one': a, 'two': a}", "x['one'] is x['two'] is a"),
    "a cycle": kept("x = []\nx.append(x)", "x[0] is x"),
    "a function": kept("def x(a, b=2, *, c=3): return a + b + c", "x(1) == 6 and x.__defaults__ == (2,)"),
    "a function that writes a global": kept("n = 0\ndef x():\n    global n\n    n += 1\n    return n", "[x(), x(), n] == [1, 2, 2]"),
    "a recursive function": kept("def x(n): return 1 if n < 2 else n * x(n - 1)", "x(5) == 120"),
    "a closure over a changing global": kept("k = 1\ndef make(a):\n    def f(): return a + k\n    return f\nx = make(10)\nk = 5", "(x(), globals().__setitem__('k', 7), x()) == (15, None, 17)"),
    "two closures that share a variable": kept("def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n    def get(): return n\n    return up, get\nx = make()\nx[0]()", "(x[0](), x[1]()) == (None, 2)"),
    "a closure that refers to itself": kept("def make():\n    def f(n): return 0 if n == 0 else 1 + f(n - 1)\n    return f\nx = make()", "x(4) == 4"),
    "lambdas in containers": kept("x = {'f': [lambda a: a + 1, lambda a: a * 2]}", "[f(4) for f in x['f']] == [5, 8]"),
    "a function with attributes and annotations": kept("def x(a: int) -> str:\n    'a doc'\nx.tag = [1]", "x.tag == [1] and x.__annotations__ == {'a': int, 'return': str} and x.__doc__ == 'a doc'"),
    "a generator function": kept("def x():\n    yield from range(3)", "list(x()) == [0, 1, 2]"),
    "an async function": kept("async def x(): return 4", "await x()", "4"),
    "a decorated function": kept("import functools\ndef twice(f):\n    @functools.wraps(f)\n    def g(*a): return 2 * f(*a)\n    return g\n@twice\ndef x(a): return a", "x(4) == 8 and x.__name__ == 'x' and x.__wrapped__(4) == 4"),
    "a partial function": kept("import functools\ndef f(a, b): return a - b\nx = functools.partial(f, b=1)", "x(4) == 3 and x.func is f"),
    "a class and its instances": kept("class A:\n    n = [0]\n    def __init__(self): self.v = 4\n    def get(self): return self.v\nx = [A(), A()]\nA.n.append(1)", "type(x[0]) is type(x[1]) is A and x[0].get() == 4 and A.n == [0, 1] and x[0].n is A.n"),
    "a class that knows itself": kept("class B:\n    def __init__(self): super().__init__()\n    def same(self): return __class__ is B\nB.me = B\nx = B()", "x.same() and B.me is B"),
    "a class changed later": kept("class A:\n    n = 1\nA.n = 2\nA.f = lambda self: self.n\nx = A()", "x.f() == 2"),
    "classes derived from one another": kept("class A:\n    def f(self): return 'A'\nclass B(A):\n    def f(self): return 'B' + super().f()\nA.kids = [B]\nx = B()", "x.f() == 'BA' and A.kids[0] is B and isinstance(x, A)"),
    "a class that registers what is derived": kept("REG = []\nclass A:\n    def __init_subclass__(cls, **k): REG.append(cls)\nclass B(A): pass\nx = A", "REG == [B] and (type('C', (A,), {}) is REG[1])"),
    "slots": kept("class A:\n    __slots__ = ('a', 'b')\nx = A(); x.a = 1", "x.a == 1 and not hasattr(x, 'b') and not hasattr(x, '__dict__')"),
    "properties and methods of classes": kept("import functools\nclass A:\n    @property\n    def p(self): return 1\n    @classmethod\n    def c(cls): return cls\n    @staticmethod\n    def s(): return 3\n    @functools.cached_property\n    def q(self): return [4]\nx = A()", "(x.p, x.c() is A, x.s(), x.q) == (1, True, 3, [4]) and x.q is x.q"),
    "a dataclass": kept("from dataclasses import dataclass, field, replace\n@dataclass(order=True)\nclass P:\n    a: int\n    b: list = field(default_factory=list)\nx = P(1)\nx.b.append(2)", "x == P(1, [2]) and repr(x) == 'P(a=1, b=[2])' and P(1) < P(2) and replace(x, a=3).a == 3 and P(4).b == []"),
    "a named tuple": kept("from collections import namedtuple\nP = namedtuple('P', 'a b')\nx = P(1, 2)", "x == P(1, 2) and x.b == 2 and type(x) is P and x._replace(a=3) == P(3, 2)"),
    "a typed named tuple": kept("from typing import NamedTuple\nclass P(NamedTuple):\n    a: int\n    b: str = 'b'\nx = P(1)", "x == (1, 'b') and type(x) is P and P(2).b == 'b'"),
    "an enumeration": kept("from enum import Enum\nclass E(Enum):\n    A = 1\n    B = 2\n    def f(self): return self.name\nx = {E.A: 1}", "x[E.A] == 1 and E(2) is E.B and E.B.f() == 'B' and [e.name for e in E] == ['A', 'B']"),
    "an abstract class": kept("from abc import ABC, abstractmethod\nclass A(ABC):\n    @abstractmethod\n    def f(self): ...\nclass B(A):\n    def f(self): return 1\nx = B()\ndef refused():\n    try: A()\n    except TypeError: return True", "x.f() == 1 and isinstance(x, A) and refused()"),
    "a generic class": kept("from typing import Generic, TypeVar\nT = TypeVar('T')\nclass A(Generic[T]):\n    def __init__(self, v: T): self.v = v\nx = A[int](4)", "x.v == 4 and A[str] is not None and A.__parameters__ == (T,)"),
    "annotations of a class": kept("class A:\n    a: int\n    def f(self, b: 'A') -> int: return 1\nx = A()", "A.__annotations__ == {'a': int} and set(A.f.__annotations__) == {'b', 'return'}"),
    "what computes annotations": kept("class A:\n    a: int\nx = getattr(A, '__annotate__', None)", "A.__annotations__ == {'a': int} and (x is None or x(1) == {'a': int})"),
    "an exception of the session": kept("class E(Exception): pass\nx = E('no')", "isinstance(x, E) and x.args == ('no',)"),
    "a class with a metaclass": kept("class M(type):\n    def __len__(cls): return 4\nclass A(metaclass=M): pass\nx = A()", "len(A) == 4 and type(type(x)) is M"),
    "a method of an instance": kept("class A:\n    def f(self): return self\na = A()\nx = a.f", "x() is a"),
    "an instance with its own pickling": kept("class A:\n    def __getstate__(self): return 4\n    def __setstate__(self, s): self.s = s\nx = A()", "x.s == 4"),
    "modules": kept("import json as x, os.path as p", "x.dumps(1) == '1' and p.__name__ == 'posixpath'"),
    "an iterator where it is": kept("x = iter([1, 2, 3]); next(x)", "list(x) == [2, 3]"),
    "text in memory": kept("import io\nx = io.StringIO('abc'); x.read(1)", "x.read() == 'bc'"),
    "a closed file": kept("import os\nx = open(os.devnull); x.close()", "x.closed"),
    "a regular expression": kept("import re\nx = re.compile('a+', re.I)", "x.match('AA').end() == 2"),
    "the environment of the process": kept("import os\nx = os.environ\nx['COPPICE_K'] = 'v'", "x is os.environ and os.getenv('COPPICE_K') == 'v'"),
    "the streams of the session": kept("import sys\nx = [sys.stdout, display]", "x[0] is sys.stdout and x[1] is not None"),
    "decimals, dates and paths": kept("import decimal, datetime, pathlib, uuid, fractions\nx = [decimal.Decimal('1.5'), datetime.date(2020, 1, 2), pathlib.Path('/a'), uuid.UUID(int=5), fractions.Fraction(1, 3)]", "x[0] * 2 == 3 and x[1].day == 2 and x[2].name == 'a' and x[3].int == 5 and x[4] * 3 == 1"),
    "an lru_cache": changed("import functools\n@functools.lru_cache(maxsize=5)\ndef x(n): return n + 1\nx(1)", "x(1) == 2 and x.cache_info().maxsize == 5 and x.cache_info().misses == 1", "its cache is empty"),
    "a file open for reading": changed("x = open(PATH); x.readline()", "x.readline() == 'two\\n'", "a file, opened again where it was read up to"),
    "a binary file in a container": changed("x = {'f': open(PATH, 'rb')}; x['f'].read(4)", "x['f'].read(3) == b'two'", "a file, opened again where it was read up to"),
    "a module from the directory": changed("import ours_of_cwd as x\nx.n += 1", "x.n == 1", "imported again: what it holds is as its file makes it"),
    "a logger": changed("import logging\nx = logging.getLogger('a.b'); x.setLevel(10)", "x is logging.getLogger('a.b')", "a logger, found by its name: its level, handlers and filters are not kept"),
    "an exception that was raised": changed("try: 1/0\nexcept ZeroDivisionError as e: x = e", "x.args == ('division by zero',)", "an exception without its traceback and what led to it"),
    "a process that has ended": kept("import subprocess, sys\nx = subprocess.run([sys.executable, '-c', ''])", "x.returncode == 0"),
    "a file open for writing": lost("x = open(PATH, 'a')", "_io.TextIOWrapper", "a file that is open for writing"),
    "a pipe": lost("import os\nr, w = os.pipe()\nx = open(r, 'rb')", "_io.BufferedReader", "an open file that has no name"),
    "a temporary file": lost("import tempfile\nx = tempfile.NamedTemporaryFile()", "tempfile._TemporaryFileWrapper", "a file that is open for writing"),
    "a temporary folder": lost("import tempfile\nx = tempfile.TemporaryDirectory()", "tempfile.TemporaryDirectory", "something is to be done when it goes, as with a temporary folder"),
    "a socket": lost("import socket\nx = socket.socket()", "socket.socket", "a connection ends with its process"),
    "a database": lost("import sqlite3\nx = sqlite3.connect(':memory:')", "sqlite3.Connection", "a connection to a database ends with its process"),
    "a generator": lost("x = (i for i in range(3)); next(x)", "generator", "a generator cannot be kept where it stands"),
    "a coroutine": lost("async def f(): pass\nx = f()", "coroutine", "a coroutine cannot be kept where it stands"),
    "a lock": lost("import threading\nx = threading.Lock()", "_thread.lock", "it is a lock, or holds one, as threads and queues do"),
    "a queue": lost("import queue\nx = queue.Queue()", "queue.Queue", "it holds a _thread.lock: it is a lock, or holds one, as threads and queues do"),
    "a weak reference": lost("import weakref\nclass A: pass\na = A()\nx = weakref.ref(a)", None, "a weak reference"),
    "a module of the code's own": lost("import types\nx = types.ModuleType('x')", "module", "a module that was not imported from a file"),
    "a process": lost("import subprocess, sys\nx = subprocess.Popen([sys.executable, '-c', ''])", "subprocess.Popen", "it belongs to a process that does not outlive this one"),
    "an exception that holds a frame": lost("import sys\ntry: 1/0\nexcept ZeroDivisionError as e: x = e.__traceback__", "traceback", "a traceback holds running code"),
    "an instance that cannot be pickled": lost("class A:\n    def __reduce__(self): raise ValueError('no')\nx = A()", "A", "ValueError: no"),
    "an instance that comes back as another": lost("class A:\n    def __reduce__(self): return (int, (4,))\nx = A()", "A", "it came back as a int"),
    "an instance that cannot be made again": lost("def bad(): raise KeyError('gone')\nclass A:\n    def __reduce__(self): return (bad, ())\nx = A()", "A", "it cannot be put together again: KeyError: 'gone'"),
    "what holds something that is lost": lost("import socket\nx = {'deep': [socket.socket()]}", "dict", "it holds a socket: a connection ends with its process"),
}


class Room:
    """Has sessions in this process: a process for each takes a hundred times as long."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.main, self.cwd, self.env, self.path = sys.modules["__main__"], os.getcwd(), dict(os.environ), list(sys.path)
        self.filters, self.builtins, self.files = list(warnings.filters), dict(vars(builtins)), []
        os.chdir(self.folder)
        sys.path.insert(0, self.folder)
        return self

    def __exit__(self, *_):
        sys.modules["__main__"] = self.main
        sys.modules.pop("ours_of_cwd", None)
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.env)
        sys.path[:] = self.path
        warnings.filters[:] = self.filters
        for name in set(vars(builtins)) - set(self.builtins):
            delattr(builtins, name)
        vars(builtins).update(self.builtins)
        for f in self.files:
            f.close()

    def session(self):
        """Returns a session that has run nothing."""
        made = Session()
        made._cwd, made._env = self.folder, dict(os.environ)
        sys.modules.pop("ours_of_cwd", None)
        return made

    def run(self, session, code):
        """Runs a cell and returns its value."""
        sys.modules["__main__"] = session.module
        session.count += 1
        session.compiler.register(f"<cell {session.count}>", code)
        return session.evaluate(code, f"<cell {session.count}>")

    def freeze(self, session, left=(), apart=False):
        """Returns the image of a session: what is in it, and a file."""
        sys.modules["__main__"] = session.module
        f = tempfile.TemporaryFile()
        self.files.append(f)
        image = json.loads(json.dumps(freeze(session, f.fileno(), left, apart, [])))
        return image, f

    def thawed(self, f, image):
        """Returns another session that took an image over, and what it said."""
        session = self.session()
        sys.modules["__main__"] = session.module
        assert rebuild.unlike(image) == ""
        return session, rebuild.thaw(session, f.fileno(), image)

    def verified(self, session):
        """Returns an image that another session could read, as the host makes it."""
        image, f = self.freeze(session)
        try:
            bad = self.thawed(f, image)[1]["failed"]
        except Exception as err:
            bad = [err]
        if bad:
            image, f = self.freeze(session, apart=True)
            bad = self.thawed(f, image)[1]["failed"]
            assert bad
            image, f = self.freeze(session, left=[one["name"] for one in bad])
            assert self.thawed(f, image)[1]["failed"] == []
        image["lost"] += bad
        return image, f


class OutliveTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.open = []
        self.addCleanup(self.close_all)
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "text")
        with open(self.path, "w") as f:
            f.write("one\ntwo\nthree\n")
        with open(os.path.join(self.folder, "ours_of_cwd.py"), "w") as f:
            f.write("n = 1\n")

    def driver(self, **init):
        session = Driver(cwd=self.folder, **init)
        self.open.append(session)
        return session

    def close_all(self):
        while self.open:
            self.open.pop().close()

    def freeze(self, session, names=(), apart=False):
        """Returns the image of a session: a file and what is in it."""
        f = tempfile.TemporaryFile()
        self.addCleanup(f.close)
        session.request({"type": "freeze", "id": 0, "names": list(names), "apart": apart})
        self.hand_over(session, f)
        frame = session.frame()
        self.assertEqual("frozen", frame["type"], frame)
        image = frame["args"]
        self.assertEqual(os.fstat(f.fileno()).st_size, sum(image["sections"]))
        return f, image

    def hand_over(self, session, f):
        frame = session.frame()
        self.assertEqual("forking", frame["type"], frame)
        socket.send_fds(session.main, [b"\n"], [f.fileno()])

    def thaw(self, session, f, image):
        session.request({"type": "thaw", "id": 0, "args": image})
        frame = session.frame()
        if frame["type"] != "forking":
            return frame
        socket.send_fds(session.main, [b"\n"], [f.fileno()])
        while True:
            frame = session.frame()
            if frame["type"] in ("thawed", "refused"):
                return frame

    def test_table(self):
        for thing, (what, name, code, *more) in TABLE.items():
            with self.subTest(thing), self.room() as here:
                session = here.session()
                here.run(session, f"PATH = {self.path!r}\n{code}\nwitness = 7")
                image, f = here.verified(session)
                told = {"lost": [one["name"] for one in image["lost"]], "changed": [one["name"] for one in image["changed"]], "kept": image["kept"]}
                self.assertIn("witness", told["kept"])
                for state, names in told.items():
                    self.assertEqual(state == what, name in names, (thing, image["lost"], image["changed"]))
                restored, came = here.thawed(f, image)
                self.assertEqual({"said": [], "failed": []}, came)
                self.assertEqual(7, here.run(restored, "witness"))
                if what == "lost":
                    (one,) = [one for one in image["lost"] if one["name"] == name]
                    if more[0] is not None:
                        self.assertEqual(more[0], one["type"])
                    self.assertEqual(more[1], one["reason"])
                    self.assertNotIn(name, restored.namespace)
                    continue
                if what == "changed":
                    self.assertEqual([more[2]], [one["change"] for one in image["changed"] if one["name"] == name])
                self.assertEqual(more[1], repr(here.run(restored, more[0])))
                if image["changed"] == [] and image["lost"] == []:
                    again = here.thawed(*reversed(here.verified(restored)))[0]
                    self.assertEqual(7, here.run(again, "witness"), "what was restored is kept again")

    def room(self):
        return Room(self.folder)

    def test_surroundings(self):
        s = self.driver(env={"COPPICE_GIVEN": "1"})
        os.mkdir(os.path.join(self.folder, "sub"))
        s.execute("import os, sys, random, warnings\nos.chdir('sub'); os.environ['COPPICE_A'] = 'a'; del os.environ['COPPICE_GIVEN']; sys.path.append('/nowhere/at/all')")
        s.execute("random.seed(5); warnings.simplefilter('error', UserWarning); import builtins; builtins.mine = [4]; 41 + 1")
        f, image = self.freeze(s)
        r = self.driver(env={"COPPICE_GIVEN": "2"})
        self.assertEqual("thawed", self.thaw(r, f, image)["type"])
        self.assertEqual("('sub', 'a', None, True)", r.value("os.path.basename(os.getcwd()), os.environ['COPPICE_A'], os.getenv('COPPICE_GIVEN'), '/nowhere/at/all' in sys.path"))
        self.assertEqual(s.value("random.random()"), r.value("random.random()"))
        (copy,) = s.copies(1, force=True)
        self.open.append(copy)
        self.assertEqual(s.value("random.random()"), copy.value("random.random()"), "one that is written down is what it is a copy of")
        (own,) = s.copies(1)
        self.open.append(own)
        self.assertNotEqual(s.value("random.random()"), own.value("random.random()"), "one that goes on has its own")
        self.assertEqual("('error', [4])", r.value("warnings.filters[0][0], mine"))
        r2 = self.driver()
        self.thaw(r2, f, image)
        self.assertEqual("42", r2.value("_"))

    def test_numbers_of_cells_and_their_text_go_on(self):
        s = self.driver()
        s.execute("def f():\n    raise ValueError('here')")
        f, image = self.freeze(s)
        r = self.driver()
        self.thaw(r, f, image)
        frames = r.execute("f()")
        text = "\n".join(frames[-2]["traceback"])
        self.assertIn("raise ValueError('here')", text)
        self.assertEqual(2, frames[-1]["count"])

    def test_what_runs_beside_is_lost(self):
        s = self.driver()
        s.execute("import threading, time, asyncio\nt = threading.Thread(target=time.sleep, args=(60,), name='T', daemon=True); t.start()\nasync def g(): await asyncio.sleep(60)\ntask = asyncio.ensure_future(g())\nawait asyncio.sleep(0)")
        self.assertEqual("refused", s.copies(1)["type"])
        (copy,) = s.copies(1, force=True)
        self.open.append(copy)
        _, image = self.freeze(copy)
        told = {one["name"]: (one["type"], one["reason"]) for one in image["lost"]}
        self.assertEqual(("threading.Thread", "a thread ends with its process"), told["thread T"])
        self.assertEqual("_asyncio.Task", told["task"][0])
        self.assertEqual("threading.Thread", told["t"][0])
        self.assertEqual(1, len([n for n in told if n.startswith("task Task")]))

    def test_nothing_is_written_of_what_is_kept_as_a_whole_or_not_at_all(self):
        for code, running, lost in (
            ("y = 1", [], []),
            ("y = 1", [("thread T", "Thread", "a thread ends with its process")], ["thread T"]),
            ("y = (i for i in ())", [], ["y"]),
        ):
            with self.subTest(code, running=running), self.room() as here, tempfile.TemporaryFile() as f:
                session = here.session()
                here.run(session, "x = bytearray(100_000)\n" + code)
                sys.modules["__main__"] = session.module
                image = freeze(session, f.fileno(), (), False, running, True)
                self.assertEqual([one["name"] for one in image["lost"]], lost)
                self.assertEqual(image["sections"] == [], bool(lost))
                self.assertEqual(os.fstat(f.fileno()).st_size, sum(image["sections"]))

    def test_another_python_or_package_is_refused_before_anything_is_read(self):
        s = self.driver()
        s.execute("import os\nclass A:\n    def __reduce__(self): return (os.mkdir, (os.path.join(os.getcwd(), 'made'),))\nx = A()")
        f, image = self.freeze(s)
        for change, want in (
            ({"python": "cpython 3.1"}, "Python was cpython 3.1 and is "),
            ({"platform": "vax"}, "the machine was vax and is "),
            ({"format": 99}, "it was written in the form 99"),
            ({"packages": {"no_such_package": "1.0"}}, "the package no_such_package 1.0 is not installed"),
        ):
            with self.subTest(want):
                frame = self.thaw(self.driver(), f, {**image, **change})
                self.assertEqual(("refused", "unlike"), (frame["type"], frame.get("name")))
                self.assertIn(want, frame["message"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "made")))

    def test_an_image_that_is_cut_is_refused(self):
        s = self.driver()
        s.execute("x = bytearray(1 << 20)")
        f, image = self.freeze(s)
        os.ftruncate(f.fileno(), 1000)
        frame = self.thaw(self.driver(), f, image)
        self.assertEqual(("refused", "failed"), (frame["type"], frame["name"]))
        self.assertIn("shorter", frame["message"])

    def test_a_file_that_went_is_said(self):
        s = self.driver()
        s.execute(f"x = open({self.path!r})")
        f, image = self.freeze(s)
        os.remove(self.path)
        r = self.driver()
        (said,) = self.thaw(r, f, image)["args"]["said"]
        self.assertIn("could not be opened again", said)
        self.assertEqual("True", r.value("x.closed"))

    def test_a_file_that_cannot_be_written_is_said(self):
        # As on a disk that is full. The session has replaced nothing, and is told of nothing.
        s = self.driver()
        s.execute("x = 1")
        with open(self.path, "rb") as f:
            s.request({"type": "freeze", "id": 0})
            self.hand_over(s, f)
        self.assertEqual({"type": "refused", "id": 0, "name": "failed", "message": os.strerror(errno.EINVAL)}, s.frame())
        self.assertEqual("1", s.value("x"))
        s.request({"type": "fork", "id": 0})
        self.assertEqual("the fork request failed: KeyError: 'n'", s.frame()["message"])
        s.execute("import builtins\nbuiltins.input = builtins.len = 4")
        s.request({"type": "fork", "id": 0})
        self.assertEqual(["input", "len"], sorted(s.frame()["message"].partition("put back: ")[2].split(", ")))
        self.assertEqual("3", s.value("len('abc')"))

    def test_many_functions_and_classes(self):
        s = self.driver()
        s.execute("\n".join(f"class C{n}:\n    def f(self): return g{n}() + {n}\ndef g{n}(): return {n}" for n in range(200)) + "\nall_of_them = [C() for n, C in list(globals().items()) if n.startswith('C')]")
        f, image = self.freeze(s)
        r = self.driver()
        self.assertEqual([], image["lost"])
        self.assertEqual([], self.thaw(r, f, image)["args"]["failed"])
        self.assertEqual(str(2 * sum(range(200))), r.value("sum(c.f() for c in all_of_them)"))

    def test_a_restored_session_is_kept_again(self):
        s = self.driver()
        s.execute("n = 0\ndef up():\n    global n\n    n += 1\n    return n\nup()")
        for _ in range(3):
            f, image = self.freeze(s)
            s = self.driver()
            self.thaw(s, f, image)
            s.execute("up()")
        self.assertEqual("4", s.value("n"))
