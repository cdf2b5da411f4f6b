"""Both clients against a real server: the same table of behaviours."""

import asyncio
import inspect
import math
import os
import threading
import time
import unittest

import coppice
from blocking import Blocking
from server import PATIENCE, Breaker, Server, until


def setUpModule():
    global server
    server = Server()


def tearDownModule():
    server.end()
    assert server.code in (0, 143), server.said


class Behaviours:
    """What both clients do."""

    def session(self):
        session = self.client.session(f"{type(self).__name__}/{self._testMethodName}")
        self.addCleanup(session.close)
        return session

    def test_run(self):
        session = self.session()
        self.assertEqual(session.run("x = 40").state, "fresh")
        result = session.run("print('hello'); x + 2", timeout=30)
        self.assertEqual((result.outcome, result.state, result.ok), ("ok", "kept", True))
        self.assertEqual(result.cells[0].output.split(), ["hello", "42"])
        self.assertIn("42", result.text)
        self.assertIs(result.raise_for_outcome(), result)

    def test_cells(self):
        result = self.session().run(["a = 1", coppice.Cell("1/0", title="divide"), "a"])
        self.assertEqual([c.outcome for c in result.cells], ["ok", "error", "not_started"])
        self.assertEqual((result.cells[1].title, result.cells[1].error_name), ("divide", "ZeroDivisionError"))
        with self.assertRaisesRegex(coppice.ExecutionFailed, "ZeroDivisionError"):
            result.raise_for_outcome()

    def test_timeout_and_env(self):
        session = self.session()
        result = session.run("import time; time.sleep(60)", timeout=0.3)
        self.assertEqual((result.outcome, result.state), ("timeout", "fresh"))
        colour = "import os; os.environ['COLOUR']"
        self.assertEqual(session.run(colour, env={"COLOUR": "blue"}, timeout=math.inf).cells[0].output, "'blue'")
        self.assertEqual(session.run(colour, call_env={"COLOUR": "red"}).cells[0].output, "'red'")
        self.assertEqual(session.run(colour).cells[0].output, "'blue'")

    @unittest.skipIf("COPPICE_FLEET" in os.environ, "artifacts stay on their node")
    def test_artifact(self):
        """What was too long for a result is read where the result says that it is."""
        result = self.session().run("print(('é%d\\n' % 7) * 100_000)")
        self.assertRegex(result.artifact, r"^artifact://\d+$")
        self.assertIn(result.artifact, result.text)
        text = self.client.artifact(result.artifact)
        self.assertIn("é7\n" * 100_000, text)
        self.assertEqual(self.client.artifact(int(result.artifact.rpartition("/")[2])), text)
        pieces = list(self.client.stream_artifact(result.artifact))
        self.assertGreater(len(pieces), 1)
        self.assertEqual(b"".join(pieces).decode(), text)
        breaker = Breaker(server.url, 100_000)
        self.addCleanup(breaker.end)
        self.assertEqual(self.made(url=breaker.url, token=server.token).artifact(result.artifact), text)
        self.assertGreater(breaker.broken, 0)
        with self.assertRaises(coppice.ServerError) as caught:
            self.client.artifact(10**6)
        self.assertEqual(caught.exception.code, "not_found")

    def test_stream(self):
        events = list(self.session().stream("for i in range(3): print(i, flush=True)\ni"))
        self.assertEqual([e.seq for e in events], list(range(1, len(events) + 1)))
        self.assertEqual("".join(e.text for e in events if e.type == "stdout"), "0\n1\n2\n")
        self.assertEqual([e.text for e in events if e.type == "result"], ["2"])
        self.assertEqual((events[-1].type, events[-1].result.outcome), ("final", "ok"))

    def test_leaving_cancels(self):
        session = self.session()
        began = time.monotonic()
        for event in session.stream("import time\nprint('begun', flush=True)\ntime.sleep(60)"):
            if event.text == "begun\n":
                break
        result = session.run("6 * 7", timeout=PATIENCE)
        self.assertEqual((result.outcome, result.state), ("ok", "kept"))
        self.assertLess(time.monotonic() - began, 50)

    def test_input(self):
        session = self.session()
        asked = []

        def answer(question):
            asked.append((question.prompt, question.raw.get("password", False)))
            return "Ada"

        result = session.run("import getpass\nprint(input('name? '), getpass.getpass('word? '))", answer=answer)
        self.assertTrue(result.cells[0].output.endswith("Ada Ada"), result.cells[0].output)
        self.assertEqual(asked, [("name? ", False), ("word? ", True)])
        self.assertEqual(session.run("input()").cells[0].outcome, "error")
        with self.assertRaisesRegex(ValueError, "asks nothing"):
            session.input(coppice.Event(1, 0, "stdout", "x", {}), "")

    def test_fork(self):
        session = self.session()
        session.run("x = [1]")
        copies = session.fork(2)
        for copy in copies:
            self.addCleanup(copy.close)
        self.assertEqual(len({c.name for c in copies} | {session.name}), 3)
        self.assertEqual(copies[0].run("x.append(2); x").cells[0].output, "[1, 2]")
        self.assertEqual(copies[1].run("x").cells[0].output, "[1]")

    def test_checkpoint_and_rewind(self):
        session = self.session()
        session.run("x = [1]")
        kept = session.checkpoint()
        self.assertEqual((kept.session, kept.workspace, kept.made.tzinfo is not None), (session.name, "", True))
        session.run("x.append(2)")
        session.rewind(kept)
        self.assertEqual(session.run("x").cells[0].output, "[1]")
        session.rewind(kept.id)
        self.assertIn(kept.id, [c.id for c in self.client.checkpoints()])
        self.client.drop_checkpoint(kept)
        self.assertNotIn(kept.id, [c.id for c in self.client.checkpoints()])
        with self.assertRaises(coppice.ServerError) as caught:
            session.rewind(kept)
        self.assertEqual(caught.exception.code, "not_found")

    def test_interrupt_and_reset(self):
        session = self.session()
        events = session.stream("x = 1\nprint('begun', flush=True)\nimport time; time.sleep(60)")
        for event in events:
            if event.text == "begun\n":
                session.interrupt()
        self.assertEqual((event.result.outcome, event.result.state), ("cancelled", "fresh"))
        self.assertEqual(session.run("x").cells[0].output, "1")
        session.reset()
        self.assertEqual(session.run("x").cells[0].error_name, "NameError")

    def test_sessions(self):
        session = self.session()
        session.run("1")
        info = next(s for s in self.client.sessions() if s.name == session.name)
        self.assertEqual((info.state, info.done, info.queue, info.pinned), ("idle", 1, 0, False))
        session.close()
        until(lambda: session.name not in [s.name for s in self.client.sessions()])
        session.close()  # twice is fine
        self.assertEqual(self.client.health()["status"], "ok")

    def test_kernels(self):
        session = self.session()
        session.run("x = 41")
        same = self.client.session(session.name, kernel="python3")
        self.assertEqual(same.run("x + 1").cells[0].output, "42")
        self.assertEqual(same.kernel, "python3")
        with self.assertRaisesRegex(coppice.ServerError, '"ir" is no kernel of this host'):
            self.client.session(session.name, kernel="ir").run("1")

    def test_refusals(self):
        with self.assertRaises(coppice.ServerError) as caught:
            self.client.session("..").run("1")
        self.assertEqual(caught.exception.code, "bad_request")
        with self.assertRaisesRegex(coppice.ServerError, "does not exist: .*none"):
            self.client.session("x", cwd="/none/such").run("1")
        stranger = self.made(url=server.url, token="wrong")
        with self.assertRaises(coppice.ServerError) as caught:
            stranger.sessions()
        self.assertEqual(caught.exception.status, 401)
        away = self.made(url="http://127.0.0.1:9", token="t", patience=0.2)
        with self.assertRaisesRegex(coppice.ConnectionLost, "GET api/health"):
            away.health()

    def test_broken_connections(self):
        """Each connection ends after some bytes; every event comes once, and the code runs once."""
        breaker = Breaker(server.url, 4000)
        self.addCleanup(breaker.end)
        client = self.made(url=breaker.url, token=server.token)
        session = client.session(f"{type(self).__name__}/broken")
        self.addCleanup(self.client.session(session.name).close)
        events = list(session.stream("import time\nruns = globals().get('runs', 0) + 1\nfor i in range(200): print(i, 'x' * 40, flush=True); time.sleep(.002)"))
        self.assertEqual([e.seq for e in events], list(range(1, len(events) + 1)))
        printed = "".join(e.text for e in events if e.type == "stdout").split("\n")
        self.assertEqual([line.split()[0] for line in printed if line], [str(i) for i in range(200)])
        self.assertGreater(breaker.broken, 2)
        self.assertEqual(self.client.session(session.name).run("runs").cells[0].output, "1")


