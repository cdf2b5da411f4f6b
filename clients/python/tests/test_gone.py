"""Servers that are not there yet, and those that were started again without what they had."""

import socketserver
import threading
import unittest
from unittest import mock

import coppice
from coppice import _wire
from server import PATIENCE, Scripted, Server
from test_restart import EXECUTIONS, OK, Async, Clients, Sync, alone, free

FILE = {"path": "f", "kind": "file", "size": 1, "mode": "0644", "modified": "2026-01-01T00:00:00Z"}
SESSION = {"session": "t", "id": "c", "made": "2026-01-01T00:00:00Z", "cwd": "/", "sessions": [], "taken": 1, "status": "accepted", **FILE}
QUESTION = coppice.Event(seq=1, cell=0, type="input_request", execution="e", raw={"id": "q"})

#: What is sent once, and not again when it is not known what became of it.
ONCE = {
    "close": lambda c: c.session("s").close(),
    "interrupt": lambda c: c.session("s").interrupt(),
    "reset": lambda c: c.session("s").reset(),
    "fork": lambda c: c.session("s").fork(),
    "checkpoint": lambda c: c.session("s").checkpoint(),
    "start": lambda c: c.workspace("w").start(["true"]),
    "input": lambda c: c.workspace("w").process("p").write("x"),
    "write what is read": lambda c: c.workspace("w").files.write("f", iter([b"x"])),
    "move": lambda c: c.workspace("w").files.move("f", "g"),
    "remove": lambda c: c.workspace("w").files.remove("f"),
}


class Unreached(Clients):
    """A connection that was never made is made again for each request; nothing was sent."""

    def test_a_server_that_comes_later(self):
        for name, ask in {**ONCE, "answer": lambda c: c.session("s").input(QUESTION, "x"), "list": lambda c: c.sessions()}.items():
            with self.subTest(name):
                port, after, made = free(), _wire.Pause.after, []

                def start(pause, *args):
                    if not made:
                        made.append(self.server(lambda asked: (200, {}, SESSION), port))
                    return after(pause, *args)

                with mock.patch.object(_wire.Pause, "after", start):
                    ask(self.made(url=f"http://127.0.0.1:{port}", token="t"))
                self.assertEqual(len(made[0].asked), 1)

    def test_a_socket_that_comes_later(self):
        path, after = self.home() + "/s", _wire.Pause.after

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                while self.rfile.readline().strip():
                    pass
                self.wfile.write(b"HTTP/1.1 204 No Content\r\n\r\n")

        def start(pause, *args):
            server = socketserver.UnixStreamServer(path, Handler)
            self.addCleanup(server.server_close)
            threading.Thread(target=server.handle_request).start()
            return after(pause, *args)

        home = self.home()
        self.record(home, "http://127.0.0.1:1", "t", socket=path)
        with mock.patch.object(_wire.Pause, "after", start):
            self.made(home=home).session("s").interrupt()

    def test_what_may_have_arrived_is_not_sent_again(self):
        for name, ask in ONCE.items():
            with self.subTest(name):
                at = self.server(lambda asked: None)
                with self.assertRaises(coppice.ConnectionLost):
                    ask(self.made(url=at.url, token="t"))
                self.assertEqual(len(at.asked), 1)

    def test_what_helps(self):
        home, socket = self.home(), self.home() + "/gone"
        self.record(home, "http://127.0.0.1:1", "t", socket=socket)
        for client, where in (self.made(home=home, patience=0.1), f"the socket {socket}"), (self.made(url="http://127.0.0.1:1", token="t", patience=0.1), "http://127.0.0.1:1"):
            for ask in lambda: client.session("s").run("1"), lambda: client.session("s").interrupt(), lambda: client.health():
                with self.assertRaisesRegex(coppice.ConnectionLost, f": no server runs at {where}; start one with coppice serve$"):
                    ask()

    def test_a_code_that_is_left_while_no_server_runs(self):
        """Whoever leaves does not wait for a server only to cancel what that does not have any more."""
        at = Scripted(lambda asked: (200, {}, b'data: {"seq":1,"cell":0,"type":"stdout","text":"x"}\n\n') if asked["what"].endswith("/events") else OK)

        def leave(event):
            at.end()
            raise LookupError

        with mock.patch.object(_wire.time, "sleep", side_effect=AssertionError("it waits")), self.assertRaises(LookupError):
            self.made(url=at.url, token="t", patience=PATIENCE).session("s").run("1", on_event=leave)


