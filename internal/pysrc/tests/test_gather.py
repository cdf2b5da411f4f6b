"""Tests of many small prints: they are gathered, and nothing of them is lost, late or out of
order."""

import os
import socket
import sys
import unittest

from driver import Driver

from coppice_runner.wire import Channel

MANY = 20_000


def text_of(frames, kind="stdout"):
    return "".join(f["text"] for f in frames if f["type"] == kind)


def numbers(n, first=0):
    return "".join(f"{i}\n" for i in range(first, n))


class GatherTest(unittest.TestCase):
    init = {}

    def start(self, **more):
        s = Driver(**self.init, **more)
        self.addCleanup(lambda: s.lifeline is not None and self.end(s))
        return s

    def end(self, s):
        status, s.lifeline = s.close(), None
        return status

    def test_many_lines_are_few_frames(self):
        s = self.start()
        for _ in range(3):
            frames = s.execute(f"for i in range({MANY}): print(i)")
            self.assertEqual(numbers(MANY), text_of(frames))
            self.assertEqual(list(range(1, len(frames))), [f["seq"] for f in frames[1:]])
            if sys.platform == "linux":
                self.assertLess(len(frames), MANY // 10)

    def test_what_was_gathered_comes_while_the_cell_waits(self):
        s = self.start()
        s.cells += 1
        s.request({"type": "execute", "id": s.cells, "code": "import threading\nfor i in range(100): print(i)\nthreading.Event().wait()"})
        text = ""
        while text != numbers(100):
            frame = s.frame()
            self.assertIn(frame["type"], ("started", "stdout"))
            text += frame.get("text", "")
        s.request({"type": "interrupt", "n": 1, "id": s.cells}, s.control)
        self.assertEqual("", text_of(s.cell()))

    def test_the_order_of_all_that_is_shown(self):
        s = self.start()
        code = """
import os, sys, subprocess
def burst():
    for i in range(10): print(i)
burst()
print("error", file=sys.stderr)
burst()
os.write(1, b"descriptor\\n")
burst()
display("shown")
burst()
subprocess.run(["echo", "child"])
burst()
sys.stdout.write("half")
print("error", file=sys.stderr)
burst()
"the result"
"""
        shown = ""
        for f in s.execute(code):
            kind = f["type"]
            shown += f["text"] if kind == "stdout" else "<" + f["text"].strip() + ">\n" if kind == "stderr" else "<" + kind + ">\n" if kind in ("display", "result") else ""
        burst = numbers(10)
        want = [burst, "<error>\n", burst, "descriptor\n", burst, "<display>\n", burst, "child\n", burst, "half<error>\n", burst, "<result>\n"]
        self.assertEqual("".join(want), shown)

    def test_a_question_comes_after_what_was_printed(self):
        s = self.start()
        s.cells += 1
        s.request({"type": "execute", "id": s.cells, "code": "for i in range(50): print(i)\ninput('?')", "allow_stdin": True})
        text, frame = "", s.frame()
        while frame["type"] != "input_request":
            text += frame.get("text", "")
            frame = s.frame()
        self.assertEqual(numbers(50), text)
        s.request({"type": "input", "request": frame["request"], "value": "yes"}, s.control)
        self.assertEqual("'yes'", s.cell()[-2]["data"]["text/plain"])

    def test_what_the_end_of_the_process_cuts_off_is_in_the_pipe(self):
        for end in ("os._exit(3)", "os.kill(os.getpid(), 9)"):
            for n in (1, 3, 40, 3000):
                with self.subTest(end=end, n=n):
                    s = self.start(pipes=True)
                    s.request({"type": "execute", "id": 1, "code": f"import os\nfor i in range({n}): print(i)\n{end}"})
                    frames = []
                    while (frame := s.frame()) is not None:
                        frames.append(frame)
                    stdout, stderr = s.leftovers()
                    self.assertEqual((numbers(n), ""), (text_of(frames) + stdout, stderr))
                    self.end(s)

    def test_an_interrupt_in_the_middle(self):
        s = self.start()
        for _ in range(5):
            s.cells += 1
            s.request({"type": "execute", "id": s.cells, "code": "i = 0\nwhile True:\n    print(i)\n    i += 1"})
            text = ""
            while len(text) < 100_000:
                text += s.frame().get("text", "")
            s.request({"type": "interrupt", "n": 1, "id": s.cells}, s.control)
            frames = s.cell()
            self.assertTrue(frames[-1]["interrupted"])
            text += text_of(frames)
            printed = text.count("\n")
            # It may come between a number and the end of its line.
            self.assertIn(text, (numbers(printed), numbers(printed) + str(printed)))
            self.assertIn(int(s.value("i")), (printed, printed - 1))

    def test_threads(self):
        s = self.start()
        code = f"""
import threading
def work(name):
    for i in range({MANY // 10}): print(f"{{name}} {{i}}\\n", end="")
all = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in all: t.start()
work(4)
for t in all: t.join()
"""
        text = text_of(s.execute(code))
        for name in range(5):
            self.assertEqual([f"{name} {i}" for i in range(MANY // 10)], [line for line in text.splitlines() if line.startswith(f"{name} ")])

    def test_a_handler_that_prints(self):
        s = self.start()
        code = f"""
import signal
hits = 0
def hit(*_):
    global hits
    hits += 1
    print("hit")
old = signal.signal(signal.SIGALRM, hit)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
for i in range({MANY}): print(i)
signal.setitimer(signal.ITIMER_REAL, 0)
hits
"""
        frames = s.execute(code)
        text = text_of(frames)
        self.assertEqual("result", frames[-2]["type"], frames[-2])
        self.assertEqual(int(frames[-2]["data"]["text/plain"]), text.count("hit"))
        self.assertEqual(numbers(MANY).replace("\n", ""), text.replace("hit", "").replace("\n", ""))

    def test_descriptors_that_code_closes(self):
        s = self.start()
        frames = s.execute("import os\nfor i in range(50): print(i)\nos.close(1)\nfor i in range(50, 90): print(i)")
        self.assertEqual(numbers(90), text_of(frames))
        for _ in range(100):  # as without gathering, some of it may be written before it is open again
            frames = s.execute("import os\ntry: _ = os.write(1, b'x')\nexcept OSError: pass")
            if text_of(frames) == "x":
                break
        self.assertEqual("x", text_of(frames))
        before = s.value("sorted(os.listdir('/proc/self/fd'))") if sys.platform == "linux" else None
        s.execute("for i in range(50): print(i)")
        if before:
            self.assertEqual(before, s.value("sorted(os.listdir('/proc/self/fd'))"), "none is left open")

    def test_a_process_that_is_forked(self):
        s = self.start()
        code = "import os\nfor i in range(20): print(i)\npid = os.fork()\nif pid == 0:\n    print('child')\n    os._exit(0)\n_ = os.waitpid(pid, 0)\nfor i in range(20): print(i)"
        self.assertEqual(numbers(20) + "child\n" + numbers(20), text_of(s.execute(code)))

    def test_captured(self):
        s = self.start()
        frames = s.execute("%%capture out\nfor i in range(500): print(i)")
        self.assertEqual("", text_of(frames))
        self.assertEqual(repr(numbers(500)), s.value("out.stdout"))
        self.assertEqual(numbers(500), text_of(s.execute("for i in range(500): print(i)")))

    def test_what_is_no_utf_8(self):
        s = self.start()
        text = text_of(s.execute("for i in range(20): print('é木😀', chr(0xd800), '\\x00')"))
        self.assertEqual("é木😀 \\ud800 \x00\n" * 20, text)

    def test_long_lines_and_halves(self):
        s = self.start()
        text = text_of(s.execute("for i in range(30): print(str(i) * 9000 * (i % 3), i, end=';' if i % 4 else '\\n')"))
        self.assertEqual("".join(f"{str(i) * 9000 * (i % 3)} {i}" + (";" if i % 4 else "\n") for i in range(30)), text)

    def test_a_host_that_does_not_read(self):
        s = self.start()
        s.cells += 1
        s.request({"type": "execute", "id": s.cells, "code": "i = 0\nwhile True:\n    print(i)\n    i += 1"})
        s.frame()
        for n in range(1, 4):  # what is asked on control is answered
            s.request({"type": "ping", "n": n}, s.control)
            self.assertEqual({"type": "pong", "n": n}, s.frame(s.control))
        s.request({"type": "interrupt", "n": 9, "id": s.cells}, s.control)
        self.assertEqual("interrupting", s.frame(s.control)["type"])
        text = text_of(s.cell())
        n = text.count("\n")
        # print writes a number and the end of its line one after the other: the interrupt may come between them.
        self.assertIn(text, (numbers(n), numbers(n) + str(n)))


@unittest.skipUnless(hasattr(os, "splice"), "this system or this Python does not move what is in a pipe")
class MovedTest(GatherTest):
    """The same, when what is in the pipes is moved to the host."""

    init = {"mark": "a-mark-of-the-host", "raw": True}

    def test_what_is_written_is_moved(self):
        s = self.start()
        frames = s.execute("import os\n_ = os.write(2, b'\\xe2\\x82\\xac words')\nprint('more')")
        self.assertIn("raw", next(f for f in frames if f["type"] == "stderr"))
        self.assertEqual("\u20ac words", text_of(frames, "stderr"))
        self.assertEqual("more\n", text_of(frames))

    def test_fewer_bytes_than_were_there(self):
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        os.set_blocking(read, False)
        channel = Channel(lambda: False, self.fail)
        channel.attach(theirs)
        channel.mark = b"mark"
        os.write(write, b"abc")
        self.assertTrue(channel.acquire() and channel.room(True, False))
        channel.move(b'mark{"raw":5}\n', read, 5)
        self.assertEqual(b'mark{"raw":5}\nabcmark{"type":"short"}\n', ours.recv(1 << 10))
        for fd in (read, write):
            os.close(fd)
        ours.close()
        theirs.close()

    def test_another_reads_of_the_pipe(self):
        s = self.start(pipes=True)
        s.cells += 1
        code = "import os\nfor _ in range(2000):\n    _ = os.write(1, b'0123456789')\nprint('end')"
        s.request({"type": "execute", "id": s.cells, "code": code})
        text = b""
        os.set_blocking(s.kept[0], False)
        frames = []
        while not frames or frames[-1]["type"] != "done":
            try:
                text += os.read(s.kept[0], 4096)
            except BlockingIOError:
                pass
            frames.append(s.frame())
        text += text_of(frames).encode()
        self.assertEqual(20_000 + len("end\n"), len(text))
        self.assertEqual([f["seq"] for f in frames if f.get("seq")], list(range(1, 1 + sum(1 for f in frames if f.get("seq")))))


if __name__ == "__main__":
    unittest.main()
