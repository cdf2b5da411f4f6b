"""Tests of the numbers that a kernel gives its messages, and of its memory."""

import collections
import importlib.util
import io
import pathlib
import threading
import unittest

_FILE = pathlib.Path(__file__).resolve().parent.parent / "kernel_output.py"


def load():
    spec = importlib.util.spec_from_file_location("kernel_output", _FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ko = load()


def message(kind="stream", text="x", request="r", parent="execute_request"):
    content = {"name": "stdout", "text": text} if kind == "stream" else {"execution_state": text}
    return {"header": {"msg_id": "id", "msg_type": kind}, "parent_header": {"msg_id": request, "msg_type": parent},
            "content": content}


class Gathered:
    """What Writer knows of ipykernel's stream."""

    pub_thread, echo, parent_header, _flush_pending = object(), None, {"msg_id": "a"}, False

    def __init__(self):
        self._buffers, self._buffer_lock, self.scheduled = collections.defaultdict(io.StringIO), threading.RLock(), 0

    def write(self, text):
        self._buffers[frozenset(self.parent_header.items())].write(text)
        return len(text)

    def flush(self):
        self.sent = {dict(parent)["msg_id"]: buffer.getvalue() for parent, buffer in self._rotate_buffers().items()}

    def _schedule_flush(self):
        self.scheduled += 1
        self._flush_pending = True

    def _rotate_buffers(self):
        old, self._buffers = self._buffers, collections.defaultdict(io.StringIO)
        return old


class OutputTest(unittest.TestCase):
    def setUp(self):
        self.now = 0.0
        self.output = ko.Output(clock=lambda: self.now)

    def send(self, n=1, **more):
        for _ in range(n):
            msg = message(**more)
            self.output.number(msg)
        return msg["header"].get("coppice_number")

    def numbers(self, since=0, until=0, limit=1 << 20, request="r"):
        page = self.output.page(request, since, until, limit)
        return [m["number"] for m in page["messages"]], page["through"], page["sent"], page["more"]

    def test_each_request_is_numbered_from_one(self):
        self.assertEqual(3, self.send(3))
        self.assertEqual(1, self.send(request="s"))
        self.assertEqual(4, self.send())
        self.assertIsNone(self.send(kind="comm_msg", text="x"))
        self.assertIsNone(self.send(parent="kernel_info_request"))
        self.assertEqual(([1, 2, 3, 4], 4, 4, False), self.numbers())
        self.assertEqual(([3], 3, 4, False), self.numbers(since=2, until=3))
        self.assertEqual(([], 4, 4, False), self.numbers(since=4))
        self.assertEqual(([], 0, 0, False), self.numbers(request="nobody's"))

    def test_lone_surrogates_are_escaped(self):
        whole = {"text": "aé木😀", "n": [1, ("x", None)], "data": {"image/png": "x" * 1000}}
        self.assertIs(whole, ko.plain(whole))
        self.assertEqual({"a\\udc80": ["\\ud800b", {"c": "é\\udfff"}], "d": 1}, ko.plain({"a\udc80": ["\ud800b", {"c": "é\udfff"}], "d": 1}))

    def test_what_is_printed_between_the_cells_is_kept(self):
        def header(request):
            return {"msg_id": request, "msg_type": "execute_request"}

        def stream(text, request):
            msg = message(text=text, request=request)
            kept = self.output.belated(msg)
            if not kept:
                self.output.number(msg)
            return kept, msg["parent_header"]["msg_id"]

        self.output.begin(header("a"))
        self.send(kind="status", text="busy", request="a")
        self.assertEqual((False, "a"), stream("of it", "a"))
        self.send(kind="status", text="idle", request="a")
        self.assertEqual((True, "a"), stream("late ", "a"))
        self.assertEqual((True, "a"), stream("too", "a"))
        self.assertEqual(([("stdout", "late "), ("stdout", "too")], 0), self.output.begin(header("b")))
        self.send(kind="status", text="busy", request="b")
        self.assertEqual((False, "b"), stream("meanwhile", "a"), "it is shown where it can be seen")
        self.send(kind="status", text="idle", request="b")
        for _ in range(3):
            stream("x" * (30 << 10) + "y", "b")
        late, dropped = self.output.begin(header("c"))
        self.assertEqual(64 << 10, sum(len(text) for _, text in late))
        self.assertEqual(3 * (30 << 10) + 3 - (64 << 10), dropped)
        self.assertEqual(([], 0), self.output.begin(header("d")))

    def test_pages(self):
        self.send(10, text="x" * 1000)
        self.assertEqual(([1, 2], 2, 10, True), self.numbers(limit=3000))
        self.assertEqual(([3], 3, 10, True), self.numbers(since=2, limit=10), "one message, however large")
        self.assertEqual(([9, 10], 10, 10, False), self.numbers(since=8, limit=3000))

    def test_what_is_confirmed_is_forgotten(self):
        self.send(10)
        self.output.confirm("r", 7)
        self.assertEqual(([8, 9, 10], 10, 10, False), self.numbers())
        self.output.confirm("nobody's", 7)
        self.output.confirm("r", 3)
        self.assertEqual(3, len(self.output.boxes["r"].rows))

    def test_what_is_not_noted_is_held(self):
        self.send(10)
        self.output.confirm("r", 7, 3)
        self.assertEqual(([4, 5, 6, 7, 8, 9, 10], 10, 10, False), self.numbers(since=3))
        box = self.output.boxes["r"]
        self.assertEqual((3, 4), (len(box.rows), len(box.held)), "what has arrived is not ahead")
        self.output.confirm("r", 7, 6)
        self.output.confirm("r", 5, 2)
        self.assertEqual([7, 8, 9, 10], self.numbers()[0])
        self.output.confirm("r", 10, 6)
        self.send(40, text="x" * (1 << 20))
        self.assertLessEqual(box.weight + box.held_weight, ko.ROOM)
        self.assertEqual((0, 0), (len(box.held), box.held_weight), "what the host has goes first")
        self.output.confirm("r", 50)
        self.assertEqual((0, 0, 0), (len(box.rows), box.weight, box.held_weight), "a host without a next one notes nothing")

    def test_a_host_that_others_come_after_is_waited_for(self):
        self.send(ko.WINDOW_MESSAGES + 1)
        self.output.confirm("r", 0, 0)
        self.assertEqual(ko.FIRST_PATIENCE, self.output.patience, "it cannot be heard while a cell runs")
        told = threading.Thread(target=self.output.confirm, args=("r", 0, 0))
        told.start()
        told.join()
        self.assertEqual(ko.KEPT_PATIENCE, self.output.patience)
        self.output.alone()
        self.output.wait()
        self.assertEqual(0.0, self.output.patience)

    def test_a_question_is_told_while_it_is_open(self):
        self.assertNotIn("asks", self.output.page("r", 0, 0, 1000))
        self.send(kind="input_request", text="who?")
        self.output.confirm("r", 1)
        page = self.output.page("r", 1, 0, 1000)
        self.assertEqual(([], 1, "input_request", "stdin"), (page["messages"], *[page["asks"][k] for k in ("number", "type", "channel")]))
        self.assertNotIn("asks", self.output.page("other", 0, 0, 1000))
        self.output.answered()
        self.assertNotIn("asks", self.output.page("r", 0, 0, 1000))

    def test_the_memory_is_bounded(self):
        self.send(100, text="x" * (1 << 20))
        box = self.output.boxes["r"]
        self.assertLessEqual(box.weight, ko.ROOM)
        self.assertEqual(100, next(reversed(list(box.rows))))
        self.send(request="large", text="x" * (2 * ko.ROOM))
        self.assertEqual(0, len(box.rows))
        self.assertEqual(0, box.weight)
        self.assertEqual(([1], 1, 1, False), self.numbers(request="large"))
        self.assertEqual(([], 100, 100, False), self.numbers(), "the host learns that there is nothing")
        for i in range(10):
            self.send(request=str(i))
        self.assertEqual(ko.BOXES, len(self.output.boxes))

    def test_a_cell_that_is_ahead_waits(self):
        self.send(ko.WINDOW_MESSAGES)
        self.assertFalse(self.output.full)
        self.send()
        self.assertTrue(self.output.full)
        done = threading.Event()
        waiter = threading.Thread(target=lambda: (self.output.wait(), done.set()))
        waiter.start()
        self.assertFalse(done.wait(0.05))
        self.output.confirm("r", 1)
        self.assertTrue(done.wait(30))
        waiter.join()
        self.assertEqual(ko.PATIENCE, self.output.patience)
        self.send(text="x" * (ko.WINDOW + 1))
        self.assertTrue(self.output.full)
        self.send(kind="status", text="idle")
        self.assertFalse(self.output.full, "after the end of the cell nothing waits")

    def test_a_host_that_says_nothing_is_not_waited_for(self):
        self.send(ko.WINDOW_MESSAGES + 1)
        self.output.clock = lambda: self.tick(0.5)
        self.output.wait()
        self.assertEqual(0.0, self.output.patience)
        self.assertTrue(self.output.full)
        self.output.wait()  # and not again
        self.output.writer = -1
        self.output.confirm("r", 0)
        self.assertEqual(ko.PATIENCE, self.output.patience)

    def tick(self, seconds):
        self.now += seconds
        return self.now

    def test_a_number_without_a_message_is_told(self):
        self.send(2)
        self.output.boxes["r"].sent += 1  # as an interrupt leaves it
        self.send()
        self.assertEqual(([1, 2, 4], 4, 4, False), self.numbers())

    def test_writer(self):
        class Stream:
            wrote, flushes = [], 0

            def write(self, text):
                self.wrote.append(text)
                return len(text)

            def flush(self):
                self.flushes += 1

        stream = Stream()
        writer = ko.Writer(self.output, stream, lambda: [])
        self.assertEqual(3, writer("abc"))
        self.assertEqual(0, stream.flushes)
        big = "é" * (3 * ko.PIECE + 1)
        self.assertEqual(len(big), writer(big))
        self.assertEqual(["abc", big[:ko.PIECE], big[:ko.PIECE], big[:ko.PIECE], "é"], stream.wrote)
        self.assertEqual(3, stream.flushes)
        self.output.full = True
        ko.Writer(self.output, stream, lambda: [threading.get_ident()])("never waits")
        self.assertEqual("never waits", stream.wrote[-1])

    def test_writes_are_gathered_until_they_are_sent(self):
        stream = Gathered()
        stream.write = ko.Writer(self.output, stream, lambda: [])
        for text in ("a", "\n", "b"):
            self.assertEqual(len(text), stream.write(text))
        self.assertEqual((1, {}), (stream.scheduled, dict(stream._buffers)))
        stream.parent_header = {"msg_id": "b"}
        stream.write("c")
        stream.parent_header = {"msg_id": "a"}
        stream.write("d")
        stream.flush()
        self.assertEqual({"a": "a\nbd", "b": "c"}, stream.sent)
        for _ in range(ko.PARTS):
            stream.write("x")
        self.assertEqual({"a": "x" * ko.PARTS}, stream.sent, "so many are sent at once")
        stream.write("of who has forked it")
        pid, self.output.pid = self.output.pid, -1
        stream.write("child")
        stream.flush()
        self.assertEqual({"a": "child"}, stream.sent)
        self.output.pid = pid
        # A write method that code has put in its place sees all that is written.
        seen = []
        other = Gathered()
        other.write = seen.append
        ko.Writer(self.output, other, lambda: [])("text")
        self.assertEqual(["text"], seen)

    def test_a_stream_whose_write_method_comes_back_has_one_writer(self):
        thread = type("Thread", (), {"thread": type("T", (), {"ident": -1})()})()
        kernel = type("Kernel", (), {"control_handlers": {}, "iopub_thread": thread})()
        kernel.session = type("Session", (), {"send": None, "msg": None})()
        stream = Gathered()
        _, guard, _ = ko.start(kernel, (stream,))
        first, rotate = stream.write, stream._rotate_buffers
        for _ in range(3):  # as of code that captures what is printed, and puts back what was there
            del stream.write
            guard()
        self.assertIs(first, stream.write)
        self.assertEqual(rotate, stream._rotate_buffers)
        stream.write("text")
        stream.flush()
        self.assertEqual({"a": "text"}, stream.sent)

    def test_a_kernel_that_is_different_is_left_alone(self):
        class Kernel:
            session = type("Session", (), {"send": 1, "msg": 2})()
            control_handlers = {}
            iopub_thread = None

        with self.assertRaises(AttributeError):
            ko.start(Kernel, ())
        self.assertEqual(1, Kernel.session.send)
        self.assertEqual({}, Kernel.control_handlers)


if __name__ == "__main__":
    unittest.main()
