"""What needs no server."""

import asyncio
import datetime
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import coppice
from coppice import _asks, _epochs, _find, _http, _wire, _within
from coppice._types import cells_of, result_of, time_of

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "messages" / "testdata"


class Early(unittest.TestCase):
    def test_an_answer_is_not_lost_with_its_connection(self):
        """What a server says before it breaks off a request that is still being sent is read."""

        async def ask():
            reader = asyncio.StreamReader(limit=_http.HEAD)
            answer = asyncio.ensure_future(_http._answer(reader, asyncio.Event()))
            await asyncio.sleep(0)
            reader.feed_data(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nbody")
            await asyncio.wait([answer])
            reader.set_exception(ConnectionResetError())
            status, found, body = await answer
            return status, await _http.Response(status, found, reader, mock.Mock(), body).read()

        self.assertEqual(asyncio.run(ask()), (413, b"body"))


class Sent(unittest.TestCase):
    def test_word_to_go_on_that_comes_twice(self):
        """A server between sends word of its own, and that of the one behind it."""

        async def main():
            got = []

            async def serve(reader, writer):
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                got.append(await reader.readexactly(1))
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n")
                got.append(await reader.readuntil(b"0\r\n\r\n"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                writer.close()

            async def body():
                for _ in range(50):
                    yield b"x" * (1 << 16)
                    await asyncio.sleep(0)

            server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 26)
            async with server:
                at = _wire.Address("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], "")
                answer = await _http.request(at, None, "PUT", "/", {"Transfer-Encoding": "chunked"}, body())
                read = await answer.read()
                answer.close()
            return answer.status, read, b"".join(got).count(b"x")

        self.assertEqual(asyncio.run(main()), (200, b"ok", 50 << 16))


class Within(unittest.TestCase):
    """Waiting for so long."""

    def wait(self, *steps, seconds=None):
        """Wait for a future, at which steps are done at once: what came of it, and what was dropped."""

        async def main():
            future, dropped = asyncio.get_running_loop().create_future(), []

            async def what():
                return await future

            task = asyncio.ensure_future(_within.within(what(), seconds, dropped.append))
            for _ in range(3):  # until it waits
                await asyncio.sleep(0)
            for step in steps:
                await step(future, task)
            await asyncio.wait([task])
            return "cancelled" if task.cancelled() else task.exception() or task.result(), dropped

        return asyncio.run(main())

    async def comes(self, future, task):
        future.set_result("it")

    async def fails(self, future, task):
        future.set_exception(OSError())

    async def cancel(self, future, task):
        task.cancel()

    async def later(self, future, task):
        await asyncio.sleep(0)

    def test_what_comes_in_time(self):
        self.assertEqual(self.wait(self.comes), ("it", []))
        self.assertEqual(self.wait(self.comes, seconds=60), ("it", []))
        self.assertIsInstance(self.wait(self.fails, seconds=60)[0], OSError)

    def test_what_comes_too_late(self):
        got, dropped = self.wait(seconds=0.001)
        self.assertIsInstance(got, asyncio.TimeoutError)
        self.assertEqual(dropped, [])

    def test_no_cancellation_is_lost(self):
        """Not even when what is waited for comes at that very moment."""
        for seconds in (None, 60):
            self.assertEqual(self.wait(self.cancel, seconds=seconds), ("cancelled", []))
            self.assertEqual(self.wait(self.comes, self.cancel, seconds=seconds), ("cancelled", ["it"]))
            self.assertEqual(self.wait(self.fails, self.cancel, seconds=seconds), ("cancelled", []))
            self.assertEqual(self.wait(self.cancel, self.comes, seconds=seconds), ("cancelled", []))
            self.assertEqual(self.wait(self.comes, self.later, self.cancel, seconds=seconds), ("cancelled", ["it"]))


class Parser(unittest.TestCase):
    def test_any_cut(self):
        """However a stream is cut, the same events come of it."""
        stream = b": alive\n\nid: 1\ndata: {\"a\"\r\ndata:  1}\r\n\r\ndata:x\rdata:y\r\revent: e\n\ndata: last\n\n"
        want = [b"{\"a\"\n 1}", b"x\ny", b"last"]
        for size in range(1, len(stream) + 1):
            parser, got = _wire.Parser(), []
            for i in range(0, len(stream), size):
                got += parser.feed(stream[i : i + size])
            self.assertEqual(got, want, size)

    def test_an_event_that_is_not_ended_is_none(self):
        self.assertEqual(_wire.Parser().feed(b"data: x\n"), [])

    def test_bounded(self):
        parser = _wire.Parser()
        with mock.patch.object(_wire, "MOST", 100), self.assertRaisesRegex(coppice.CoppiceError, "longer than any may be"):
            for _ in range(100):
                parser.feed(b"data: 0123456789\n")


class Following(unittest.TestCase):
    def test_each_once_and_in_order(self):
        seen = _wire.Following("x1")
        event = lambda n, kind="stdout": json.dumps({"seq": n, "cell": 0, "type": kind, "text": str(n)}).encode()
        self.assertEqual(seen.take(event(1)).text, "1")
        self.assertIsNone(seen.take(event(1)))
        with self.assertRaisesRegex(coppice.CoppiceError, "event 3 follows event 1"):
            seen.take(event(3))
        self.assertFalse(seen.done)
        self.assertEqual(seen.take(event(2, "final")).execution, "x1")
        self.assertTrue(seen.done)
        for bad in b"{", b"[]", b'{"seq":"3","cell":0,"type":"stdout"}', b"null":
            with self.assertRaises((coppice.CoppiceError, TypeError), msg=bad):
                _wire.Following("x1").take(bad)


class Requests(unittest.TestCase):
    def test_body(self):
        body = _wire.execution_body("s", "/w", "p", "me", "1", 1.5, {"A": "b"}, {"C": "d"}, True)
        self.assertRegex(body.pop("id"), "^[0-9a-f]{32}$")
        self.assertEqual(body, {"session": "s", "cells": [{"code": "1"}], "cwd": "/w", "workspace": "p", "owner": "me", "timeout_seconds": 1.5, "env": {"A": "b"}, "call_env": {"C": "d"}, "allow_stdin": True})
        body = _wire.execution_body("s", None, "", "", "1", None, None, None, False)
        self.assertEqual(set(body), {"id", "session", "cells"})
        self.assertEqual(_wire.execution_body("s", None, "", "", "1", None, None, None, False, "ir")["kernel"], "ir")
        self.assertEqual(_wire.execution_body("s", None, "", "", "1", math.inf, None, None, False)["timeout_seconds"], -1)
        for bad in 0, -1, math.nan:
            with self.assertRaisesRegex(ValueError, "more than 0 seconds"):
                _wire.execution_body("s", None, "", "", "1", bad, None, None, False)

    def test_workspaces(self):
        nothing = (None, False, None, None, None, None, None, 0, 0, 0, "")
        self.assertEqual(_asks.workspace_body("w", *nothing), {"name": "w"})
        self.assertEqual(
            _asks.workspace_body("w", "/f", True, {"A": "b"}, [], {"l": ""}, {"files": 7}, {"level": "off"}, 9, 1.5, 0, "me", {"processes": 5}),
            {"name": "w", "folder": "/f", "keep_folder": True, "env": {"A": "b"}, "pass": [], "labels": {"l": ""}, "limits": {"files": 7},
             "total": {"processes": 5}, "isolation": {"level": "off"}, "quota_bytes": 9, "lifetime": {"end_in_seconds": 1.5}, "owner": "me"},
        )
        query = _asks.workspace_query({"a": "b=c", "d": ""}, "me")
        self.assertEqual(_wire.Address("http://x", "t").target("w", query), "/w?label=a%3Db%3Dc&label=d&owner=me")

    def test_times(self):
        want = datetime.datetime(2026, 1, 2, 3, 4, 5, 600000, datetime.timezone.utc)
        for text in "2026-01-02T03:04:05.6Z", "2026-01-02T03:04:05.600000999Z", "2026-01-02T05:04:05.6+02:00":
            self.assertEqual(time_of(text), want, text)
        self.assertEqual(time_of("2026-01-02T03:04:05Z"), want.replace(microsecond=0))

    def test_output_goes_on_behind_a_gap(self):
        seen = _asks.Printing("w", "p", 0)
        for seq, kind in (1, "stdout"), (9, "gap"), (10, "stderr"):
            self.assertEqual(seen.take(json.dumps({"seq": seq, "type": kind, "data": "YQ=="}).encode()).data, b"a")
        with self.assertRaisesRegex(coppice.CoppiceError, "event 12 follows event 10"):
            seen.take(b'{"seq":12,"type":"end"}')
        self.assertEqual(seen.take(b'{"seq":11,"type":"end","exit":{"code":3}}').exit.code, 3)
        self.assertTrue(seen.done)

    def test_cells(self):
        self.assertEqual(cells_of("a"), [{"code": "a"}])
        self.assertEqual(cells_of(["a", coppice.Cell("b", title="t")]), [{"code": "a"}, {"code": "b", "title": "t"}])

    def test_names_in_paths(self):
        self.assertEqual(_wire.session_path("a/b ?é", "/fork"), "api/sessions/a%2Fb%20%3F%C3%A9/fork")
        with self.assertRaises(ValueError):
            _wire.session_path("")

    def test_address(self):
        at = _wire.Address("https://example.com/base/", "t")
        self.assertEqual((at.host, at.port, at.tls, at.target("api/x", {"cwd": "a b"})), ("example.com", 443, True, "/base/api/x?cwd=a+b"))
        self.assertEqual(_wire.Address("http://[::1]:7", "t").headers(None)["Host"], "[::1]:7")
        for bad in "", "127.0.0.1:7788", "ftp://x", "http://":
            with self.assertRaises(ValueError, msg=bad):
                _wire.Address(bad, "t")
        with self.assertRaises(ValueError):
            _wire.Address("http://x", "a\r\nb: c")

    def test_problems(self):
        e = _wire.problem(404, b'{"error":{"code":"not_found","message":"there is no session","hint":"open it"}}')
        self.assertEqual((e.status, e.code, e.message, e.hint, str(e)), (404, "not_found", "there is no session", "open it", "there is no session; open it"))
        for text in b"", b"<html>", b"[]", b'{"error":"x"}':
            self.assertEqual(str(_wire.problem(502, text)), "the server answered with status 502")


class Patience(unittest.TestCase):
    def test_it_ends(self):
        now = [0.0]
        with mock.patch.object(_wire.time, "monotonic", lambda: now[0]):
            pause = _wire.Pause(30)
            waits = []
            with self.assertRaisesRegex(coppice.ConnectionLost, "GET x: gone"):
                while True:
                    waits.append(pause.after(OSError("gone"), "GET x"))
                    now[0] += waits[-1]
            self.assertEqual(waits[:3], [0.01, 0.02, 0.04])
            self.assertEqual(max(waits), 1.0)
            self.assertGreaterEqual(now[0], 30)

    def test_a_server_that_is_silent_is_in_reach(self):
        """A connection that lasted is no trouble, though it brought nothing."""
        now = [0.0]
        with mock.patch.object(_wire.time, "monotonic", lambda: now[0]):
            pause = _wire.Pause(30)
            pause.after(OSError(), "")
            pause.begin()
            for now[0] in (15, 31):
                pause.alive()
            pause.after(OSError(), "")  # no ConnectionLost


class Types(unittest.TestCase):
    def test_result(self):
        """The result that the server's own tests write."""
        result = result_of(json.loads((GOLDEN / "event_final.golden.json").read_text()))
        self.assertEqual((result.outcome, result.state, result.ok, result.text), ("error", "kept", False, 'a <b> & "c"'))
        self.assertEqual((result.images[0].mime, result.images[0].data), ("image/png", b"hi"))
        self.assertEqual((result.json, result.artifact), (({"a": 1},), "artifact://3"))
        cell = result.cells[0]
        self.assertEqual((cell.title, cell.error_name, cell.error_message, cell.duration), ("load", "ValueError", "boom", 0.012))
        self.assertEqual(result.cells[1].error_name, "")
        with self.assertRaises(coppice.ExecutionFailed) as caught:
            result.raise_for_outcome()
        self.assertIs(caught.exception.result, result)

    def test_events(self):
        for name, text in ("stdout", "out <&>\n"), ("display", "x"), ("error", "boom"):
            raw = json.loads((GOLDEN / f"event_{name}.golden.json").read_text())
            event = coppice.Event(raw["seq"], raw["cell"], raw["type"], "x", raw)
            self.assertEqual(event.text, text)
            self.assertIsNone(event.result)


class Find(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.addCleanup(self.home.cleanup)
        self.path = _find.record_path(self.home.name)
        self.path.parent.mkdir()

    def write(self, text, mode=0o600):
        self.path.write_text(text if isinstance(text, str) else json.dumps(text))
        self.path.chmod(mode)

    def refused(self, says):
        with self.assertRaisesRegex(coppice.NoServer, says):
            coppice.Client(home=self.home.name)

    def test_none(self):
        self.refused("no coppice serve runs; start it")

    def test_others_can_read_it(self):
        self.write({"url": "http://127.0.0.1:1", "token": "t", "pid": os.getpid()}, 0o644)
        if sys.platform != "win32":
            self.refused("can be read by others")

    def test_not_a_record(self):
        for text in "", "{", "[]", "null", "{}", '{"url":1}', " " * ((1 << 20) + 1):
            self.write(text)
            self.refused("is not the record of a server")

    def test_one_that_has_ended(self):
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        self.write({"url": "http://127.0.0.1:1", "token": "t", "pid": ended.pid})
        self.refused(f"process {ended.pid} of .* has ended")

    def test_another_process_with_its_number(self):
        self.write({"url": "http://127.0.0.1:1", "token": "t", "pid": os.getpid(), "start": "1@before"})
        if sys.platform == "linux":  # others do not tell
            self.refused("has ended")

    def test_found(self):
        self.write({"url": "http://127.0.0.1:1", "token": "t", "pid": os.getpid()})
        self.assertEqual(coppice.Client(home=self.home.name).url, "http://127.0.0.1:1")
        with mock.patch.dict(os.environ, {"COPPICE_HOME": self.home.name}):
            self.assertEqual(coppice.AsyncClient().url, "http://127.0.0.1:1")


class Epochs(unittest.TestCase):
    """What a session of a fleet is told when its node is gone."""

    @staticmethod
    def no(code, epoch, repeated=False):
        e = _wire.problem(409, json.dumps({"error": {"code": code, "message": "no", "epoch": epoch}}).encode())
        e.repeated = repeated
        return e

    def test_goes_on(self):
        key = "s", None, "", ""
        for name, seen, e, want in [
            ("not used", 0, self.no("epoch_needed", 2), True),
            ("sent before", 0, self.no("epoch_needed", 2, True), False),
            ("seen", 1, self.no("epoch_gone", 2), False),
        ]:
            with self.subTest(name):
                epochs = _epochs.Epochs()
                epochs.saw(key, seen)
                self.assertEqual(epochs.goes_on(key, epochs.headers(key), e), want)
                self.assertEqual(epochs.headers(key), {"Coppice-Epoch": "2"}, "it is told once")
                epochs.forget(key)
                self.assertEqual(epochs.headers(key), {}, "we know what is gone")

    def test_what_an_answer_says(self):
        epochs = _epochs.Epochs()
        for told in (None, "", "0", "-1", "x", "1\u0661"):
            epochs.saw(("s", None, "", ""), told)
            self.assertEqual(epochs.headers(("s", None, "", "")), {}, told)

    def test_bounded(self):
        epochs = _epochs.Epochs()
        for i in range(_epochs.MOST + 1):
            epochs.saw((str(i), None, "", ""), "1")
            epochs.saw(("0", None, "", ""), "1")
        self.assertEqual([len(epochs.headers((i, None, "", ""))) for i in ("0", "1", "2")], [1, 0, 1], "the one that was used longest ago is forgotten")


if __name__ == "__main__":
    unittest.main()
