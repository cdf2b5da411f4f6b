"""What a program gives: text, code, content, names and a token."""

import io
import os
import unittest
from unittest import mock

import coppice
from coppice import _asks
from test_restart import OK, Async, Clients, Sync


class Given(Clients):
    """What is refused before it is sent, and what is said of it."""

    def test_what_is_no_text(self):
        at = self.server(lambda asked: OK)
        client = self.made(url=at.url, token="t")
        session, place = client.session("s"), client.workspace("w")
        question = coppice.Event(seq=1, cell=0, type="input_request", execution="e", raw={"id": "q"})
        for ask in (
            lambda: session.run("print('\ud800')"), lambda: session.run([coppice.Cell("1", title="\udfff")]), lambda: session.run("1", env={"A": "\ud800"}),
            lambda: session.input(question, "\ud800"), lambda: place.process("p").write("\ud800"), lambda: place.files.write("f", "\ud800"),
            lambda: place.start(["\ud800"]),
        ):
            with self.assertRaisesRegex(ValueError, r"is not valid Unicode text: '\\ud[8f][0f][0f]' at character \d+"):
                ask()
        for ask in (lambda: session.run([coppice.Cell(5)]), lambda: session.input(question, 5)):
            with self.assertRaisesRegex(TypeError, "is text, not 5"):
                ask()
        self.assertEqual(at.asked, [])

    def test_what_is_no_code(self):
        at = self.server(lambda asked: OK)
        session = self.made(url=at.url, token="t").session("s")
        for code in b"x", 3, None, [b"x"], ["1", None], {"code": "1"}:
            with self.assertRaisesRegex(TypeError, "^code is text, a Cell, or a list of those, not "):
                session.run(code)
        self.assertEqual(at.asked, [])

    def test_what_is_no_content(self):
        at = self.server(lambda asked: OK)
        place = self.made(url=at.url, token="t").workspace("w")
        with self.assertRaisesRegex(TypeError, "an open binary file or pieces of bytes, not <_io.StringIO .*>: open it with mode 'rb'"):
            place.files.write("t", io.StringIO("x"))
        for content in 5, None, {"a": 1}:
            with self.assertRaisesRegex(TypeError, "^what is written is text, bytes, an open binary file or pieces of bytes, not "):
                place.files.write("t", content)
        for ask in (lambda: place.process("p").write(5), lambda: place.exec(["cat"], input=5)):
            with self.assertRaisesRegex(TypeError, "^what is written is text, bytes, "):
                ask()
        self.assertEqual(at.asked, [])
        for content in ["x"], [5]:
            with self.assertRaisesRegex(_asks.SourceFailed, "^what is written comes in pieces of bytes, not "):
                b"".join(_asks.pieces(content))

    def test_a_name_that_is_no_text(self):
        at = self.server(lambda asked: OK)
        client = self.made(url=at.url, token="t")
        place = client.workspace("w")
        for ask in (
            lambda: client.session("\ud800"), lambda: client.workspace("\ud800"), lambda: place.process("\ud800"), lambda: place.files.write("\ud800", "x"),
            lambda: place.files.read("\ud800"), lambda: place.files.stat("\ud800"), lambda: place.files.list("\ud800"), lambda: place.files.remove("\ud800"),
            lambda: place.files.move("a", "\ud800"), lambda: place.files.make("\ud800"), lambda: client.session("s", cwd="\ud800").run("1"),
            lambda: client.session("s", cwd="\ud800").interrupt(), lambda: client.session("s").save("\ud800"), lambda: client.drop_checkpoint("\ud800"),
        ):
            with self.assertRaisesRegex(ValueError, r"is not valid Unicode text: '\\ud800' at character \d+ stands for no character"):
                ask()
        for ask in (lambda: client.session(5), lambda: client.workspace(b"w"), lambda: place.process(5)):
            with self.assertRaisesRegex(TypeError, "is text, not "):
                ask()
        self.assertEqual(at.asked, [])

    def test_a_token_that_is_missing(self):
        at = self.server(lambda asked: (200, {}, {"sessions": []}))
        with mock.patch.dict("os.environ"):
            os.environ.pop("COPPICE_TOKEN", None)
            with self.assertRaisesRegex(ValueError, f"the server at {at.url} wants a token: give token=..., or set COPPICE_TOKEN"):
                self.made(url=at.url)
            self.made(url=at.url, token="").sessions()
            os.environ["COPPICE_TOKEN"] = "of the environment"
            self.made(url=at.url).sessions()
            self.made(url=at.url, token="given").sessions()
        self.assertEqual([a["headers"]["Authorization"] for a in at.asked], ["Bearer ", "Bearer of the environment", "Bearer given"])

    def test_an_input_that_is_closed(self):
        for process, says in ({"input": True}, "^the input of the process is closed$"), ({"terminal": True}, "^the input of the process is closed$"), ({}, 'start it with "input"'):
            told = {"error": {"code": "no_input", "message": "the process takes no input", "hint": 'start it with "input": true, or with a terminal'}}
            place = self.made(url=self.server(lambda asked: (200, {}, process) if asked["what"].startswith("GET") else (409, {}, told)).url, token="t").workspace("w")
            for ask in (lambda: place.process("p").write("x"), lambda: place.process("p").close_input()):
                with self.assertRaisesRegex(coppice.ServerError, says) as caught:
                    ask()
                self.assertEqual((caught.exception.status, caught.exception.code), (409, "no_input"))

    def test_a_timeout(self):
        client = self.made(url="http://127.0.0.1:1", token="t")
        for run in (lambda t: client.session("s").run("1", timeout=t), lambda t: client.workspace("w").start(["true"], timeout=t)):
            for timeout in ("5", True, [5]):
                with self.assertRaisesRegex(TypeError, "a timeout is a number of seconds, not "):
                    run(timeout)
            for timeout in (0, -1, float("nan")):
                with self.assertRaisesRegex(ValueError, "a timeout is more than 0 seconds"):
                    run(timeout)

    def test_the_name_of_an_artifact(self):
        client = self.made(url="http://127.0.0.1:1", token="t")
        for name in ("", "artifact://", "x", "-1", "artifact://../x", True, "artifact://0?first=1"):
            with self.assertRaisesRegex(ValueError, "names no artifact: one is like artifact://0"):
                client.artifact(name)


class SyncGiven(Sync, Given, unittest.TestCase):
    pass


class AsyncGiven(Async, Given, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
