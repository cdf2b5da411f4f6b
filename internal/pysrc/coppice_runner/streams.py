"""Output: sys.stdout, sys.stderr, and whatever else is written to the
descriptors 1 and 2, as frames in the order in which it was written.

The first line goes to the host at once. Those that come soon after it wait for each
other, some milliseconds, in the pipe that is behind their descriptor: there they are
out of the process, whatever becomes of it, and in order with what others write.
"""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import select
from collections import deque
from time import monotonic
from typing import Any, Deque, Dict, Iterable, List, Optional, Tuple

from .captured import Captured
from .interrupts import Interrupts
from .wire import MAX_RAW, MAX_TEXT, Channel, encode, quoted, unread

# Text without a line end that is sent nevertheless, in characters.
_LONG_LINE = 8 << 10
# Pieces of text without a line end that are kept.
_MANY_PARTS = 256
# What is kept of output that comes between cells, in characters.
_MAX_LATE = 64 << 10
# What is read from a descriptor at once, in bytes.
_CHUNK = 16 << 10
# Lines that come one soon after the other are gathered in the pipe of their stream,
# where they outlive the process: after how many that begins, how soon that is and
# how long they stay there, in seconds, and how much, in bytes. A pipe takes a
# write of up to _WHOLE as a whole.
_FEW, _SOON, _GATHERED, _WHOLE = 2, 0.004, 32 << 10, 4 << 10
# Longer text is sent as it is: to make a string of JSON, and to read it, takes longest.
_AS_IT_IS = 1 << 10
# What a pipe holds, in bytes, if nobody has made it larger.
_PIPE = 64 << 10
# What is read from the descriptors at the end of a cell at most: a pipe holds
# no more, unless somebody goes on writing, and that is output of the next cell.
_MAX_DRAIN = 1 << 20

_FD = {"stdout": 1, "stderr": 2}


