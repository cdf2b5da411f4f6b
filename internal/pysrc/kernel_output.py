"""Makes an ipykernel number what a cell sends, and remember it until its host has it.

A Jupyter server has no memory of what it passes on: a WebSocket that breaks
swallows what was on its way, a server that is too slow or limits a rate drops
messages, and does not say so. So every message about an execute_request, and about
what else waits its turn on the shell channel, gets a number (header.coppice_number: 1, 2, 3 ... for each request), in the order in
which the cell sends. The host says up to where it has them, and asks for those
that did not come. The questions go over the control channel, which answers
while a cell runs and which no server limits.

What is unconfirmed is bounded: a cell that is WINDOW ahead of its host waits,
as it would for a pipe. That bounds the memory of this process and that of the
server, which otherwise takes without end what its client does not read. A host
that says nothing for the patience of this side is not waited for any more, and
then the oldest messages are forgotten, and the host learns which.

A host whose sessions outlive it also says up to where it has noted what it handed
on. What it has and has not noted is held for the one that comes after it, and that
one is waited for.
"""

import _thread
import collections
import os
import sys
import threading
import time

# The types of messages that are numbered, and the channel of each.
CHANNELS = {"execute_reply": "shell", "complete_reply": "shell", "inspect_reply": "shell", "input_request": "stdin"}
for _kind in ("stream", "display_data", "update_display_data", "execute_result", "error", "clear_output",
              "execute_input", "status"):
    CHANNELS[_kind] = "iopub"

# The requests that this is about.
REQUESTS = ("execute_request", "complete_request", "inspect_request")

# The bounds, in characters and messages: of what is unconfirmed before a cell
# waits, of one message of a stream, and of what is remembered at all. The count
# is less than the 1000 messages for which a ZeroMQ socket has room.
WINDOW, WINDOW_MESSAGES = 4 << 20, 600
PIECE = 256 << 10
ROOM, ROOM_MESSAGES = 8 << 20, 20000
# How many characters of what is printed between the cells are kept for the next one.
MOST_LATE = 64 << 10
# How many requests are remembered.
BOXES = 4
# How long a cell waits for a host that says nothing: before it has ever said
# something while code ran, and afterwards. A host gives a connection up after a
# minute as well.
FIRST_PATIENCE, PATIENCE = 2.0, 60.0
# The same for one whose sessions outlive it: its gateway ends what nobody comes for.
KEPT_PATIENCE = 3600.0


def weigh(content):
    """About how many characters a content has."""
    data = content.get("data") or content.get("traceback") or content
    values = data.values() if isinstance(data, dict) else data
    return 256 + sum(len(v) if isinstance(v, (str, bytes)) else 64 for v in values)


