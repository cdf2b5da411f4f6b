"""Questions of input(), while their server is started again or their code ends."""

import asyncio
import json
import signal
import time
import unittest

import coppice
from server import PATIENCE, Server, until
from test_restart import OK, Async, Clients, Sync, alone, no


def question(seq, id="q", prompt="?"):
    """An event that asks."""
    return b'data: {"seq":%d,"cell":0,"type":"input_request","id":"%s","prompt":"%s"}\n\n' % (seq, id.encode(), prompt.encode())


def final(seq):
    """The last event."""
    return b'data: {"seq":%d,"cell":0,"type":"final","outcome":"ok","state":"kept","text":"done","cells":[]}\n\n' % seq


class Answers(Clients):
    def at(self, *connections, status=(200, {}, {"status": "accepted"})):
        """A client of a server whose connections bring these events in turn, and that says this to an answer."""
        connections = iter(connections)

        def answer(asked):
            if asked["what"].endswith("/input"):
                return status
            if not asked["what"].endswith("/events"):
                return OK
            events = next(connections)
            return 200, {}, events() if callable(events) else events

        self.server_at = self.server(answer)
        return self.made(url=self.server_at.url, token="t").session("s")

    def answers(self):
        """How many answers were sent."""
        return sum(what.endswith("/input") for what in self.server_at.what)

    def test_a_server_that_does_not_know_the_code_any_more(self):
        self.lost("while the code ran", self.at(question(1), status=no(404, "not_found")).run, "1", answer=lambda q: "x")
        session = self.at(question(1), status=no(404, "not_found"))
        self.lost("while the code ran", lambda: [session.input(event, "x") for event in session.stream("1", allow_stdin=True)])

    def test_an_answer_to_code_that_nobody_follows(self):
        event = coppice.Event(seq=1, cell=0, type="input_request", execution="e", raw={"id": "q"})
        with self.assertRaises(coppice.ServerError) as caught:
            self.at(status=no(404, "not_found")).input(event, "x")
        self.assertEqual(caught.exception.code, "not_found")

    def test_a_question_that_was_answered_is_not_asked_again(self):
        def more():
            until(self.answers)
            return question(2) + question(3, "other") + final(4)

        asked = []
        session = self.at(question(1), more)
        result = session.run("1", answer=lambda q: asked.append(q.raw["id"]) or "x")
        self.assertEqual((result.text, asked), ("done", ["q", "other"]))
        self.assertEqual([json.loads(a["body"])["id"] for a in self.server_at.asked if a["what"].endswith("/input")].count("q"), 1)
        session, seen = self.at(question(1), more), []
        for event in session.stream("1", allow_stdin=True):
            seen.append(event.seq)
            if event.type == "input_request":
                session.input(event, "x")
        self.assertEqual(seen, [1, 3, 4])

    def test_a_later_question_that_has_its_id(self):
        """A server that takes over counts its questions anew."""
        for more in question(2, prompt="Name?") + final(3), b'data: {"seq":2,"cell":0,"type":"stdout","text":"x"}\n\n' + question(3) + final(4):
            session, answers = self.at(question(1), more), []
            for event in session.stream("1", allow_stdin=True):
                if event.type == "input_request":
                    answers.append(session.input(event, "x"))
            self.assertEqual(answers, ["accepted"] * 2)

    def test_a_question_that_was_not_answered_is(self):
        session = self.at(question(1), question(2) + final(3), status=(200, {}, {"status": "unknown"}))
        self.assertEqual([e.seq for e in session.stream("1", allow_stdin=True)], [1, 2, 3])

    def test_an_answer_whose_receipt_is_lost(self):
        """It is sent again: it is taken once."""
        told = iter([None, (200, {}, {"status": "already answered"})])
        at = self.server(lambda asked: next(told) if asked["what"].endswith("/input") else (200, {}, question(1) + final(2)) if asked["what"].endswith("/events") else OK)
        session = self.made(url=at.url, token="t").session("s")
        self.assertEqual([session.input(e, "x") for e in session.stream("1", allow_stdin=True) if e.type == "input_request"], ["already answered"])

    @alone
    def test_killed_while_an_answer_is_thought_of(self):
        token, home = "0123456789abcdef" * 2, self.home()
        server = Server(home=home, token=token)

        def think(question):
            server.end(signal.SIGKILL)
            after = Server(home=home, token=token, addr=server.url.partition("//")[2])
            self.addCleanup(after.end)
            return "x"

        self.lost("while the code ran", self.made(url=server.url, token=token, patience=PATIENCE).session("s").run, "input('?')", answer=think)


