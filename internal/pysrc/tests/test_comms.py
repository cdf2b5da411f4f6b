"""Tests of what objects of a session say to frontends."""

import json
import sys
import types
import unittest
from unittest import mock

import sources  # noqa: F401, which makes the packages known
from coppice_runner import comms


class Host:
    """Where frames go."""

    def __init__(self):
        self.runs = True  # a cell does
        self.busy = False  # somebody sends
        self.said = []

    def ask(self, line):
        if self.runs:
            self.said.append(json.loads(line))
        return self.runs

    def contents(self):
        return [frame["content"] for frame in self.said]


class CommsTest(unittest.TestCase):
    def setUp(self):
        self.host = Host()
        self.figures = mock.Mock()
        self.comms = comms.Comms(self.host.ask, lambda: self.host.busy, self.figures)

    def say(self, data, kind="comm_msg", **more):
        self.comms.say(kind, "one", data, more.get("metadata"), more.get("buffers"), more.get("target", ""))

    def test_messages(self):
        self.say({"a": 1}, kind="comm_open", target="t", metadata={"version": "2"})
        self.say({"x": float("nan"), "when": object}, buffers=[b"\x00\xff", memoryview(b"abcd").cast("H")])
        self.say(None, kind="comm_close")
        self.assertEqual([
            {"type": "comm", "comm": "one", "action": "open", "content": {"a": 1}, "target": "t", "metadata": {"version": "2"}},
            {"type": "comm", "comm": "one", "action": "update", "content": {"x": "nan", "when": "<class 'object'>"}, "buffers": ["AP8=", "YWJjZA=="]},
            {"type": "comm", "comm": "one", "action": "close", "content": {}},
        ], self.host.said)

    def test_what_is_said_between_the_cells_comes_with_the_next(self):
        self.host.runs = False
        for n in range(300):
            self.say(n)
        self.assertEqual([], self.host.said)
        self.host.runs = True
        self.comms.begin()
        self.say(300)
        self.assertEqual(list(range(300 - 256, 301)), self.host.contents())

    def test_a_finaliser_that_comes_in_the_middle_of_a_send_waits(self):
        self.host.busy = True
        self.say(1)
        self.assertEqual([], self.host.said)
        self.host.busy = False
        self.say(2)
        self.assertEqual([1, 2], self.host.contents())

    def test_one_that_says_something_while_something_is_said(self):
        real, self.host.nested = self.host.ask, False

        def ask(line):
            if not self.host.nested:
                self.host.nested = True
                self.say(2)
            return real(line)

        self.comms._ask = ask
        self.say(1)
        self.assertEqual([1, 2], self.host.contents())

    def test_what_an_interrupt_stops_is_said_later(self):
        with mock.patch.object(self.comms, "_ask", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.say(1)
        self.say(2)
        self.assertEqual([1, 2], self.host.contents())

    def test_widgets_are_told_which_request_is_served(self):
        changes = self.comms.changes()
        for name in ("widget", "widget_output", "interaction"):
            module = types.SimpleNamespace()
            changes[f"ipywidgets.widgets.{name}"](module)
            self.assertEqual(comms.REQUEST, module.get_ipython().kernel.get_parent()["header"]["msg_id"])
        module.show_inline_matplotlib_plots()
        self.figures.assert_called_once_with()
        try:
            raise ValueError("bad")
        except ValueError:
            with mock.patch.object(sys, "stderr") as stderr:
                module.get_ipython().showtraceback()
        self.assertIn("ValueError: bad", stderr.write.call_args[0][0])


if __name__ == "__main__":
    unittest.main()
