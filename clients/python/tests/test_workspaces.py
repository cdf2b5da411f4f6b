"""Workspaces of both clients against a real server: the same table of behaviours."""

import asyncio
import io
import os
import pathlib
import tempfile
import unittest

import coppice
from blocking import Blocking
from server import PATIENCE, PYTHON, Breaker, Server

LARGE = bytes(range(256)) * 4096 * 3  # 3 MiB


def setUpModule():
    global server
    server = Server()


def tearDownModule():
    server.end()
    assert server.code in (0, 143), server.said


class Behaviours:
    """What both clients do."""

    def setUp(self):
        super().setUp()
        self.made_up = f"{type(self).__name__}.{self._testMethodName}"
        self.place = self.client.create_workspace(self.made_up, env={"COLOUR": "blue"}, labels={"of": self.made_up})
        self.addCleanup(self.place.end)

    def refused(self, code, do, *args, **kwargs):
        with self.assertRaises(coppice.ServerError) as caught:
            do(*args, **kwargs)
        self.assertEqual(caught.exception.code, code)

    def test_a_life(self):
        info = self.place.info()
        self.assertEqual((info.name, info.labels, info.quota), (self.made_up, {"of": self.made_up}, 0))
        self.assertEqual([w.name for w in self.client.workspaces(labels={"of": self.made_up})], [self.made_up])
        self.assertEqual(self.client.workspaces(labels={"of": ""}, owner="no one"), [])
        self.client.create_workspace(self.made_up, env={"COLOUR": "blue"}, labels={"of": self.made_up})  # it is there, and alike
        self.refused("conflict", self.client.create_workspace, self.made_up, quota=1)
        self.place.end()
        self.place.end()
        with self.assertRaises(coppice.ServerError) as caught:
            self.client.workspace(self.made_up).info()
        # In a fleet, a node that did not have it knows nothing of it.
        self.assertIn(caught.exception.code, ("ended", "not_found") if "COPPICE_FLEET" in os.environ else ("ended",))
        self.refused("not_found", self.client.workspace("never").info)
        self.client.workspace("never").end()
        with self.assertRaises(ValueError):
            self.client.workspace("")

    def test_limits_of_everything_together(self):
        place = self.client.create_workspace(self.made_up + ".total", total={"output_bytes": 100000}, isolation={"private": True})
        self.addCleanup(place.end)
        self.assertEqual(place.info().total, {"output_bytes": 100000})
        self.assertEqual(self.place.info().total, {})

    def test_sessions(self):
        self.place.files.write("data.csv", "a,b\n")
        session = self.place.session("s")
        self.assertEqual(session.run("import os; print(open('data.csv').read().strip(), os.environ['COLOUR'])").cells[0].output, "a,b blue")
        self.assertNotEqual(self.client.session("s").run("import os; os.path.exists('data.csv')").cells[0].output, "True")
        self.client.session("s").close()
        self.assertEqual([(s.name, s.workspace) for s in self.client.sessions() if s.workspace == self.made_up], [("s", self.made_up)])
        kept = session.checkpoint()
        self.assertEqual(kept.workspace, self.made_up)
        session.run("x = 1")
        session.rewind(kept)
        self.assertEqual(session.run("x").cells[0].error_name, "NameError")
        copy = session.fork()[0]
        self.assertEqual(copy.run("os.environ['COLOUR']").cells[0].output, "'blue'")
        session.reset()
        session.close()

    def test_files(self):
        files = self.place.files
        made = files.write("a/é b.txt", "grün", mode="600")
        self.assertEqual((made.path, made.kind, made.size, made.mode), ("a/é b.txt", "file", 5, "0600"))
        self.assertEqual((files.read_text("a/é b.txt"), files.read("a/é b.txt")), ("grün", "grün".encode()))
        self.assertEqual(files.stat("a/é b.txt"), made)
        self.refused("exists", files.write, "a/é b.txt", b"", new=True)
        changed = files.write("a/é b.txt", b"", if_match=made.etag)
        self.assertEqual((changed.size, files.read("a/é b.txt")), (0, b""))
        self.refused("changed", files.write, "a/é b.txt", b"x", if_match=made.etag)
        files.make("d/e")
        files.make("d/e")
        self.assertEqual(files.move("a/é b.txt", "d/f").path, "d/f")
        listing = files.list()
        self.assertEqual([f.path for f in files.list("")], [f.path for f in listing])
        self.assertEqual(([f.path for f in listing], len(listing), listing.more), (["a", "d"], 2, False))
        self.assertEqual(sorted(f.path for f in files.list(depth=-1)), ["a", "d", "d/e", "d/f"])
        self.assertTrue(files.list(depth=-1, most=1).more)
        self.refused("not_empty", files.remove, "d")
        files.remove("d", all=True)
        self.refused("not_found", files.stat, "d")
        self.refused("not_found", files.read, "none")
        self.refused("outside", files.read, "../x")

    def test_large_files(self):
        files = self.place.files
        files.write("bytes", LARGE)
        files.write("open", io.BytesIO(LARGE))
        files.write("pieces", (LARGE[i : i + 100_000] for i in range(0, len(LARGE), 100_000)))
        for path in ("bytes", "open", "pieces"):
            self.assertEqual(files.read(path), LARGE, path)

        def broken():
            yield b"some"
            raise OSError("the disk is gone")

        with self.assertRaisesRegex(OSError, "the disk is gone"):
            files.write("broken", broken())
        self.refused("not_found", files.stat, "broken")
        with self.assertRaises(TypeError):
            files.write("text", io.StringIO("text"))

    def test_what_is_too_large_is_refused(self):
        small = self.client.create_workspace(self.made_up + ".small", quota=1000)
        self.addCleanup(small.end)
        self.refused("quota", small.files.write, "f", b"x" * 2000)
        self.refused("quota", small.files.write, "f", LARGE)
        self.refused("quota", small.files.write, "f", io.BytesIO(LARGE))
        self.assertEqual(len(small.files.list()), 0)

    def test_upload(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "bin" / "empty").mkdir(parents=True)
            (root / "bin" / "run").write_text("#!/bin/sh\necho run\n")
            (root / "bin" / "run").chmod(0o755)
            (root / "text").write_bytes(LARGE)
            (root / "link").symlink_to("text")
            made = self.place.files.upload(folder, "to")
            self.assertEqual(sorted(f.path for f in made), ["to/bin", "to/bin/empty", "to/bin/run", "to/text"])
            with self.assertRaises(NotADirectoryError):
                self.place.files.upload(root / "text")
        self.assertEqual(self.place.exec(["to/bin/run"]).text, "run\n")
        self.assertEqual(self.place.files.read("to/text"), LARGE)

    def test_exec(self):
        result = self.place.exec([PYTHON, "-c", "import os, sys; print(os.getcwd()); print(os.environ['COLOUR'], os.environ['WORD'], file=sys.stderr); sys.exit(3)"], env={"WORD": "it"})
        self.assertEqual((result.code, result.ok, result.text.strip(), result.stderr), (3, False, os.path.realpath(self.place.info().folder), b"blue it\n"))
        with self.assertRaisesRegex(coppice.ProcessFailed, "^exit code 3: blue it$"):
            result.raise_for_code()
        self.assertIs(self.place.exec(["true"]).raise_for_code().ok, True)
        self.refused("not_started", self.place.exec, ["no such program"])
        with self.assertRaises(TypeError):
            self.place.exec("ls -l")
        late = self.place.exec(["sleep", "600"], timeout=0.2)
        self.assertFalse(late.ok)
        self.assertTrue(late.signal and late.reason, late)

    def test_exec_with_input(self):
        self.assertEqual(self.place.exec(["cat"], input=LARGE).stdout, LARGE)
        self.assertEqual(self.place.exec(["cat"], input=io.BytesIO(LARGE)).stdout, LARGE)
        self.assertEqual(self.place.exec(["wc", "-c"], input="é").text.strip(), "2")
        self.assertEqual(self.place.exec(["cat"], input="").stdout, b"")
        self.assertEqual(self.place.exec(["head", "-c", "1"], input=LARGE).stdout, LARGE[:1])  # it does not take all

        def broken():
            yield b"some"
            raise OSError("the disk is gone")

        with self.assertRaisesRegex(OSError, "the disk is gone"):
            self.place.exec(["cat"], input=broken())
        self.assertEqual({p.state for p in self.place.processes()}, {"ended"})

    def test_a_process(self):
        process = self.place.start([PYTHON, "-uc", "for line in iter(input, 'end'): print('got', line)"], input=True, labels={"a": "b"})
        self.assertEqual((process.info().state, process.info().labels, process.info().exit), ("running", {"a": "b"}, None))
        said, wrote = b"", ["one\n", b"end\n"]
        process.write(wrote.pop(0))
        for event in process.events():
            if event.type == "stdout":
                said += event.data
                if said == b"got one\n":
                    process.write(wrote.pop(0))
        self.assertEqual((said, event.type, event.exit.code, process.wait()), (b"got one\n", "end", 0, event.exit))
        self.assertEqual([e.seq for e in process.events(event.seq - 1)], [event.seq])
        self.assertEqual([e.seq for e in process.events(event.seq)], [])
        self.refused("ended", process.write, "more")
        self.assertEqual([p.id for p in self.place.processes()], [process.id])
        self.refused("not_found", self.place.process("none").info)

    def test_a_process_is_ended(self):
        process = self.place.start(["sleep", "600"], terminal=(80, 25))
        process.resize(100, 30)
        self.refused("bad_request", process.signal, "NONE")
        process.signal("TERM")
        self.assertEqual(process.wait().signal, "terminated")
        self.assertEqual(process.end().signal, "terminated")
        cat = self.place.start(["cat"], input=True)
        cat.close_input()
        self.assertEqual(cat.wait().code, 0)
        self.assertEqual(self.place.start(["sleep", "600"]).end(0).signal, "killed")

    def test_broken_connections(self):
        """Each connection ends after some bytes, and what is read goes on."""
        self.place.files.write("large", LARGE)
        breaker = Breaker(server.url, 200_000)
        self.addCleanup(breaker.end)
        place = self.made(url=breaker.url, token=server.token).workspace(self.made_up)
        self.assertEqual(place.files.read("large"), LARGE)
        self.assertGreater(breaker.broken, 2)
        breaker.most, broken = 4000, breaker.broken
        result = place.exec([PYTHON, "-uc", "for i in range(300): print(i, 'x' * 40)"])
        self.assertEqual([int(line.split()[0]) for line in result.text.splitlines()], list(range(300)))
        self.assertGreater(breaker.broken - broken, 1)  # what is ready at once comes in few answers


