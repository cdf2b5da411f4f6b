"""Tests of tool and runtime: their values and errors, tasks, and the way over HTTP.

The name puts them behind the tests that fork this process, which wants no threads
and no memory that was used before."""

import asyncio
import http.server
import importlib
import json
import os
import pathlib
import pydoc
import sys
import threading
import time
import types
import unittest

import sources  # noqa: F401, it finds coppice_runner
from coppice_runner import callenv, hostcalls


def echo(call):
    return {"ok": True, "value": [call.kind, call.name, json.loads(call.args)]}


def failing(kind, message="why"):
    return lambda call: {"ok": False, "error_type": kind, "error": message}


class ValuesTest(unittest.TestCase):
    def setUp(self):
        names = {}
        self.addCleanup(setattr, sys, "meta_path", list(sys.meta_path))
        hostcalls.install(names, echo)
        self.tool, self.runtime = names["tool"], names["runtime"]

    def test_arguments(self):
        value = {"a": [1, 2.5, None, True, "naïve ☃ \x00\n\u2028", {}], "b": {"c": 10**30}}
        self.assertEqual(["tool", "f", value], self.tool.f(value))
        self.assertEqual(["tool", "f", {"a": 1, "b": 2}], self.tool.f({"a": 1}, b=2))
        self.assertEqual(["tool", "f", {}], self.tool.f())
        self.assertEqual(["tool", "f", {"t": [1, [2]]}], self.tool.f(t=(1, (2,))))
        self.assertEqual(["tool", "a b", {}], self.tool["a b"]())
        twice = [1]
        self.assertEqual(["tool", "f", {"a": [[1], [1]]}], self.tool.f(a=[twice, twice]), "only a value inside of itself is refused")
        self.assertEqual(["primitive", "a.b.c", {"args": [1], "kwargs": {"x": 2}}], self.runtime.a.b.c(1, x=2))
        self.assertEqual(["primitive", "a.b", {"args": [], "kwargs": {}}], self.runtime.call("a.b"))

    def test_what_can_be_called_is_seen(self):
        def host(call):
            if call.kind == "functions":
                return {"ok": True, "value": [{"name": "price", "signature": "(name: str)", "description": "What something\n costs.", "help": "Arguments:\n  name: str  Whose."}, {"name": "a-b"}]}
            if call.name == "list_primitives":
                return {"ok": True, "value": ["lib.a", "lib.in.b", "runtime.list_primitives"]}
            return {"ok": True, "value": "<spec>" + call.args, "next_steps": ["no"]}

        tool, runtime = hostcalls.Tool(host), hostcalls.Runtime(host)
        self.assertEqual(["a-b", "price"], dir(tool))
        self.assertIn("\n    tool.price(name: str): What something costs.\n    tool.a-b(...)\n", pydoc.render_doc(tool, renderer=pydoc.plaintext))
        self.assertIn("      name: str  Whose.\n", pydoc.render_doc(tool.price, renderer=pydoc.plaintext))
        self.assertEqual("tool.price(name: str): What something costs.\n\nArguments:\n  name: str  Whose.", tool.price.__doc__)
        self.assertEqual("tool.a-b(...)", tool["a-b"].__doc__)
        self.assertIn("lists no such function", tool.other.__doc__)
        self.assertEqual(["call", "lib", "list_primitives", "next_steps"], dir(runtime))
        self.assertEqual(["a", "in"], dir(runtime.lib))
        self.assertIn("lib.a, lib.in.b, runtime.list_primitives", runtime.__doc__)
        self.assertIn("below runtime.lib: a, in.", runtime.lib.__doc__)
        self.assertIn('<spec>{"args":["lib.a"]', runtime.lib.a.__doc__)
        self.assertEqual([], runtime.next_steps, "looking changes nothing")

        def gone(call):
            raise OSError("no cell is running")

        tool._transport = gone
        self.assertEqual(["a-b", "price"], dir(tool), "as it was")
        self.assertEqual(([], ["call", "next_steps"]), (dir(hostcalls.Tool(gone)), dir(hostcalls.Runtime(gone))))
        self.assertIn("The host offers none.", hostcalls.Tool(failing("X")).__doc__)

    def test_what_cannot_be_said(self):
        deep = []
        for _ in range(200):
            deep = [deep]
        loop = {}
        loop["self"] = loop
        for error, text, call in (
            (TypeError, "tool.f(): a is a set, which cannot be sent", lambda: self.tool.f(a={1})),
            (TypeError, "tool.f(): a[1]['k'] is a bytes", lambda: self.tool.f(a=[0, {"k": b""}])),
            (TypeError, "a is a datetime.date", lambda: self.tool.f(a=__import__("datetime").date(2020, 1, 1))),
            (TypeError, "a has the key 1: the keys", lambda: self.tool.f(a={1: 2})),
            (TypeError, "takes keyword arguments, or one dict", lambda: self.tool.f(1)),
            (TypeError, "takes keyword arguments, or one dict", lambda: self.tool.f({}, {})),
            (TypeError, "got 'a' twice", lambda: self.tool.f({"a": 1}, a=2)),
            (TypeError, "the name of an argument is 1", lambda: self.tool.f({1: 2})),
            (TypeError, "the name of a host function is a string", lambda: self.tool[1]),
            (TypeError, "the name of a host function is a string", lambda: self.tool[""]),
            (ValueError, "a is nan", lambda: self.tool.f(a=float("nan"))),
            (ValueError, "a[0] is -inf", lambda: self.tool.f(a=[float("-inf")])),
            (ValueError, "half of a surrogate pair", lambda: self.tool.f(a="\ud800")),
            (ValueError, "contains itself", lambda: self.tool.f(a=loop)),
            (ValueError, "nested deeper than 100 levels", lambda: self.tool.f(a=deep)),
            (ValueError, "8388608 is the most", lambda: self.tool.f(a="x" * (9 << 20))),
            (TypeError, "runtime.p(): argument 2 is a set", lambda: self.runtime.p(1, {2})),
            (TypeError, "runtime.p(): x is a set", lambda: self.runtime.p(x={2})),
            (TypeError, "the name of a primitive is a string", lambda: self.runtime.call(None)),
            (AttributeError, "_x", lambda: self.tool._x),
            (AttributeError, "_x", lambda: self.runtime._x),
            (AttributeError, "_x", lambda: self.runtime.a._x),
        ):
            with self.subTest(text), self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))

    def test_errors_of_the_host(self):
        for kind, python in (("KeyError", KeyError), ("ValueError", ValueError), ("FileNotFoundError", FileNotFoundError), ("CancelledError", hostcalls.HostCallError)):
            with self.subTest(kind), self.assertRaises(python) as caught:
                hostcalls.Tool(failing(kind)).f()
            self.assertEqual("why", str(caught.exception))
            self.assertEqual(kind, caught.exception.error_type)
            self.assertEqual(kind if python is not hostcalls.HostCallError else "HostCallError", type(caught.exception).__name__)
        # What would be taken for something else, or cannot be made of a message,
        # is an error of the host; so is what ends a program.
        for kind in ("StopIteration", "SyntaxError", "UnicodeDecodeError", "SystemExit", "KeyboardInterrupt", "print", "", None, "No.Such"):
            with self.subTest(kind), self.assertRaises(hostcalls.HostCallError):
                hostcalls.Tool(failing(kind)).f()
        with self.assertRaisesRegex(hostcalls.HostCallError, "the host gave no reason"):
            hostcalls.Tool(lambda call: {}).f()

    def test_next_steps(self):
        replies = [{"ok": True, "value": 1, "next_steps": ["look"]}, {"ok": False, "error": "no"}, {"ok": True, "value": 2}]
        runtime = hostcalls.Runtime(lambda call: replies.pop(0))
        self.assertEqual((1, ["look"]), (runtime.p(), runtime.next_steps))
        with self.assertRaises(hostcalls.HostCallError):
            runtime.p()
        self.assertEqual((2, []), (runtime.p(), runtime.next_steps))

    def test_they_describe_themselves(self):
        self.assertEqual("<function f of the host>", repr(self.tool.f))
        self.assertEqual("<primitive runtime.a.b>", repr(self.runtime.a.b))
        self.assertIn("tool.name(key=value)", repr(self.tool))
        self.assertIn("list_primitives", repr(self.runtime))

    def test_import(self):
        with self.assertRaisesRegex(ModuleNotFoundError, "tool is there in every cell and is not imported"):
            importlib.import_module("tool")
        with self.assertRaises(ModuleNotFoundError) as caught:
            importlib.import_module("runtime_of_others")
        self.assertNotIn("every cell", str(caught.exception))
        hostcalls.install({}, echo)
        self.assertEqual(1, sum(getattr(f, "__name__", "") == "_Hint" for f in sys.meta_path))