def plain(value):
    """Returns a content as UTF-8 can carry it: a lone surrogate, as the names of files
    have them that are not UTF-8, becomes its escape, as on a stream with the errors
    "backslashreplace"."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                return value.encode("utf-8", "backslashreplace").decode()
        return value
    if isinstance(value, dict):
        made = {plain(k): plain(v) for k, v in value.items()}
        same = len(made) == len(value) and all(a is c and b is d for (a, b), (c, d) in zip(value.items(), made.items()))
        return value if same else made
    if isinstance(value, (list, tuple)):
        made = [plain(v) for v in value]
        return value if all(a is b for a, b in zip(value, made)) else made
    return value


class Box:
    """What one request has caused. Its fields are guarded by the lock of its Output."""

    def __init__(self):
        self.sent = 0  # the last number
        self.rows = {}  # number: (weight, message), in the order of numbers
        self.weight = 0  # of the rows
        self.held = {}  # rows that the host has, and has not noted; their numbers are smaller
        self.held_weight = 0
        self.done = False  # its idle was sent: what comes now is of its threads


class Output:
    """The numbers and the memory of one kernel.

    Any thread may call any method. No lock is held while something waits or is
    sent. An interrupt may come at any place: at worst, a number is given away
    without a message, and the host learns that there is none.
    """

    def __init__(self, clock=time.monotonic):
        self.clock = clock
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self.boxes = {}  # request: Box, oldest first
        self.full = False  # whether a writer has to wait
        self.patience = FIRST_PATIENCE
        self.heard = 0  # counts what the host said
        self.writer = None  # the thread that wrote last
        self.late = collections.deque()  # stream and text of what no cell printed that runs
        self.late_size = self.late_dropped = 0
        self.current = None  # the header of the cell that runs
        self.asks = None  # the request whose code waits for a line, and what it was asked with
        self.bell = _thread.allocate_lock()  # locked; whoever waits takes it
        self.bell.acquire()

    def number(self, msg):
        """Gives a message its number and remembers it."""
        kind, parent = msg["header"]["msg_type"], msg.get("parent_header") or {}
        if kind not in CHANNELS or parent.get("msg_type") not in REQUESTS:
            return
        weight = weigh(msg["content"])
        with self.lock:
            box = self.boxes.get(parent["msg_id"])
            if box is None:
                for older in self.boxes.values():
                    older.done = True  # requests run one after the other
                while len(self.boxes) >= BOXES:
                    del self.boxes[next(iter(self.boxes))]
                box = self.boxes[parent["msg_id"]] = Box()
            box.sent += 1
            msg["header"] = dict(msg["header"], coppice_number=box.sent)
            box.rows[box.sent] = (weight, msg)
            box.weight += weight
            if kind == "input_request":
                self.asks = (parent["msg_id"], self.row(box.sent, msg))
            if kind == "status" and msg["content"].get("execution_state") == "idle":
                box.done = True
            self.forget(box)
            self.full = self.behind()

    def begin(self, header):
        """Notes that a cell begins, and returns what was printed since the last one:
        pairs of a stream and a text, and how many characters before them are lost."""
        with self.lock:
            self.current = dict(header) if header else None
            late, dropped = list(self.late), self.late_dropped
            self.late.clear()
            self.late_size = self.late_dropped = 0
        return late, dropped

    def belated(self, msg):
        """Takes the text of a thread that has outlived its cell: while another runs, it
        is that one's, and else it is kept for the next. Returns whether it is kept."""
        parent = msg.get("parent_header") or {}
        if msg["header"]["msg_type"] != "stream" or parent.get("msg_type") != "execute_request":
            return False
        with self.lock:
            box = self.boxes.get(parent["msg_id"])
            if box is not None and not box.done:
                return False
            now = self.current and self.boxes.get(self.current["msg_id"])
            if now is not None and not now.done:
                msg["parent_header"] = self.current
                return False
            if box is None and (now is None or parent["msg_id"] == self.current["msg_id"]):
                return False  # of a cell that begins
            name, text = msg["content"]["name"], msg["content"]["text"]
            self.late.append((name, text))
            self.late_size += len(text)
            while self.late_size > MOST_LATE:
                name, text = self.late.popleft()
                over = min(len(text), self.late_size - MOST_LATE)
                self.late_size -= over
                self.late_dropped += over
                if over < len(text):
                    self.late.appendleft((name, text[over:]))
            return True

    def behind(self):
        return any(not b.done and (b.weight > WINDOW or len(b.rows) > WINDOW_MESSAGES) for b in self.boxes.values())

    def forget(self, newest):
        """Keeps the memory within its bounds. The latest message stays, whatever its size."""
        weight = sum(b.weight + b.held_weight for b in self.boxes.values())
        count = sum(len(b.rows) + len(b.held) for b in self.boxes.values())
        for box in self.boxes.values():
            while (weight > ROOM or count > ROOM_MESSAGES) and box.held:
                lost = box.held.pop(next(iter(box.held)))[0]
                box.held_weight -= lost
                weight -= lost
                count -= 1
            while (weight > ROOM or count > ROOM_MESSAGES) and len(box.rows) > (box is newest):
                lost = box.rows.pop(next(iter(box.rows)))[0]
                box.weight -= lost
                weight -= lost
                count -= 1

    def confirm(self, request, upto, noted=None):
        """Notes that the host has everything up to a number, and up to where it has
        noted what it handed on; None: it does not, and ends with its sessions."""
        with self.lock:
            box = self.boxes.get(request)
            self.heard += 1
            if self.writer not in (None, _thread.get_ident()):
                self.patience = PATIENCE  # it can be heard while a cell runs
            if noted is not None and threading.current_thread() is not threading.main_thread():
                self.patience = KEPT_PATIENCE
            if box is None:
                return
            while box.rows:
                first = next(iter(box.rows))
                if first > upto:
                    break
                row = box.held[first] = box.rows.pop(first)
                box.weight -= row[0]
                box.held_weight += row[0]
            while box.held:
                first = next(iter(box.held))
                if noted is not None and first > noted:
                    break
                box.held_weight -= box.held.pop(first)[0]
            self.full = self.behind()
        if not self.full:
            try:
                self.bell.release()
            except RuntimeError:
                pass  # it has been rung

    def alone(self):
        """Has no cell wait for a host: what it has to say is taken by nobody."""
        self.patience = 0.0

    def answered(self):
        """Notes that code has the line that it waited for, or will get none."""
        self.asks = None

    @staticmethod
    def row(number, msg):
        kind = msg["header"]["msg_type"]
        return {"number": number, "id": msg["header"]["msg_id"], "type": kind, "channel": CHANNELS[kind], "content": msg["content"]}

    def page(self, request, since, until, limit):
        """The messages after since, up to until (0: all), as many as limit characters allow.

        through says how far the answer goes: a number up to it that is neither in
        the answer nor with the host is lost. asks is what code waits for an answer to.
        """
        out, through, more = [], 0, False
        with self.lock:
            box = self.boxes.get(request)
            sent = box.sent if box else 0
            rows = [*box.held.items(), *box.rows.items()] if box else []
            rows = [(n, row) for n, row in rows if n > since and (not until or n <= until)]
            asks = self.asks
        for n, (weight, msg) in rows:
            limit -= weight
            if limit < 0 and out:
                more = True
                break
            through = n
            out.append(self.row(n, msg))
        if not more:
            through = min(until, sent) if until else sent
        answer = {"messages": out, "through": through, "sent": sent, "more": more}
        if asks and asks[0] == request:
            answer["asks"] = asks[1]
        return answer

    def wait(self):
        """Waits until the host has caught up, or has not said anything for too long."""
        self.writer = _thread.get_ident()
        since, heard = self.clock(), self.heard
        while self.full:
            if heard != self.heard:
                since, heard = self.clock(), self.heard
            elif self.clock() - since >= self.patience:
                self.patience = 0.0  # until it says something
                return
            self.bell.acquire(timeout=0.1)


