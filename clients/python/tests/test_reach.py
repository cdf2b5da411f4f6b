"""Servers that are there and say nothing, or cannot be trusted; and those that only take their time."""

import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
import unittest
from unittest import mock

import coppice
from blocking import Blocking
from coppice import _reach, _wire
from server import PATIENCE, Server
from test_restart import EXECUTIONS, FINAL, HEALTH, OK, Async, Clients, Sync, alone, no


def slow(seconds):
    """A client that waits for an answer no longer than that."""
    return mock.patch.multiple(_reach, LEAST=seconds, ALIVE=seconds)


def plain(client):
    """A client as it is."""
    return client._client if isinstance(client, Blocking) else client


class Silent(Clients):
    """A server that is frozen: the system takes connections for it, and nobody reads."""

    def silent(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        with slow(0.1):
            return self.made(url="http://127.0.0.1:%d" % listener.getsockname()[1], token="t", patience=0.1)

    def test_all_that_is_asked_ends(self):
        for name, ask in {
            "health": lambda c: c.health(),
            "run": lambda c: c.session("s").run("1", timeout=3),
            "close": lambda c: c.session("s").close(),
            "create": lambda c: c.create_workspace("w"),
            "start": lambda c: c.workspace("w").start(["true"]),
            "wait": lambda c: c.workspace("w").process("p").wait(),
            "events": lambda c: list(c.workspace("w").process("p").events()),
            "list": lambda c: c.workspace("w").files.list(),
            "read": lambda c: c.workspace("w").files.read("f"),
            "write": lambda c: c.workspace("w").files.write("f", b"x" * (8 << 20)),
            "write what is read": lambda c: c.workspace("w").files.write("f", iter([b"x" * (8 << 20)])),
            "artifact": lambda c: c.artifact(0),
        }.items():
            with self.subTest(name), self.assertRaises(coppice.ConnectionLost):
                ask(self.silent())

    def test_a_stream_that_falls_silent(self):
        """It is connected again, at once; nothing of what it brings is lost."""
        streams, again = [], threading.Event()

        def answer(asked):
            if not asked["what"].endswith("/events"):
                return OK
            streams.append(asked)
            if len(streams) > 1:
                again.set()
                return 200, {}, FINAL
            return 200, {"Content-Length": 1000}, FINAL[:10]

        def hold(request):
            if len(streams) == 1 and not again.wait(PATIENCE):
                raise AssertionError("it is not connected again")
            end(request)

        at = self.server(answer)
        end, at.shutdown_request = at.shutdown_request, hold
        client = self.made(url=at.url, token="t", patience=PATIENCE)
        plain(client)._reach.silence = 0.1
        self.assertTrue(client.session("s").run("1").ok)

    def test_an_answer_that_takes_its_time(self):
        """What a server has begun is waited for, for as long as it answers others."""
        asked_twice, lock, count = threading.Event(), threading.Lock(), []

        def answer(asked):
            if asked["what"] == HEALTH:
                with lock:
                    count.append(1)
                    if len(count) == 2:
                        asked_twice.set()
                return OK
            if asked["what"] == EXECUTIONS:
                asked_twice.wait(PATIENCE)
                return OK
            return 200, {}, FINAL

        at = self.server(answer)
        client = self.made(url=at.url, token="t", patience=PATIENCE)
        plain(client)._reach.ask = 0.01, 0.01
        self.assertTrue(client.session("s").run("1").ok)
        self.assertEqual(at.what.count(EXECUTIONS), 1)

    def test_no_patience_still_waits_for_an_answer(self):
        self.assertEqual([_reach.Reach(p).answer for p in (0, -1, 0.1, 5, 1000, float("inf"))], [30, 30, 1, 5, 120, 120])
        self.assertEqual([_reach.Reach(p).silence for p in (0, 5, 30, 1000)], [45, 20, 45, 45])


class Untrusted(Clients):
    def certified(self):
        """A server with a certificate that nobody has signed."""
        folder = self.home()
        if not shutil.which("openssl"):
            self.skipTest("openssl makes the certificate")
        cert, key = folder + "/cert.pem", folder + "/key.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
            check=True, capture_output=True,
        )
        server = self.server(lambda asked: (200, {}, {"sessions": []}))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return server.url.replace("http://127.0.0.1", "https://localhost"), cert

    def test_a_certificate_does_not_mend_itself(self):
        url, cert = self.certified()
        client = self.made(url=url, token="t", patience=PATIENCE)
        for ask in (lambda: client.health(), lambda: client.session("s").run("1")):
            with mock.patch.object(_wire.Pause, "after", side_effect=AssertionError("it is tried again")), self.assertRaisesRegex(coppice.NoServer, "not trusted: .*SSL_CERT_FILE"):
                ask()
        with mock.patch.dict("os.environ", SSL_CERT_FILE=cert):
            self.assertEqual(self.made(url=url, token="t").sessions(), [])

    def test_tls_at_a_server_that_has_none(self):
        at = self.server(lambda asked: OK)
        with mock.patch.object(_wire.Pause, "after", side_effect=AssertionError("it is tried again")), self.assertRaisesRegex(coppice.NoServer, "is it http in place of https"):
            self.made(url=at.url.replace("http:", "https:"), token="t").health()