class Cancelled(Async, Clients, unittest.TestCase):
    """What a task makes at the server is undone when it is cancelled: no one else would know of it."""

    def left(self, make, said, undone):
        """Cancel a task that has asked for something, and see that it is undone."""

        def answer(asked):
            if asked["what"].startswith("POST"):
                self.loop.call_soon_threadsafe(running.cancel)
                time.sleep(0.1)  # the answer comes after it
            return 200, {}, said

        at = self.server(answer)

        async def run():
            nonlocal running
            running = asyncio.ensure_future(make(coppice.AsyncClient(at.url, "t")))
            with self.assertRaises(asyncio.CancelledError):
                await running

        running = None
        self.loop.run_until_complete(asyncio.wait_for(run(), PATIENCE))
        self.assertEqual(at.what[1:], undone)

    def test_what_was_begun_is_undone(self):
        exit = {"code": -1, "signal": "KILL"}
        self.left(lambda c: c.workspace("w").start(["cat"]), {"id": "p", "exit": exit}, ["DELETE /api/workspaces/w/processes/p?grace=0"])
        self.left(lambda c: c.workspace("w").exec(["cat"]), {"id": "p", "exit": exit}, ["DELETE /api/workspaces/w/processes/p?grace=0"])
        self.left(lambda c: c.session("s").fork(2), {"sessions": [{"session": "a"}, {"session": "b"}]}, ["DELETE /api/sessions/a", "DELETE /api/sessions/b"])
        kept = {"id": "c", "session": "s", "cwd": "/", "made": "2026-01-01T00:00:00Z"}
        self.left(lambda c: c.session("s").checkpoint(), kept, ["DELETE /api/checkpoints/c"])

    def test_what_was_not_sent_is_not_waited_for(self):
        async def run():
            running = asyncio.ensure_future(coppice.AsyncClient("http://127.0.0.1:1", "t").workspace("w").start(["cat"]))
            await asyncio.sleep(0.05)
            running.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await running

        self.loop.run_until_complete(asyncio.wait_for(run(), 5))


class SyncAnswers(Sync, Answers, unittest.TestCase):
    pass


class AsyncAnswers(Async, Answers, unittest.TestCase):
    def pending(self, *connections, until=lambda: None, **kwargs):
        """Run code whose question nobody answers; with what became of asking."""
        self.at(*connections, **kwargs)

        async def run():
            became, client = [], coppice.AsyncClient(self.server_at.url, "t")

            async def answer(question):
                became.append("asked")
                try:
                    await asyncio.Event().wait()
                finally:
                    became.append("left")

            running = asyncio.ensure_future(client.session("s").run("1", answer=answer))
            while not became:
                await asyncio.sleep(0.01)
            await until(running) if until.__code__.co_argcount else None
            try:
                return (await running).text, became
            except asyncio.CancelledError:
                return "cancelled", became

        return self.loop.run_until_complete(asyncio.wait_for(run(), PATIENCE))

    def test_a_result_that_comes_before_the_answer(self):
        self.assertEqual(self.pending(question(1), question(2) + final(3)), ("done", ["asked", "left"]))
        self.assertEqual(self.answers(), 0)

    def test_cancelled_while_it_is_asked(self):
        async def cancel(running):
            running.cancel()

        self.assertEqual(self.pending(question(1), *[b""] * 1000, until=cancel), ("cancelled", ["asked", "left"]))
        self.assertTrue(self.server_at.what[-1].endswith("/cancel"))

    def test_an_answer_that_raises(self):
        def answer(question):
            raise LookupError("no one is there")

        with self.assertRaisesRegex(LookupError, "no one is there"):
            self.at(question(1), *[b""] * 1000).run("1", answer=answer)
        self.assertTrue(self.server_at.what[-1].endswith("/cancel"))


if __name__ == "__main__":
    unittest.main()
