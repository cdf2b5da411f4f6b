"""Frames: one JSON object on one line, over a private socket.

PROTOCOL.md of package ndjson says what the frames mean.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import socket
import sys
import termios
import threading
import time
from typing import Any, Callable, Dict, Optional

VERSION = 1

# A request line that is longer is skipped and answered with a protocol error.
MAX_REQUEST = 16 << 20
# A display that makes a longer frame is replaced by a sentence.
MAX_FRAME = 32 << 20
# Characters of text in one stdout or stderr frame.
MAX_TEXT = 16 << 10
# Bytes that follow such a frame, where they do.
MAX_RAW = 64 << 10

# Send what there is room for, and do not wait. The flag is missing on Windows,
# where sockets of this kind are too.
DONTWAIT: int = getattr(socket, "MSG_DONTWAIT", 0x40)

_READ = 64 << 10
# What is taken at once of a pipe that its session does not read, in bytes.
_MAX_DRAIN = 1 << 20
# How long a thread waits before it looks again whether it was interrupted.
_STEP_MS = 20


class RequestTooLong(Exception):
    """A request line was longer than MAX_REQUEST and was skipped."""


class Lines:
    """Reads lines from a socket. One thread at a time may use it."""

    def __init__(self, limit: int = MAX_REQUEST) -> None:
        self._sock: Any = None  # from attach on
        self._limit = limit
        self._buffer = b""

    def attach(self, sock: Any) -> None:
        """Begins to read from a socket."""
        self._sock = sock

    def buffered(self) -> bool:
        """Says whether a whole line was read already."""
        return b"\n" in self._buffer

    def next(self) -> Optional[bytes]:
        """Returns the next line without its end, or None when there are no more."""
        buffer, self._buffer = self._buffer, b""
        parts = []
        size = 0
        skipping = False
        while True:
            line, newline, rest = buffer.partition(b"\n")
            size += len(line)
            if size > self._limit:
                skipping = True
                parts.clear()
            elif line:
                parts.append(line)
            if newline:
                self._buffer = rest
                if skipping:
                    raise RequestTooLong(f"the request is longer than {self._limit} bytes")
                return parts[0] if len(parts) == 1 else b"".join(parts)
            buffer = self._sock.recv(_READ)
            if not buffer:
                return None


_quote = json.encoder.encode_basestring
# What json is made of, in C: code that replaces builtins (len, isinstance) breaks
# the functions of that module, and must not keep a session from answering.
_scan = json.JSONDecoder().scan_once
_dump = getattr(json.encoder, "c_make_encoder", None)


def parse(line: bytes) -> Any:
    """Returns what a line says. It raises ValueError."""
    text = line.decode()
    if text[:1] != "{" or text[-1:] != "}":
        text = text.strip()
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("it is not JSON") from None
    if end != len(text):
        raise ValueError("there is more than one object")
    return value


def _unknown(value: Any) -> Any:
    raise TypeError(f"JSON has no {type(value).__name__}")


def _encode(frame: Dict[str, Any]) -> str:
    if _dump is None:
        return json.dumps(frame, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "".join(_dump({}, _unknown, _quote, None, ":", ",", False, False, False)(frame, 0))


def encode(frame: Dict[str, Any]) -> bytes:
    """Returns a frame as a line. What JSON cannot say becomes its repr."""
    try:
        return _encode(frame).encode() + b"\n"
    except (ValueError, TypeError, RecursionError, UnicodeEncodeError):
        text = json.dumps(_plain(frame), separators=(",", ":"))
        return text.encode() + b"\n"


def _plain(value: Any, depth: int = 0) -> Any:
    """Returns value in terms that JSON knows."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return value if value == value and value not in (float("inf"), float("-inf")) else repr(value)
    if depth < 100 and isinstance(value, dict):
        return {printable(k if isinstance(k, str) else _text(k)): _plain(v, depth + 1) for k, v in value.items()}
    if depth < 100 and isinstance(value, (list, tuple)):
        return [_plain(v, depth + 1) for v in value]
    return printable(_text(value))


def _text(value: Any) -> str:
    try:
        return repr(value)
    except Exception as err:  # whatever a repr raises
        return f"<{type(value).__name__} whose repr raised {type(err).__name__}>"


def quoted(text: str) -> bytes:
    """Returns text as a JSON string."""
    try:
        return _quote(text).encode()
    except UnicodeEncodeError:
        return _quote(printable(text)).encode()


def printable(text: str) -> str:
    """Returns text with lone surrogates, which UTF-8 cannot say, as \\udcxx."""
    return text.encode("utf-8", "backslashreplace").decode()