class SyncTest(Behaviours, unittest.TestCase):
    def setUp(self):
        self.client = self.made(home=server.home)
        super().setUp()

    def made(self, **kwargs):
        return coppice.Client(**kwargs)

    def test_the_first_lines(self):
        """What docs/clients.md shows does what it says."""
        text = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "clients.md").read_text(encoding="utf-8")
        code = text.split("```python\n")[1].split("```")[0]
        told = []
        os.environ["COPPICE_HOME"], before = server.home, os.environ.get("COPPICE_HOME")
        try:
            exec(compile(code, "docs/clients.md", "exec"), {"print": lambda *args: told.append(" ".join(map(str, args)))})
        finally:
            os.environ.pop("COPPICE_HOME")
            if before is not None:
                os.environ["COPPICE_HOME"] = before
        self.assertEqual(told, ["ok 6", "6", "3 numbers.txt"])


class AsyncTest(Behaviours, unittest.TestCase):
    def setUp(self):
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)
        self.client = self.made(home=server.home)
        super().setUp()

    def made(self, **kwargs):
        return Blocking(coppice.AsyncClient(**kwargs), self.loop)

    def test_what_comes_from_a_loop_is_written(self):
        async def pieces():
            for piece in (b"a", b"", b"b"):
                await asyncio.sleep(0)
                yield piece

        async def main():
            place = coppice.AsyncClient(home=server.home).workspace(self.made_up)
            await place.files.write("f", pieces())
            return await place.files.read("f"), (await place.exec(["cat"], input=pieces())).stdout

        self.assertEqual(self.loop.run_until_complete(main()), (b"ab", b"ab"))

    def test_a_cancelled_task_ends_the_program(self):
        async def main():
            place = coppice.AsyncClient(home=server.home).workspace(self.made_up)
            task = asyncio.ensure_future(place.exec(["sleep", "600"]))
            while not await place.processes():
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.wait_for(task, PATIENCE)
            process = (await place.processes())[0]
            return (await asyncio.wait_for(place.process(process.id).wait(), PATIENCE)).signal

        self.assertEqual(self.loop.run_until_complete(main()), "killed")

    def test_a_cancelled_start_ends_the_program(self):
        class Slow(coppice.AsyncClient):
            """It learns that a program has started later than that is so."""

            async def _open(self, method, path, *args, **kwargs):
                response = await super()._open(method, path, *args, **kwargs)
                if (method, path.rpartition("/")[2]) == ("POST", "processes"):
                    self.asked.set()
                    await self.answered.wait()
                return response

        async def main():
            client = Slow(home=server.home)
            client.asked, client.answered = asyncio.Event(), asyncio.Event()
            place = client.workspace(self.made_up)
            task = asyncio.ensure_future(place.exec(["sleep", "600"]))
            await asyncio.wait_for(client.asked.wait(), PATIENCE)
            task.cancel()
            await asyncio.sleep(0)
            client.answered.set()
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.wait_for(task, PATIENCE)
            return [(p.state, p.exit.signal) for p in await place.processes()]

        self.assertEqual(self.loop.run_until_complete(main()), [("ended", "killed")])


if __name__ == "__main__":
    unittest.main()