class TasksTest(unittest.TestCase):
    def test_at_the_same_time(self):
        everybody = threading.Barrier(8, timeout=30)

        def transport(call):
            everybody.wait()
            return echo(call)

        async def cell():
            tool = hostcalls.Tool(transport)
            return await asyncio.gather(*(tool.f.aio(n=n) for n in range(8)))

        self.assertEqual([["tool", "f", {"n": n}] for n in range(8)], asyncio.run(cell()))

    def test_an_error_is_raised_where_it_is_awaited(self):
        async def cell():
            with self.assertRaises(KeyError):
                await hostcalls.Tool(failing("KeyError")).f.aio()
            with self.assertRaises(TypeError):
                hostcalls.Tool(echo).f.aio(a={1})

        asyncio.run(cell())

    def test_who_is_cancelled_gives_the_call_up(self):
        begun, aborted = threading.Event(), threading.Event()

        def transport(call):
            call.abort = aborted.set
            begun.set()
            self.assertTrue(aborted.wait(30))
            return {"ok": True, "value": "too late"}

        async def cell():
            task = asyncio.ensure_future(hostcalls.Tool(transport).f.aio())
            while not begun.is_set():
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cell())
        self.assertTrue(aborted.is_set())

    def test_a_loop_that_is_closed(self):
        release, done = threading.Event(), threading.Event()

        def transport(call):
            release.wait(30)
            try:
                return {"ok": True}
            finally:
                done.set()

        loop = asyncio.new_event_loop()
        waiting = hostcalls.Tool(transport).f.aio()
        loop.run_until_complete(asyncio.wait({loop.create_task(waiting)}, timeout=0))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        release.set()
        self.assertTrue(done.wait(30))