class Channel:
    """The way out to the host: whole frames, in order, from any thread.

    Sending blocks while the host takes nothing, so that output which is not
    read holds its producer back. A blocked main thread gives up when it is
    interrupted; what was not sent then goes first next time.
    """

    def __init__(self, interrupted: Callable[[], bool], broken: Callable[[OSError], None]) -> None:
        self._sock: Any = None  # from attach on
        # What every line begins with, once the host has said so: it tells them from
        # what code writes to a descriptor that it has guessed.
        self.mark = b""
        self._interrupted = interrupted
        self._broken = broken
        # It is never taken twice by one thread. What knows its owner is set and cleared in
        # one step, so that no handler of a signal comes in between and waits for itself.
        self.lock: Any = threading.RLock()
        self._rest = b""  # frames, or the end of one, that wait for the host
        self._writable = select.poll()  # used by who holds the channel
        # Whether the host takes text as it is, behind a frame; it says so.
        self.raw = False
        # Whether what is in a pipe is moved to the host without being read, from the
        # host's word on. It is so in no moment with this process alone, whose end may come
        # in any.
        self.moves = False

    def attach(self, sock: Any) -> None:
        """Begins to send on a socket. A copy of a session does it once more, with
        its own."""
        self._sock = sock
        self._rest = b""
        self._writable = select.poll()
        self._writable.register(sock.fileno(), select.POLLOUT)

    def mine(self) -> bool:
        """Says whether the calling thread holds the channel already: a signal
        handler or a finaliser of the user interrupted it there."""
        return self.lock._is_owned()  # type: ignore[no-any-return]

    def acquire(self, patience_ms: int = -1) -> bool:
        """Takes the channel for a group of sends. Returns False when patience
        ran out, or when the main thread was interrupted."""
        lock = self.lock
        while lock._is_owned() or not lock.acquire(False):
            if patience_ms >= 0 or self._interrupted():
                return self._await(max(patience_ms, 0))
            if self._await(_STEP_MS):
                break
        return True

    def _await(self, patience_ms: int) -> bool:
        """Waits for the channel. A thread that has it already waits in vain."""
        if self.lock._is_owned():
            time.sleep(patience_ms / 1000)
            return False
        return self.lock.acquire(timeout=patience_ms / 1000)  # type: ignore[no-any-return]

    def release(self) -> None:
        """Gives the channel back."""
        self.lock.release()

    def waiting(self) -> bool:
        """Says whether something waits for the host."""
        return bool(self._rest)

    def hold(self, data: bytes) -> None:
        """Keeps frames for the next send: waking the host twice for a short
        cell costs more than the cell. The caller holds the channel."""
        self._rest += data

    def send(self, data: bytes, block: bool = True, last: bool = False) -> None:
        """Sends frames. The caller holds the channel. With last, an interrupt
        does not make it give up."""
        if self._rest:
            data, self._rest = self._rest + data, b""
        view: Any = data
        while view:
            try:
                sent = self._sock.send(view, DONTWAIT)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError as err:
                self._broken(err)
                return
            if sent == len(view):
                return  # as nearly always
            view = memoryview(view)[sent:]
            if not block or (not last and self._interrupted()):
                self._rest = bytes(view)
                return
            self._writable.poll(_STEP_MS)

    def room(self, block: bool, last: bool) -> bool:
        """Says whether a pipe can be moved: nothing waits for the host, and it takes
        more. It waits for that as send does. The caller holds the channel."""
        while True:
            if self._rest:
                self.send(b"", block, last)
            if not self._rest and self._writable.poll(0):
                return True
            if not block or (not last and self._interrupted()):
                return False
            self._writable.poll(_STEP_MS)

    def move(self, header: bytes, fd: int, size: int) -> None:
        """Sends a frame and, behind it, size bytes that are in a pipe. The caller holds
        the channel, and there is room."""
        self.send(header, block=False)
        while size and not self._rest:
            try:
                moved = os.splice(fd, self._sock.fileno(), size)
            except OSError:
                moved = 0
            if not moved:  # this system does not do it with these
                break
            size -= moved
        if not size:
            return
        try:
            data = os.read(fd, size)
        except OSError:
            data = b""
        if len(data) < size:  # another process has read of the pipe: the frame ends at the next mark
            data += self.mark + b'{"type":"short"}\n'
        self.send(data, block=False)


# Whether this system can move what is in a pipe.
MOVES = hasattr(os, "splice")


def unread(fd: int) -> int:
    """Returns how many bytes a pipe holds."""
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0"), sys.byteorder)


def drain_descriptor(fd: int) -> str:
    """Returns what can be read from a descriptor now, at most 1 MiB."""
    parts = []
    size = 0
    while size < _MAX_DRAIN:
        try:
            data = os.read(fd, _READ)
        except (BlockingIOError, InterruptedError):
            break
        if not data:
            break
        parts.append(data)
        size += len(data)
    return b"".join(parts).decode("utf-8", "replace")