class Process(Clients):
    @alone
    def test_a_process_is_lost_with_its_server(self):
        token = "0123456789abcdef" * 2
        home = self.home()
        server = Server(home=home, token=token)
        self.addCleanup(lambda: server.end() if not hasattr(server, "said") else None)
        client = self.made(url=server.url, token=token, patience=PATIENCE)
        place = client.create_workspace("wk")
        process = place.start(["sleep", "100"])
        with self.assertRaises(coppice.ServerError) as caught:
            place.process("never").info()
        self.assertEqual(caught.exception.code, "not_found")
        server.end(signal.SIGKILL)
        after = Server(home=home, token=token, addr=server.url.partition("//")[2])
        self.addCleanup(after.end)
        for ask in (process.wait, process.info, process.end, lambda: list(process.events()), lambda: process.write("x"), place.process(process.id).wait):
            self.lost_process(ask)
        client.create_workspace("wk")
        self.lost_process(process.wait)
        with self.assertRaises(coppice.ServerError) as caught:
            place.process("never").info()
        self.assertEqual(caught.exception.code, "not_found")

    def lost_process(self, ask):
        with self.assertRaisesRegex(coppice.ServerError, "while the process ran: what became of it is not known") as caught:
            ask()
        self.assertEqual((caught.exception.status, caught.exception.code), (410, "lost"))


class Fleet(Clients):
    """What a client knows of sessions it knows by their names, and not by the objects that stand for them."""

    def fleet(self, *answers):
        """A node that answers so in turn: with an epoch, or that says no; with what it was sent."""
        answers = iter(answers)

        def answer(asked):
            if asked["what"] == EXECUTIONS:
                told = next(answers)
                return (200, {"Coppice-Epoch": told, "Coppice-Node": "n"}, {}) if isinstance(told, int) else told
            return (204, {}, b"") if asked["what"].startswith("DELETE") else (200, {}, FINAL)

        self.at = self.server(answer)
        return self.made(url=self.at.url, token="t")

    @staticmethod
    def says(code, epoch):
        status, headers, body = no(409, code)
        body["error"]["epoch"] = epoch
        return status, headers, body

    def sent(self, *epochs):
        self.assertEqual([a["headers"].get("Coppice-Epoch") for a in self.at.asked if a["what"] == EXECUTIONS], list(epochs))

    def test_what_an_answer_says_is_sent(self):
        client = self.fleet(3, 3, 1, 1)
        for name, kernel in ("s", ""), ("s", ""), ("t", ""), ("s", "k"):
            client.session(name, kernel=kernel).run("1")
        self.sent(None, "3", None, None)

    def test_a_node_that_is_gone_is_told_of_once(self):
        client = self.fleet(1, self.says("epoch_gone", 2), 2)
        client.session("s").run("1")
        with self.assertRaises(coppice.ServerError) as caught:
            client.session("s").run("1")
        self.assertEqual(caught.exception.code, "epoch_gone")
        self.assertTrue(client.session("s").run("1").ok)
        self.sent(None, "1", "2")

    def test_who_has_not_used_it_goes_on(self):
        client = self.fleet(self.says("epoch_needed", 2), 2)
        self.assertTrue(client.session("s").run("1").ok)
        self.sent(None, "2")

    def test_closed(self):
        client = self.fleet(1, 2)
        client.session("s").run("1")
        client.session("s").close()
        client.session("s").run("1")
        self.sent(None, None)


class Nodes(Clients):
    @unittest.skipUnless("COPPICE_FLEET" in os.environ, "it is for a fleet")
    def test_a_node_that_is_killed_is_told_of_once(self):
        """By the lines of a README: an object for each call."""
        server = Server()
        self.addCleanup(server.end)
        client = self.made(url=server.url, token=server.token, patience=PATIENCE)
        name = None
        for i in range(64):
            client.session(f"s{i}").run("x = 41")
            name = next((s.name for s in client.sessions() if s.raw.get("node", "").startswith("two-")), None)
            if name:
                break
        os.kill(json.loads(pathlib.Path(server.home, "two", ".coppice", "serve.json").read_text())["pid"], signal.SIGKILL)
        told, end = [], time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                result = client.session(name).run("'x' in globals()")
                break
            except coppice.ServerError as e:
                if e.status < 500:  # else the node is not known to be dead yet
                    told.append(e.code)
                time.sleep(0.1)
        self.assertEqual((told, result.cells[0].output), (["epoch_gone"], "False"))


class SyncSilent(Sync, Silent, unittest.TestCase):
    pass


class AsyncSilent(Async, Silent, unittest.TestCase):
    pass


class SyncUntrusted(Sync, Untrusted, unittest.TestCase):
    pass


class AsyncUntrusted(Async, Untrusted, unittest.TestCase):
    pass


class SyncProcess(Sync, Process, unittest.TestCase):
    pass


class AsyncProcess(Async, Process, unittest.TestCase):
    pass


class SyncFleet(Sync, Fleet, unittest.TestCase):
    pass


class AsyncFleet(Async, Fleet, unittest.TestCase):
    pass


class SyncNodes(Sync, Nodes, unittest.TestCase):
    pass


class AsyncNodes(Async, Nodes, unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()
