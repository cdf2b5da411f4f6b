"""What a server tells, as values."""

import unittest

from coppice import Event, LimitExceeded
from coppice._types import result_of


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