class Output:
    """All output of a session. Any thread may write."""

    def __init__(self, channel: Channel, interrupts: Interrupts) -> None:
        self._channel = channel
        self._interrupts = interrupts
        self.captured: Dict[str, int] = {}  # name of a stream to the descriptor to read; from attach on
        self._names: Dict[int, str] = {}  # and the other way round
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in _FD}
        self._decoded = False  # they were given something, since a cell has ended
        self._readable = select.poll()
        # Appending and popping are atomic, so that a signal handler or a
        # finaliser that prints in the middle of a flush needs no lock.
        self.parts: Deque[Tuple[str, str]] = deque()
        # The fields below are guarded by the channel.
        self._ident = 0  # the cell that output belongs to, 0 between cells
        self._seq = 0
        self._late: Deque[Tuple[str, str]] = deque()
        self._late_size = 0
        self._late_dropped = 0
        self._capture: Optional[Captured] = None  # where output goes in place of the host; guarded by the channel
        self.forked = False  # this is a process that the user's code forked off
        # Write ends of the pipes that nothing was left to write to, by name: code
        # has closed the descriptor, or put another file in its place.
        self.loose: Dict[str, int] = {}
        # The stream whose lines are gathered, "" for none, the way into its pipe, how
        # many bytes of them are there, and when they are due at the host.
        self._gathers, self._into, self._size, self._due = "", -1, 0, 0.0
        # The stream whose text was sent last, when, and how often in a row it came soon.
        self._last, self._sent, self._soon = "", 0.0, 0

    def attach(self, captured: Dict[str, int]) -> None:
        """Begins to read what is written to the descriptors 1 and 2. A copy of a
        session does it once more, with its own."""
        self.captured = captured
        self._names.clear()
        self._readable = select.poll()
        self._late.clear()
        self._late_size = self._late_dropped = 0
        for fd in self.loose.values():
            os.close(fd)
        self.loose.clear()
        self.let_go()
        for name, fd in captured.items():
            self._names[fd] = name
            os.set_blocking(fd, False)
            self._readable.register(fd, select.POLLIN)

    def write(self, name: str, text: str) -> None:
        """Takes text for a stream. A finished line goes out at once. Stream.write does the
        same by itself: it is called twice for each line."""
        if self.forked:
            _write_all(_FD[name], text.encode("utf-8", "backslashreplace"))
            return
        parts = self.parts
        parts.append((name, text))
        if "\n" in text or len(text) > _LONG_LINE or len(parts) > _MANY_PARTS:
            self.flush()

    def flush(self) -> None:
        """Passes on what was written so far: to the host, or for some milliseconds to
        where lines are gathered."""
        # Most of what a line costs is here: that is why it does not call what it could.
        channel, interrupts, parts = self._channel, self._interrupts, self.parts
        lock = channel.lock
        while parts and not self.forked and not lock._is_owned():
            if not lock.acquire(False) and not channel.acquire():
                break
            try:
                if not self._gathers or not self._gather():
                    self._pass_on()
            finally:
                lock.release()
            if (interrupts.wanted or interrupts.kept is not None) and interrupts.pending():
                break
        if interrupts.wanted or interrupts.kept is not None:
            interrupts.check()

    def send(self, frame: Dict[str, Any]) -> None:
        """Sends a frame of the running cell, after all output before it."""
        data = encode(frame)
        channel = self._channel
        if self.forked or not channel.acquire():
            self._interrupts.check()
            return
        try:
            self._drain(self._most())
            self._send_parts()
            if self._capture is not None:
                self._capture.outputs.append(frame)
            elif self._ident:
                channel.send(self._stamp(data))
        finally:
            channel.release()
        self._interrupts.check()

    def ask(self, line: bytes) -> bool:
        """Sends a frame that the host answers, after all output before it. No
        capture takes it. Returns False when no cell runs that could ask."""
        channel = self._channel
        if self.forked or not channel.acquire():
            self._interrupts.check()
            return False
        try:
            self._drain(self._most())
            self._send_parts()
            if not self._ident:
                return False
            channel.send(self._stamp(line))
            return True
        finally:
            channel.release()

    def begin(self, ident: int) -> None:
        """Begins a cell: what came since the last one goes out first."""
        channel = self._channel
        while not channel.acquire():
            pass
        try:
            self._ident = ident
            self._seq = self._soon = 0
            channel.hold(b'%b{"type":"started","id":%d}\n' % (channel.mark, ident))
            if self._late:
                self._send_late()
        finally:
            channel.release()

    def end(self, lines: Iterable[bytes]) -> None:
        """Ends a cell with all its output and its last frames. It does not give
        up when it is interrupted."""
        channel = self._channel
        while not channel.acquire():
            pass
        try:
            if self._drain(_MAX_DRAIN, last=True) and self._decoded:
                self._finish_characters()
            if self.parts:
                self._send_parts(last=True)
            if self._gathers:
                self._scatter()
            channel.send(b"".join([self._stamp(l) for l in lines]), last=True)
            self._ident = 0
        finally:
            channel.release()

    def capture(self) -> Captured:
        """Has all output go to the object returned, until captured_until."""
        self._hold()
        outer, self._capture = self._capture, Captured()
        self._capture.outer = outer
        self._channel.release()
        return self._capture

    def captured_until(self, captured: "Captured") -> None:
        """Ends a capture with all that was written so far."""
        self._hold()
        self._capture = captured.outer
        self._channel.release()

    def _hold(self) -> None:
        """Takes the channel after everything was sent that was written."""
        while not self._channel.acquire():
            pass
        self._drain(_MAX_DRAIN, last=True)
        self._send_parts(last=True)
        self._scatter()

    def patience(self) -> Optional[int]:
        """Returns for how many milliseconds the side thread leaves the pipes to those who
        print: what they gather there is theirs to send, while they go on. None: it does
        not."""
        return max(0, int((self._due + _SOON - monotonic()) * 1000) + 1) if self._gathers else None

    def gathered(self) -> None:
        """Sends what was gathered, when nothing was printed any more that would have sent
        it. The side thread calls it."""
        channel = self._channel
        if not channel.acquire(20):
            return
        try:
            if not self._gathers or channel.waiting() or monotonic() < self._due + _SOON:
                return
            if not self._size:
                self._scatter()
            if self._drain(_PIPE, block=False):
                self._size, self._due = 0, monotonic() + _SOON
        finally:
            channel.release()

    def let_go(self) -> None:
        """Gathers no more, and leaves what is in the pipe to others: in a process that was
        forked off."""
        into, self._gathers, self._into, self._size = self._into, "", -1, 0
        if into >= 0:
            try:
                os.close(into)
            except OSError:
                pass  # the user's code has closed it

    def pump(self) -> None:
        """Forwards what was written to the descriptors. The side thread calls
        it when there is something; it never blocks for longer than a step."""
        channel = self._channel
        if not channel.acquire(20):
            return
        try:
            if channel.waiting():
                channel.send(b"", block=False)
            if not channel.waiting():
                self._drain(_CHUNK, block=False)
        finally:
            channel.release()

    def hold_open(self, fd: int) -> bool:
        """Keeps a pipe open that could not be written to any more, so that feed can
        give it back. The side thread calls it. Returns False when the system
        cannot do that."""
        try:
            opened = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            # Not one of the numbers that code has just closed.
            self.loose[self._names[fd]] = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(opened)
        except (OSError, KeyError):
            return False
        return True

    def feed(self) -> None:
        """Opens the descriptors 1 and 2 again where code has closed them. Where it
        has put another file, that stays."""
        for name, fd in list(self.loose.items()):
            try:
                os.get_inheritable(_FD[name])
            except OSError:
                os.set_blocking(fd, True)
                os.dup2(fd, _FD[name])
                del self.loose[name]
                os.close(fd)

    # The methods below are called with the channel held.

    def _pass_on(self) -> None:
        """Sends what was written. Lines of one stream that come soon after each other
        are gathered from then on: to wake the host for each costs more than all else."""
        self._drain(self._most())
        parts = self.parts
        name = parts[-1][0] if parts else self._last
        self._send_parts()
        now = monotonic()
        if name != self._last or now - self._sent > _SOON:
            self._soon = 0
        else:
            self._soon += 1
        self._last, self._sent = name, now
        if self._soon >= _FEW and name != self._gathers and self._ident and self._capture is None:
            self._begin_gathering(name, now)

    def _begin_gathering(self, name: str, now: float) -> None:
        self._scatter()
        self._soon = -1 << 30  # not again in this cell, if it cannot be done
        try:
            into = os.open(f"/proc/self/fd/{self.captured[name]}", os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            if into <= 2:  # code has closed one of these
                into, closed = fcntl.fcntl(into, fcntl.F_DUPFD_CLOEXEC, 3), into
                os.close(closed)
        except OSError:
            return  # this system has no such way, or there is no descriptor left
        self._soon = 0
        self._into, self._size, self._due = into, 0, now + _SOON
        self._gathers = name

    def _gather(self) -> bool:
        """Puts text into the pipe of its stream. False: it is to be sent."""
        parts, name = self.parts, self._gathers
        if not parts:
            return True  # another thread has passed it on
        first, text = parts.popleft()
        if first != name:
            parts.appendleft((first, text))
            return False
        while parts and parts[0][0] == name:
            text += parts.popleft()[1]
        data = text.encode("utf-8", "backslashreplace")
        try:
            if len(data) > _WHOLE:
                raise BlockingIOError
            os.write(self._into, data)
        except OSError as err:
            parts.appendleft((name, text))
            if not isinstance(err, BlockingIOError):
                self._gathers, self._into = "", -1  # the user's code has closed it
            return False
        self._size += len(data)
        now = monotonic()
        if now >= self._due or self._size >= _GATHERED:
            self._drain(_PIPE)
            self._size, self._due = 0, now + _SOON
        return True

    def _most(self) -> int:
        """Returns how much is taken from the descriptors at least, before what follows."""
        return _PIPE if self._gathers else _CHUNK

    def _scatter(self) -> None:
        """Gathers no more. What was gathered has been taken from the pipe."""
        if not self._gathers:
            return
        name, into = self._gathers, self._into
        self._gathers, self._into = "", -1
        try:
            os.get_inheritable(_FD[name])
        except OSError:
            if name not in self.loose:  # else nothing would be left to write to
                self.loose[name] = into
                return
        os.close(into)

    def _stamp(self, line: bytes) -> bytes:
        self._seq += 1
        return b'%b{"id":%d,"seq":%d,%b' % (self._channel.mark, self._ident, self._seq, line[1:])

    def _text_frame(self, name: str, text: str, flags: bytes = b"") -> bytes:
        self._seq += 1
        if len(text) > _AS_IT_IS and self._channel.raw and not flags:
            data = text.encode("utf-8", "backslashreplace")
            if len(data) <= MAX_RAW:
                return b'%b{"id":%d,"seq":%d,"type":"%b","raw":%d}\n%b' % (self._channel.mark, self._ident, self._seq, name.encode(), len(data), data)
        return b'%b{"id":%d,"seq":%d,"type":"%b",%b"text":%b}\n' % (self._channel.mark, self._ident, self._seq, name.encode(), flags, quoted(text))

    def _send_parts(self, last: bool = False) -> None:
        parts = self.parts
        while parts:
            name, text = parts.popleft()
            if parts and parts[0][0] == name:
                texts = [text]
                while parts and parts[0][0] == name:
                    texts.append(parts.popleft()[1])
                text = "".join(texts)
            rest = self._send_text(name, text, last=last)
            if rest:
                parts.appendleft((name, rest))
                return

    def _send_text(self, name: str, text: str, block: bool = True, last: bool = False) -> str:
        """Sends text, and returns what was not begun when it was interrupted."""
        if self._capture is not None:
            self._capture.texts[name].append(text)
            return ""
        if not self._ident:
            self._keep_late(name, text)
            return ""
        if len(text) <= _PIPE:
            frames = [self._text_frame(name, text[at : at + MAX_TEXT]) for at in range(0, len(text), MAX_TEXT)]
            self._channel.send(frames[0] if len(frames) == 1 else b"".join(frames), block, last)
            return ""
        for at in range(0, len(text), MAX_TEXT):
            if not last and self._interrupts.pending():
                return text[at:]
            self._channel.send(self._text_frame(name, text[at : at + MAX_TEXT]), block, last)
        return ""

    def _send_late(self) -> None:
        """Has what came between the cells sent with the first frame of this one."""
        out = []
        if self._late_dropped:
            out.append(self._stamp(encode({"type": "dropped", "chars": self._late_dropped})))
        for name, text in self._late:
            out.append(self._text_frame(name, text, b'"late":true,'))
        self._late.clear()
        self._late_size = self._late_dropped = 0
        self._channel.hold(b"".join(out))

    def _keep_late(self, name: str, text: str) -> None:
        for at in range(0, len(text), MAX_TEXT):
            piece = text[at : at + MAX_TEXT]
            late = self._late
            if late and late[-1][0] == name and len(late[-1][1]) + len(piece) <= MAX_TEXT:
                late[-1] = (name, late[-1][1] + piece)
            else:
                late.append((name, piece))
            self._late_size += len(piece)
            while self._late_size > _MAX_LATE:
                dropped = len(late.popleft()[1])
                self._late_size -= dropped
                self._late_dropped += dropped

    def _finish_characters(self) -> None:
        """Sends what was written of characters whose rest did not come."""
        self._decoded = False
        for name, decoder in self._decoders.items():
            text = decoder.decode(b"", True)
            if text:
                self._send_text(name, text, last=True)

    def _drain(self, limit: int, block: bool = True, last: bool = False) -> bool:
        """Takes what was written to the descriptors, at most limit bytes, and says
        whether that was all."""
        most = min(max(limit, _CHUNK), _PIPE)
        while limit > 0:
            events = self._readable.poll(0)
            if not events:
                return True
            for fd, _ in events:
                if self._channel.moves and self._ident and self._capture is None:
                    size = min(unread(fd), most)
                    if not size:  # the side thread sees to it
                        return True
                    if self._channel.room(block, last):
                        self._move(fd, size)
                        limit -= size
                        continue
                    if not block:
                        return False
                    # It was interrupted: what follows goes out behind this.
                try:
                    data = os.read(fd, most)
                except (BlockingIOError, InterruptedError):
                    return True
                if not data:  # the side thread sees to it
                    return True
                limit -= len(data)
                name, self._decoded = self._names[fd], True
                text = self._decoders[name].decode(data)
                if text:
                    self._send_text(name, text, block, last)
        return False

    def _move(self, fd: int, size: int) -> None:
        """Has the host take what is in a pipe as it is: its end has what was not moved."""
        self._seq += 1
        header = b'%b{"id":%d,"seq":%d,"type":"%b","raw":%d}\n' % (self._channel.mark, self._ident, self._seq, self._names[fd].encode(), size)
        self._channel.move(header, fd, size)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of a session."""

    def __init__(self, output: Output, name: str) -> None:
        super().__init__()
        self._output = output
        self._name = name
        self.name = f"<{name}>"
        self.mode = "w"
        self.buffer = _Buffer(self)

    encoding = "utf-8"
    errors = "backslashreplace"
    newlines = None
    line_buffering = True

    def write(self, text: str) -> int:
        if type(text) is not str:
            if not isinstance(text, str):
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            text = str.__str__(text)  # a subclass may lie about its length and its parts
        size = len(text)
        if size:
            output = self._output
            parts = output.parts
            if output.forked:
                output.write(self._name, text)
            else:
                parts.append((self._name, text))
                if "\n" in text or size > _LONG_LINE or len(parts) > _MANY_PARTS:
                    output.flush()
        return size

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._output.flush()

    def close(self) -> None:
        """Flushes. The stream stays open: it is the session's."""
        self._output.flush()

    def detach(self) -> Any:
        raise io.UnsupportedOperation("the session's streams cannot be detached")

    def reconfigure(self, **_options: Any) -> None:
        """Changes nothing: the host reads UTF-8."""

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Returns the descriptor whose output is that of the stream too."""
        return _FD[self._name]


class _Buffer(io.BufferedIOBase):
    """What sys.stdout.buffer is: bytes, in order with the text."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self.half = False  # the decoder holds the beginning of a character
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def raw(self) -> Any:
        return self

    def write(self, data: Any) -> int:
        view = bytes(memoryview(data))
        self._stream.write(self._decoder.decode(view))
        self.half = bool(self._decoder.getstate()[0])
        return len(view)

    def finish(self) -> None:
        """Writes what came of a character whose rest did not come."""
        self.half = False
        self._stream.write(self._decoder.decode(b"", True))

    def flush(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._stream.fileno()