class SyncTest(Behaviours, unittest.TestCase):
    def setUp(self):
        self.client = self.made(home=server.home)

    def made(self, **kwargs):
        return coppice.Client(**kwargs)

    def test_fifty_conversations(self):
        """Fifty threads, each with a session and variables of its own."""
        results = {}

        def talk(i):
            with self.client.session(f"conversation {i}") as session:
                session.run(f"x = {i}")
                results[i] = session.run("x * 2", timeout=PATIENCE).cells[0].output

        threads = [threading.Thread(target=talk, args=(i,)) for i in range(50)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(2 * PATIENCE)
        self.assertEqual(results, {i: str(2 * i) for i in range(50)})


class AsyncTest(Behaviours, unittest.TestCase):
    def setUp(self):
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        self.client = self.made(home=server.home)

    def made(self, **kwargs):
        return Blocking(coppice.AsyncClient(**kwargs), self.loop)

    def test_a_cancelled_task_cancels_the_code(self):
        client = coppice.AsyncClient(home=server.home)

        async def main():
            async with client.session("cancelled") as session:
                begun = asyncio.Event()
                task = asyncio.ensure_future(session.run("import time\nprint(1, flush=True)\ntime.sleep(60)", on_event=lambda e: e.type == "stdout" and begun.set()))
                await asyncio.wait_for(begun.wait(), PATIENCE)
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                return await asyncio.wait_for(session.run("6 * 7"), 50)

        self.assertEqual(self.loop.run_until_complete(main()).cells[0].output, "42")

    def test_fifty_conversations(self):
        """Fifty at once, each with a session and variables of its own."""

        async def main():
            async def talk(i):
                async with client.session(f"conversation {i}") as session:
                    await session.run(f"x = {i}")
                    return (await session.run("x * 2", timeout=PATIENCE)).cells[0].output

            async with coppice.AsyncClient(home=server.home) as client:
                return await asyncio.gather(*map(talk, range(50)))

        self.assertEqual(self.loop.run_until_complete(main()), [str(2 * i) for i in range(50)])


class Same(unittest.TestCase):
    def test_both_clients_have_the_same_methods(self):
        for plain, with_loop in [(getattr(coppice, n), getattr(coppice, "Async" + n)) for n in ("Client", "Session", "Workspace", "Files", "Process")]:
            names = {n for n in vars(plain) if not n.startswith("_")}
            self.assertEqual(names, {n for n in vars(with_loop) if not n.startswith("_")})
            for name in names - {"url"}:
                self.assertEqual(list(inspect.signature(getattr(plain, name)).parameters), list(inspect.signature(getattr(with_loop, name)).parameters), name)


if __name__ == "__main__":
    unittest.main()
