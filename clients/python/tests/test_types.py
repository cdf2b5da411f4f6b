"""What a server tells, as values."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import coppice
from coppice import Event, LimitExceeded, ServerError
from coppice._types import result_of, session_of


class Results(unittest.TestCase):
    def test_why_it_ended_so(self):
        plain = result_of({"outcome": "ok", "state": "kept", "stdin_requested": False})
        self.assertEqual(("", None, False, None, None), (plain.reason, plain.retry_after_ms, plain.stdin_requested, plain.resource_limit_exceeded, plain.restored))
        refused = result_of({"outcome": "not_started", "reason": "no place", "retry_after_ms": 1500})
        self.assertEqual(("no place", 1500, 1.5), (refused.reason, refused.retry_after_ms, refused.retry_after))
        lost = result_of({
            "outcome": "lost", "state": "lost", "stdin_requested": True, "reason": "killed",
            "resource_limit_exceeded": {"limit": "memory", "detail": "of the workspace", "stderr": "MemoryError"},
        })
        self.assertEqual(LimitExceeded("memory", "of the workspace", "MemoryError"), lost.resource_limit_exceeded)
        self.assertTrue(lost.stdin_requested)
        self.assertEqual(LimitExceeded("cpu", "", ""), result_of({"outcome": "error", "resource_limit_exceeded": {"limit": "cpu"}}).resource_limit_exceeded)

    def test_what_is_there_again(self):
        memory = result_of({
            "outcome": "ok", "state": "restored",
            "restored": {"kept": ["x"], "lost": [{"name": "f", "type": "file", "reason": "it is open"}], "at": "2026-01-01T00:00:00Z", "notes": ["n"]},
        }).restored
        self.assertEqual((("x",), "f", ("n",)), (memory.kept, memory.lost[0].name, memory.notes))


class Events(unittest.TestCase):
    def test_an_event_shows_what_it_says(self):
        def shown(**raw):
            return repr(Event(seq=1, cell=0, type=raw["type"], execution="e", raw=raw))

        self.assertEqual("Event(seq=1, cell=0, type='stdout', execution='e', text='hi\\n')", shown(type="stdout", text="hi\n"))
        self.assertIn(f"text={'x' * 60!r}...)", shown(type="stdout", text="x" * 61))
        self.assertIn("text='Name? ')", shown(type="input_request", prompt="Name? ", id="1"))
        self.assertIn("text='3')", shown(type="result", data={"text/plain": "3"}))


class Sessions(unittest.TestCase):
    def test_a_session_has_a_name(self):
        info = session_of({"session": "s", "cwd": "/", "state": "idle"})
        self.assertEqual(("s", "s"), (info.name, info.session))


class Errors(unittest.TestCase):
    def test_a_word_for_programs_is_no_next_step(self):
        for hint in "busy", "off", "lossy", "exists", "threads", "":
            error = ServerError(409, "fork_refused", "it cannot be copied", hint)
            self.assertEqual(("it cannot be copied", hint), (str(error), error.hint))
        self.assertEqual("it is full; make room", str(ServerError(413, "no_space", "it is full", "make room")))


#: What a program in which all has a type may write.
TYPED = """
import contextlib
import coppice


def plain(client: coppice.Client, process: coppice.Process) -> None:
    for events in (client.session("s").stream("1"),):
        with contextlib.closing(events):
            print(next(events).type)
    with contextlib.closing(process.events()) as printed:
        print(next(printed).data)
    client.stream_artifact(0).close()
    client.workspace("w").files.stream("f").close()


async def later(client: coppice.AsyncClient, process: coppice.AsyncProcess) -> None:
    events = client.session("s").stream("1")
    print((await events.__anext__()).type)
    await events.aclose()
    await process.events().aclose()
    await client.stream_artifact(0).aclose()
    await client.workspace("w").files.stream("f").aclose()
"""


class Types(unittest.TestCase):
    @unittest.skipUnless(importlib.util.find_spec("mypy"), "it needs mypy")
    def test_what_is_left_early_can_be_closed(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "program.py")
            program.write_text(TYPED)
            env = {**os.environ, "MYPYPATH": str(pathlib.Path(coppice.__file__).parents[1])}
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, str(program)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual((0, "Success: no issues found in 1 source file\n"), (done.returncode, done.stdout))