# What a stream has on which writes are gathered, and how many are.
GATHERING = ("_rotate_buffers", "_buffers", "_buffer_lock", "_schedule_flush", "_flush_pending", "parent_header", "pub_thread")
PARTS = 4096


class Writer:
    """Stands before the write method of a stream: it hands on what fits into a message, and waits its turn.

    The stream itself takes a lock and makes a key of its parent for each write. What is
    written is gathered here instead, and put where the stream has it by the thread that
    sends it: no interrupt comes there, and so nothing is lost that was written before one.
    """

    def __init__(self, output, stream, exempt):
        self.output, self.exempt = output, exempt
        self.write, self.flush = stream.write, stream.flush
        self.pending = 0  # about how much was written since the last flush
        self.known = set()  # threads that are not exempt
        self.parts = collections.deque()  # parents, and what was written for them
        self.stream = None  # where it is gathered for
        if all(hasattr(stream, name) for name in GATHERING) and getattr(stream, "echo", None) is None and getattr(self.write, "__func__", None) is type(stream).write:
            self.stream, self.rotate = stream, stream._rotate_buffers
            stream._rotate_buffers = self.rotating

    def __call__(self, text):
        output = self.output
        if not isinstance(text, str) or os.getpid() != output.pid:
            return self.write(text)
        thread = _thread.get_ident()
        if thread not in self.known:
            if thread in self.exempt():
                return self.write(text)
            self.known.add(thread)
        if len(text) <= PIECE:
            self.put(text)
        else:
            for at in range(0, len(text), PIECE):
                self.put(text[at:at + PIECE])
        return len(text)

    def put(self, text):
        if self.output.full:
            self.output.wait()
        stream = self.stream
        if stream is None or stream.pub_thread is None:
            self.write(text)
        else:
            self.parts.append((stream.parent_header, text))
            if not stream._flush_pending:
                stream._schedule_flush()
        self.pending += len(text)
        if self.pending >= PIECE or len(self.parts) >= PARTS:
            self.pending = 0
            self.output.writer = _thread.get_ident()
            self.flush()

    def rotating(self):
        """Takes the place of what gives the stream a new buffer, and returns the old one."""
        stream, parts = self.stream, self.parts
        if os.getpid() != self.output.pid:
            parts.clear()  # what was written before it was forked is not its own
        with stream._buffer_lock:
            while parts:
                parent, text = parts.popleft()
                texts = [text]
                while parts and parts[0][0] is parent:
                    texts.append(parts.popleft()[1])
                stream._buffers[frozenset(parent.items())].write("".join(texts))
            return self.rotate()