class Host(http.server.BaseHTTPRequestHandler):
    """The host's end of the bridge: what it answers is in the server's answer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.client_address[1], self.path, self.headers["Authorization"], json.loads(body)))
        data = self.server.answer(json.loads(body))
        if data is None:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


class BridgeTest(unittest.TestCase):
    """Calls of a Jupyter kernel, over HTTP."""

    def setUp(self):
        sys.modules["coppice_hostcalls"] = hostcalls
        sys.modules["coppice_callenv"] = callenv
        self.addCleanup(sys.modules.pop, "coppice_hostcalls")
        self.addCleanup(sys.modules.pop, "coppice_callenv")
        self.kernel = types.ModuleType("coppice_cell")
        text = (pathlib.Path(__file__).resolve().parent.parent / "kernel_cell.py").read_text("utf-8")
        exec(compile(text, "<coppice>/coppice_cell.py", "exec"), self.kernel.__dict__)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host)
        self.server.daemon_threads = False  # server_close joins them
        self.server.handle_error = lambda *_: None  # whom it answers may be gone
        self.server.seen = []
        self.server.answer = lambda q: json.dumps({"ok": True, "value": q["args"]}).encode()
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.tool = self.of(self.url)

    def of(self, url):
        bridge = self.kernel.Bridge(types.SimpleNamespace(execution_count=4), url, "secret", "s")
        self.addCleanup(lambda: [connection.close() for connection in bridge._idle])
        return hostcalls.Tool(bridge)

    def test_the_wire(self):
        self.assertEqual({"a": "é"}, self.tool.f(a="é"))
        _, path, token, body = self.server.seen[0]
        self.assertEqual(("/v1/tool", "Bearer secret"), (path, token))
        self.assertEqual({"session": "s", "run": "4", "kind": "tool", "name": "f", "args": {"a": "é"}}, body)

    def test_a_connection_is_used_again_and_not_when_it_is_closed(self):
        for _ in range(3):
            self.tool.f()
        self.assertEqual(1, len({port for port, *_ in self.server.seen}))
        self.server.answer = lambda q: None
        with self.assertRaises(hostcalls.HostCallError) as caught:
            self.tool.f()
        self.assertEqual("ConnectionError", caught.exception.error_type)
        self.assertEqual(4, len(self.server.seen), "a call is sent once")
        self.server.answer = lambda q: b'{"ok": true, "value": 5}'
        self.assertEqual(5, self.tool.f())

    def test_proxies_are_not_asked(self):
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
            self.addCleanup(os.environ.pop, name, None)
            os.environ[name] = "http://127.0.0.1:1"
        self.assertEqual({}, self.tool.f())

    def test_answers_that_are_none(self):
        for data in (b"<html>", b"[]", b"", b"\xff"):
            self.server.answer = lambda q, data=data: data
            with self.subTest(data), self.assertRaisesRegex(hostcalls.HostCallError, "the host answered 200 with"):
                self.tool.f()

    def test_no_bridge(self):
        with self.assertRaisesRegex(hostcalls.HostCallError, "bridge is unavailable in this kernel"):
            self.of("").f()
        with self.assertRaisesRegex(hostcalls.HostCallError, "the host cannot be reached: ConnectionRefusedError"):
            self.of("http://127.0.0.1:1").f()

    def test_threads(self):
        everybody = threading.Barrier(6, timeout=30)

        def answer(q):
            everybody.wait()
            return json.dumps({"ok": True, "value": q["args"]["n"]}).encode()

        self.server.answer = answer
        got = {}
        threads = [threading.Thread(target=lambda n=n: got.update({n: self.tool.f(n=n)})) for n in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual({n: n for n in range(6)}, got)

    def test_a_call_that_is_given_up(self):
        begun, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def answer(q):
            begun.set()
            release.wait(30)
            return b"{}"

        self.server.answer = answer

        async def cell():
            task = asyncio.ensure_future(self.tool.f.aio())
            while not begun.is_set():
                await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(cell())
        deadline = time.monotonic() + 30
        while any(t.name == "coppice-f" for t in threading.enumerate()):
            self.assertLess(time.monotonic(), deadline, "the thread of the call still waits")
            time.sleep(0.01)

    def test_a_process_that_the_cell_forked(self):
        self.tool.f()
        pid = os.fork()
        if pid == 0:
            try:
                self.tool.f()
            except hostcalls.HostCallError as err:
                os._exit(3 if "forked" in str(err) else 4)
            finally:
                os._exit(5)
        self.assertEqual(3 << 8, os.waitpid(pid, 0)[1])
        self.assertEqual({}, self.tool.f())


class ResetTest(unittest.TestCase):
    """A reset of the names of a Jupyter kernel."""

    def test_names(self):
        sys.modules["coppice_hostcalls"] = hostcalls
        sys.modules["coppice_callenv"] = callenv
        self.addCleanup(sys.modules.pop, "coppice_hostcalls")
        self.addCleanup(sys.modules.pop, "coppice_callenv")
        kernel = types.ModuleType("coppice_cell")
        text = (pathlib.Path(__file__).resolve().parent.parent / "kernel_cell.py").read_text("utf-8")
        exec(compile(text, "<coppice>/coppice_cell.py", "exec"), kernel.__dict__)
        asked = []
        ipykernel = types.SimpleNamespace(_input_request=lambda *a: asked.append(a) or "line")
        shell = types.SimpleNamespace(user_ns={"In": []}, kernel=ipykernel)
        self.addCleanup(os.chdir, os.getcwd())
        self.addCleanup(setattr, __builtins__ if isinstance(__builtins__, types.ModuleType) else sys.modules["builtins"], "oct", oct)
        cell = kernel.Cell(shell)
        cell.reset()
        self.assertEqual({"In": []}, shell.user_ns, "nothing has run, and nothing is reset")
        cell.before(None)
        shell.user_ns.update(x=1, In=None)
        home = os.getcwd()
        os.chdir("/")
        os.environ["COPPICE_MARK"] = "1"
        import builtins

        builtins.oct, builtins.coppice_extra = None, 1
        cell.reset()
        self.assertEqual({"In": []}, shell.user_ns)
        self.assertEqual(home, os.getcwd())
        self.assertNotIn("COPPICE_MARK", os.environ)
        self.assertEqual("0o10", oct(8))
        self.assertFalse(hasattr(builtins, "coppice_extra"))

        self.assertEqual("line", ipykernel._input_request("name?"))
        self.assertEqual([("name?",)], asked)
        ipykernel._input_request = lambda *a: "\x04coppice-idle:0.5"
        cell.before(None)
        once = ipykernel._input_request
        cell.before(None)
        self.assertIs(once, ipykernel._input_request)
        with self.assertRaisesRegex(TimeoutError, "no answer came within 0.5 seconds"):
            ipykernel._input_request()
        ipykernel._input_request = lambda *a: "\x04coppice-none:the line is dead"
        cell.before(None)
        with self.assertRaisesRegex(EOFError, "there is no answer: the line is dead"):
            ipykernel._input_request()


if __name__ == "__main__":
    unittest.main()