class Fresh(Clients):
    """A server that was started again cannot say what its sessions had."""

    AGAIN = "the server was started again, and does not have what the session had"
    NOTE = f"[This call got a new kernel: {AGAIN}. The variables of earlier calls are gone.]"

    def told(self, *lives, session=lambda c: c.session("s")):
        """The reason and the text of each result at servers that answer so in turn: with a life, a state, and what
        else the result has. A function is done in between."""
        results, turn = [], {}

        def answer(asked):
            if asked["what"] == EXECUTIONS:
                return 200, turn["headers"], {}
            if asked["what"].endswith("/events"):
                event = {"seq": 1, "cell": 0, "type": "final", "outcome": "ok", "text": "hi", "cells": [], **turn["final"]}
                return 200, {}, b"data: " + _wire.encode(event) + b"\n\n"
            return 204, {}, b""

        client = self.made(url=self.server(answer).url, token="t")
        for one in lives:
            if callable(one):
                one(client)
                continue
            life, state, *more = one
            turn["headers"] = life if isinstance(life, dict) else {"Coppice-Server": life}
            turn["final"] = {"state": state, **(more[0] if more else {})}
            result = session(client).run("1")
            results.append((result.reason, result.text))
        return results[-1]

    def test_variables_that_are_gone(self):
        said = (self.AGAIN, f"{self.NOTE}\n\nhi")
        self.assertEqual(self.told(("L1", "fresh"), ("L2", "fresh")), said)
        self.assertEqual(self.told(("L1", "fresh"), ("L1", "kept"), ("L2", "fresh")), said)
        self.assertEqual(self.told(("L1", "fresh"), ("L2", "kept"), ("L3", "fresh")), said)
        self.assertEqual(self.told(("L1", "fresh"), ("L2", "", {"outcome": "not_started"}), ("L2", "fresh")), said)
        self.assertEqual(self.told(("L1", "fresh"), ("L2", "fresh", {"text": ""})), (self.AGAIN, self.NOTE))

    def test_what_is_as_expected(self):
        plain, node = ("", "hi"), {"Coppice-Server": "L2", "Coppice-Node": "n"}
        for turns in (
            [("L1", "fresh")], [("L1", "fresh"), ("L1", "fresh")], [("L1", "fresh"), ("L2", "kept")], [("L1", "fresh"), ("L2", "restored")],
            [("L1", "fresh"), ("L2", "fresh"), ("L2", "kept")], [("L1", "fresh"), ("L1", "lost"), ("L2", "fresh")], [("L1", ""), ("L2", "fresh")],
            [("L1", "fresh"), lambda c: c.session("s").close(), ("L2", "fresh")], [("L1", "fresh"), lambda c: c.session("s").reset(), ("L2", "fresh")],
            [({}, "fresh"), ("L2", "fresh")], [("L1", "fresh"), ({}, "fresh")], [("L1", "fresh"), (node, "fresh")],
        ):
            self.assertEqual(self.told(*turns), plain, turns)
        self.assertEqual(self.told(("L1", "fresh"), ("L2", "fresh", {"reason": "it was idle"})), ("it was idle", "hi"))
        inside = lambda c: c.workspace("w").session("s")  # noqa: E731
        self.assertEqual(self.told(("L1", "fresh"), ("L2", "fresh"), session=inside)[0], self.AGAIN)
        self.assertEqual(self.told(("L1", "fresh"), lambda c: c.workspace("w").end(), ("L2", "fresh"), session=inside), plain)

    @alone
    def test_started_again(self):
        token, home = "0123456789abcdef" * 2, self.home()
        before = Server(home=home, token=token)
        client = self.made(url=before.url, token=token, patience=PATIENCE)
        client.session("s").run("x = 1")
        client.session("closed").run("x = 1")
        client.session("closed").close()
        before.end()
        after = Server(home=home, token=token, addr=before.url.partition("//")[2])
        self.addCleanup(after.end)
        result = client.session("s").run("'x' in dir()")
        self.assertEqual((result.state, result.reason, result.text), ("fresh", self.AGAIN, f"{self.NOTE}\n\nFalse"))
        for name in "s", "closed", "new":
            self.assertEqual((client.session(name).run("1").reason), "")


class SyncUnreached(Sync, Unreached, unittest.TestCase):
    pass


class AsyncUnreached(Async, Unreached, unittest.TestCase):
    pass


class SyncFresh(Sync, Fresh, unittest.TestCase):
    pass


class AsyncFresh(Async, Fresh, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