def start(kernel, streams):
    """Does all this for a kernel. Raises AttributeError when it is not like ipykernel."""
    output, session = Output(), kernel.session
    send, make = session.send, session.msg
    named = ("control_thread", "shell_channel_thread")

    def exempt():
        """The threads of the kernel itself, which others wait for."""
        threads = [getattr(kernel, name, None) for name in named] + [kernel.iopub_thread.thread]
        return [t.ident for t in threads if t is not None]

    def sending(stream, msg_or_type, content=None, parent=None, ident=None, buffers=None, track=False, header=None,
                metadata=None):
        msg = msg_or_type
        if not isinstance(msg, dict):
            msg = make(msg, content=content, parent=parent, header=header, metadata=metadata)
        try:
            content = plain(msg["content"])
        except (KeyError, RecursionError):
            pass
        else:
            if content is not msg["content"]:
                msg = dict(msg, content=content)
        if os.getpid() == output.pid:
            try:
                if output.belated(msg):
                    return msg
            except Exception:
                pass  # it goes where it would have gone
            if output.full and msg["header"]["msg_type"].endswith("display_data") and _thread.get_ident() not in exempt():
                output.wait()
            try:
                output.number(msg)
            except Exception:
                pass  # what cannot be numbered can be sent all the same
        return send(stream, msg, ident=ident, buffers=buffers, track=track)

    async def repeat(stream, ident, parent):
        want = parent["content"]
        if want.get("alone"):
            output.alone()
            return
        output.confirm(want["parent"], want["since"], want.get("noted"))
        if want["limit"] > 0:
            page = output.page(want["parent"], want["since"], want["until"], want["limit"])
            session.send(stream, "coppice_repeat_reply", page, parent, ident=ident)

    handlers = kernel.control_handlers
    kernel.iopub_thread.thread  # an AttributeError here leaves everything as it was
    session.send = sending
    handlers["coppice_repeat_request"] = repeat
    streams = [s for s in streams if hasattr(s, "pub_thread")]

    gathering = {}  # writers by stream: one that comes again is not put behind itself

    def guard():
        for stream in streams:
            if isinstance(stream.write, Writer):
                continue
            own = getattr(stream.write, "__func__", None) is type(stream).write
            writer = gathering.get(id(stream)) if own else None
            if writer is None:
                writer = Writer(output, stream, exempt)
                if writer.stream is not None:
                    gathering[id(stream)] = writer
            stream.write = writer

    def catch_up(_info=None):
        """Shows a cell that begins what was printed since the last one, between marks."""
        if not streams:
            return
        stream = streams[0]
        header = stream.parent_header
        late, dropped = output.begin(header)

        def show(name, text, **more):
            sending(stream.pub_thread, "stream", dict(more, name=name, text=text), parent=header, ident=b"stream." + name.encode())

        if late or dropped:
            show("stdout", "", coppice_late={"begin": True, "dropped": dropped})
            for name, text in late:
                show(name, text)
            show("stdout", "", coppice_late={"end": True})

    for stream in streams:
        # Code that closes sys.stdout means no more than that it is done: what closed it
        # for good would take the output of every later cell, and of its children.
        stream.close = stream.flush
    guard()
    return output, guard, catch_up


def start_here():
    """Does it for the kernel in which this runs."""
    import contextlib

    from IPython import get_ipython

    shell = get_ipython()
    output, guard, catch_up = start(shell.kernel, (sys.stdout, sys.stderr))
    # IPython 9 has a writer of its own, for each cell, and puts the old one back.
    # It keeps everything that was ever printed, for %notebook alone: a flood
    # would stay in the memory of the kernel.
    shell.events.register("pre_execute", guard)
    shell.events.register("pre_run_cell", catch_up)  # not for what the host asks by itself
    if hasattr(shell, "_tee"):
        shell._tee = lambda channel: contextlib.nullcontext()
    return output
