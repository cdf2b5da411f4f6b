"""Clients that live on while their server is started again: no code runs twice."""

import asyncio
import json
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import threading
import time
import unittest
from unittest import mock

import coppice
from blocking import Blocking
from coppice import _find, _wire
from server import PATIENCE, Breaker, Scripted, Server, until

EXECUTIONS, HEALTH = "POST /api/executions", "GET /api/health"
FINAL = b'data: {"seq":1,"cell":0,"type":"final","outcome":"ok","state":"kept","cells":[]}\n\n'
OK = (200, {}, {})


def no(status, code):
    """An answer that says no."""
    return status, {}, {"error": {"code": code, "message": "no"}}


def life(uptime, name="L1", **headers):
    """How a server is."""
    return 200, {"Coppice-Server": name, **headers}, {"status": "ok", "uptime_seconds": uptime}


def free():
    """A port that was free a moment ago."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Clients:
    """Makes a client, and ends what a test has made."""

    def home(self):
        home = tempfile.mkdtemp(prefix="coppice-restart-")
        self.addCleanup(shutil.rmtree, home, ignore_errors=True)
        return home

    def server(self, answer, port=0):
        server = Scripted(answer, port)
        self.addCleanup(server.end)
        return server

    def record(self, home, url, token, **more):
        """The record of a server that runs: of this process."""
        path = _find.record_path(home)
        path.parent.mkdir(exist_ok=True)
        new = path.with_suffix(".new")
        new.touch(0o600)
        new.write_text(json.dumps({"url": url, "token": token, "pid": os.getpid(), **more}))
        new.replace(path)

    def lost(self, says, do, *args, **kwargs):
        with self.assertRaisesRegex(coppice.ServerError, says) as caught:
            do(*args, **kwargs)
        self.assertEqual((caught.exception.status, caught.exception.code), (410, "lost"))
        self.assertIn("look at what it was to do before you run it again", caught.exception.hint)


class Again(Clients):
    """What is sent once more when a request to begin an execution got no answer."""

    def run_at(self, executions, health=(), execution=None, events=(200, {}, FINAL)):
        """Run code at a server that gives these answers in turn; with what it was asked."""
        executions, health = iter(executions), iter(health)

        def answer(asked):
            if asked["what"] == EXECUTIONS:
                return next(executions)
            if asked["what"] == HEALTH:
                return next(health)
            return events if asked["what"].endswith("/events") else execution

        self.at = self.server(answer)
        return self.made(url=self.at.url, token="t").session("s").run("1")

    def sent(self, *wanted):
        """Check what was asked, and for which life of the server; the id is one."""
        ids = {json.loads(a["body"])["id"] for a in self.at.asked if a["what"] == EXECUTIONS}
        self.assertEqual(len(ids), 1)
        got = [(a["what"].replace(ids.copy().pop(), "ID"), a["headers"].get("Coppice-Server")) for a in self.at.asked if not a["what"].endswith("/cancel")]
        self.assertEqual(got, list(wanted))

    FIRST, ASKED, LOOKED, EVENTS = (EXECUTIONS, "?"), (HEALTH, "?"), ("GET /api/executions/ID", "?"), ("GET /api/executions/ID/events", None)
    TO_L1 = (EXECUTIONS, "L1")

    def test_the_same_life(self):
        self.assertTrue(self.run_at([None, OK], [life(1000)]).ok)
        self.sent(self.FIRST, self.ASKED, self.TO_L1, self.EVENTS)

    def test_the_same_life_breaks_again(self):
        self.assertTrue(self.run_at([None, None, OK], [life(1000), None, life(1000)]).ok)
        self.sent(self.FIRST, self.ASKED, self.TO_L1, self.ASKED, self.ASKED, self.TO_L1, self.EVENTS)

    def test_started_again_and_kept(self):
        self.assertTrue(self.run_at([None], [life(1e-6)], OK).ok)
        self.sent(self.FIRST, self.ASKED, self.LOOKED, self.EVENTS)

    def test_started_again(self):
        self.lost("after the code was sent: whether it ran is not known; it is not sent a second time", self.run_at, [None], [life(1e-6)], no(404, "not_found"))
        self.sent(self.FIRST, self.ASKED, self.LOOKED)

    def test_started_again_in_between(self):
        self.lost("whether it ran is not known", self.run_at, [None, no(410, "lost")], [life(1000)], no(404, "not_found"))
        self.sent(self.FIRST, self.ASKED, self.TO_L1, self.LOOKED)
        self.assertTrue(self.run_at([None, no(410, "lost")], [life(1000)], OK).ok)  # it was kept
        self.sent(self.FIRST, self.ASKED, self.TO_L1, self.LOOKED, self.EVENTS)

    def test_others_see_to_it(self):
        """A fleet has epochs, and a server of before says nothing."""
        before = {"status": "ok"}
        for health in (life(1e-6, **{"Coppice-Node": "n"}), (200, {}, {**before, "uptime_seconds": 1e-6}), (200, {"Coppice-Server": "L1"}, before), (200, {"Coppice-Server": "L1"}, [])):
            with self.subTest(health=health):
                self.assertTrue(self.run_at([None, OK], [health]).ok)
                self.sent(self.FIRST, self.ASKED, self.FIRST, self.EVENTS)

    def test_a_server_that_says_no(self):
        for executions, health in ([None], [no(503, "draining")]), ([None, no(503, "draining")], [life(1000)]):
            with self.assertRaises(coppice.ServerError) as caught:
                self.run_at(executions, health)
            self.assertEqual((caught.exception.code, caught.exception.repeated), ("draining", True))
        with self.assertRaises(coppice.ServerError) as caught:
            self.run_at([None], [life(1e-6)], no(403, "forbidden"))
        self.assertEqual(caught.exception.code, "forbidden")

    def test_an_execution_that_is_gone(self):
        self.lost("while the code ran: what became of it is not known", self.run_at, [OK], events=no(404, "not_found"))
        with self.assertRaises(coppice.ServerError) as caught:
            self.run_at([OK], events=no(404, "unknown"))
        self.assertEqual(caught.exception.code, "unknown")

    def test_nothing_was_sent(self):
        """A server that is started a moment later just gets the code, without a question."""
        port, after = free(), _wire.Pause.after

        def start(pause, *args):
            if not hasattr(self, "at"):
                self.at = self.server(lambda asked: (200, {}, FINAL if asked["what"].endswith("/events") else {}), port)
            return after(pause, *args)

        with mock.patch.object(_wire.Pause, "after", start):
            self.assertTrue(self.made(url=f"http://127.0.0.1:{port}", token="t").session("s").run("1").ok)
        self.sent(self.FIRST, self.EVENTS)


class Found(Clients):
    """A client that was found by the record of its server follows it."""

    def opened_by(self, token):
        """A server that has this token."""
        return self.server(lambda asked: (200, {}, {"sessions": [], "id": token}) if asked["headers"]["Authorization"] == f"Bearer {token}" else no(401, "unauthorized"))

    def found(self, url, token, **more):
        self.at_home = self.home()
        self.record(self.at_home, url, token, **more)
        return self.made(home=self.at_home, patience=PATIENCE)

    def test_another_address(self):
        """Also what is not repeated goes there, when the old one is not to be reached."""
        for ask in (lambda c: c.sessions(), lambda c: c.session("s").interrupt()):
            old, new = self.opened_by("old"), self.opened_by("new")
            client = self.found(old.url, "old")
            ask(client)
            old.end()
            self.record(self.at_home, new.url, "new")
            ask(client)
            self.assertEqual((client.url, len(new.asked)), (new.url, 1))
            self.assertEqual({a["headers"]["Authorization"] for a in new.asked}, {"Bearer new"})

    def test_another_socket(self):
        new = self.opened_by("new")
        client = self.found("http://127.0.0.1:1", "old", socket=os.path.join(self.home(), "gone.sock"))
        self.record(self.at_home, new.url, "new")
        self.assertEqual(client.sessions(), [])

    def test_another_token(self):
        server = self.opened_by("new")
        client = self.found(server.url, "old")
        with self.assertRaises(coppice.ServerError) as caught:
            client.sessions()
        self.assertEqual((caught.exception.status, len(server.asked)), (401, 1))
        self.record(self.at_home, server.url, "new")
        client.session("s").interrupt()
        self.assertEqual([a["headers"]["Authorization"] for a in server.asked], ["Bearer old", "Bearer old", "Bearer new"])

    def test_what_is_read_while_it_is_sent_is_sent_once(self):
        server = self.opened_by("new")
        client = self.found(server.url, "old")
        self.record(self.at_home, server.url, "new")
        with self.assertRaises(coppice.ServerError) as caught:
            client.workspace("w").files.write("a", iter([b"x"]))
        self.assertEqual((caught.exception.status, len(server.asked)), (401, 1))
        self.assertEqual(client.sessions(), [])

    def test_patience_goes_on(self):
        """While there is no record, or one that cannot be trusted or is of a process that has ended."""
        server, after, path = self.opened_by("new"), _wire.Pause.after, []
        client = self.found("http://127.0.0.1:1", "old")
        steps = iter([
            lambda: path[0].unlink(), lambda: path[0].write_text("{"), lambda: self.record(self.at_home, server.url, "new", pid=2**22 + 1),
            lambda: self.record(self.at_home, "no address", "new"), lambda: self.record(self.at_home, server.url, "new"),
        ])
        path.append(_find.record_path(self.at_home))

        def step(pause, *args):
            self.assertEqual(client.url, "http://127.0.0.1:1")
            next(steps)()
            return after(pause, *args)

        with mock.patch.object(_wire.Pause, "after", step):
            self.assertEqual(client.sessions(), [])
        self.assertEqual(list(steps), [])

    def test_one_that_was_named_stays(self):
        server = self.opened_by("new")
        self.record(self.home(), server.url, "new")
        with self.assertRaises(coppice.ServerError):
            self.made(url=server.url, token="old").sessions()
        with self.assertRaises(coppice.ConnectionLost):
            self.made(url="http://127.0.0.1:1", token="new", patience=0.1).sessions()

    def test_code_is_not_sent_to_another_server(self):
        """However long that one has run: the first attempt did not go there."""

        def broken(asked):
            self.record(self.at_home, new.url, "new")
            threading.Thread(target=old.socket.close).start()

        new = self.server(lambda asked: life(1000, "L2") if asked["what"] == HEALTH else no(404, "not_found"))
        old = Scripted(broken)
        self.addCleanup(old.end)
        client = self.found(old.url, "old")
        self.lost("whether it ran is not known", client.session("s").run, "1")
        self.assertEqual([w.split("/")[1:3] for w in new.what], [["api", "health"], ["api", "executions"]])
        self.assertTrue(all(w.startswith("GET") for w in new.what))


#: A fleet is started again by other means.
alone = unittest.skipIf("COPPICE_FLEET" in os.environ, "it is for one server")


class Real(Clients):
    """The same with servers that are real."""

    def started(self, *flags, **kwargs):
        server = Server(*flags, **kwargs)
        self.addCleanup(lambda: server.end() if not hasattr(server, "said") else None)
        return server

    @alone
    def test_a_client_follows_its_server(self):
        home, flags = self.home(), ("--hibernate", "lossy")
        before = self.started(*flags, home=home)
        client = self.made(home=home)
        session = client.session("s")
        session.run("x = 41")
        before.end()
        after = self.started(*flags, home=home)
        result = session.run("x + 1")
        self.assertEqual((result.outcome, result.state, result.cells[0].output), ("ok", "restored", "42"))
        self.assertEqual(client.url, after.url)
        self.assertNotEqual(before.token, after.token)
        session.close()

    TOKEN = "0123456789abcdef" * 2

    def run_and_kill(self, server, url, says, then=lambda: None):
        """Run code at a server that is killed when it has left its trace, and then started again
        at the same address; the code has run once."""
        trace, failed = pathlib.Path(server.home, "trace"), []

        def kill():
            try:
                until(lambda: trace.exists() and trace.read_text())
                server.end(signal.SIGKILL)
                self.started(home=server.home, addr=server.url.partition("//")[2], token=self.TOKEN)
                then()
            except BaseException as e:
                failed.append(e)

        killing = threading.Thread(target=kill)
        killing.start()
        session = self.made(url=url, token=self.TOKEN, patience=PATIENCE).session("s")
        code = f"with open({str(trace)!r}, 'a') as f: f.write('x')\nimport time; time.sleep(600)"
        try:
            self.lost(says, session.run, code, timeout=2 * PATIENCE)
        finally:
            killing.join(2 * PATIENCE)
        self.assertEqual(failed, [])
        time.sleep(0.5)  # in which it would run again
        self.assertEqual(trace.read_text(), "x")

    @alone
    def test_killed_while_code_runs(self):
        server = self.started(home=self.home(), token=self.TOKEN)
        self.run_and_kill(server, server.url, "while the code ran")

    @alone
    def test_killed_before_the_answer(self):
        """The code has begun, and the answer that says so is lost with the server."""
        server = self.started(home=self.home(), token=self.TOKEN)
        breaker = Breaker(server.url, 1)  # of each answer one byte comes through
        self.addCleanup(breaker.end)
        self.run_and_kill(server, breaker.url, "whether it ran is not known", lambda: setattr(breaker, "most", 1 << 20))


    def test_an_answer_that_is_lost(self):
        """A server that was not started again gets the code again, and runs it once."""
        server = self.started()
        for i in range(4):  # in a fleet, at each of its nodes
            session = self.made(url=server.url, token=server.token).session(f"s{i}")
            session.run("x = 1")
            breaker = Breaker(server.url, 1)
            self.addCleanup(breaker.end)
            mending = threading.Thread(target=lambda b=breaker: (until(lambda: b.broken > 1), setattr(b, "most", 1 << 20)))
            mending.start()
            self.assertEqual(self.made(url=breaker.url, token=server.token).session(f"s{i}").run("x += 1; x").cells[0].output, "2")
            mending.join()
            session.close()


class Sync:
    def made(self, **kwargs):
        return coppice.Client(**kwargs)


class Async:
    def setUp(self):
        super().setUp()
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        self.addCleanup(lambda: self.loop.run_until_complete(self.loop.shutdown_asyncgens()))

    def made(self, **kwargs):
        return Blocking(coppice.AsyncClient(**kwargs), self.loop)


class SyncAgain(Sync, Again, unittest.TestCase):
    pass


class AsyncAgain(Async, Again, unittest.TestCase):
    pass


class SyncFound(Sync, Found, unittest.TestCase):
    pass


class AsyncFound(Async, Found, unittest.TestCase):
    pass


class SyncReal(Sync, Real, unittest.TestCase):
    pass


class AsyncReal(Async, Real, unittest.TestCase):
    pass


class Sleep(unittest.TestCase):
    def test_a_machine_that_has_slept(self):
        """The steady clock does not count while it sleeps, the other one may be set back."""
        now = {"steady": 0.0, "wall": 1000.0}
        with mock.patch.object(_wire.time, "monotonic", lambda: now["steady"]), mock.patch.object(_wire.time, "time", lambda: now["wall"]):
            at, header = _wire.Address("http://x", "t"), {"Coppice-Server": "L1"}.get
            sent = _wire.Sent()
            sent.begin(at)
            sent.fail(_wire.NotSent())
            self.assertFalse(sent.arrived)
            sent.fail(OSError())
            sent.ask(at)
            for steady, wall, uptime, want in [(5, 1005, 5, True), (5, 1005, 4.9, False), (5, 4600, 1800, False), (5, 4600, 3600, True), (5, 0, 5, True), (5, 0, 4.9, False)]:
                now.update(steady=steady, wall=wall)
                self.assertEqual(sent.again({"uptime_seconds": uptime}, header), {"Coppice-Server": "L1"} if want else None, (steady, wall, uptime))


if __name__ == "__main__":
    unittest.main()
