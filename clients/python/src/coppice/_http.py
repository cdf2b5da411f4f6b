"""HTTP/1.1 over asyncio, as much of it as a server of ours speaks."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, AsyncIterator, Dict, Mapping, Optional, Set, Tuple, Union

from ._reach import ANSWER, untrusted
from ._wire import MOST, Address, not_sent
from ._within import within

#: The most of the head of an answer, in bytes.
HEAD = 64 << 10


#: A status and headers.
Head = Tuple[int, Dict[str, str]]

#: The same, and the body, where it was read with them.
Answer = Tuple[int, Dict[str, str], Optional[bytes]]


class Broken(ConnectionError):
    """The answer is not one, or ends in its middle."""


class Response:
    """An answer whose head has been read."""

    def __init__(
        self, status: int, headers: Mapping[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: Optional[bytes] = None,
    ) -> None:
        self.status = status
        self._headers = headers
        self._body = body  # None: it is to be read
        self._reader = reader
        self._writer = writer

    def header(self, name: str) -> Optional[str]:
        """What a header says."""
        return self._headers.get(name.lower())

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, as it comes."""
        if self._body is not None:
            yield self._body
            return
        if self.status == 204:
            return
        if "chunked" in self._headers.get("transfer-encoding", "").lower():
            async for piece in self._chunks():
                yield piece
            return
        length = self._headers.get("content-length")
        left = _number(length, 10) if length is not None else None
        while left is None or left > 0:
            piece = await self._reader.read(1 << 16 if left is None else min(left, 1 << 16))
            if not piece:
                if left is None:
                    return
                raise Broken("the connection broke")
            if left is not None:
                left -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            line = await self._line()
            left = _number(line.partition(";")[0].strip(), 16)
            if left == 0:
                while await self._line():
                    pass
                return
            while left > 0:
                piece = await self._reader.read(min(left, 1 << 16))
                if not piece:
                    raise Broken("the connection broke")
                left -= len(piece)
                yield piece
            if await self._line():
                raise Broken("a piece of the answer is longer than it says")

    async def _line(self) -> str:
        try:
            return (await self._reader.readuntil(b"\n")).decode("latin-1").rstrip("\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as e:
            raise Broken("the connection broke") from e

    async def read(self, most: int = MOST, each: float = ANSWER) -> bytes:
        """The whole body, each piece of which may take so long."""
        parts, pieces = [], self.pieces()
        while True:
            try:
                piece = await within(pieces.__anext__(), each)
            except StopAsyncIteration:
                break
            parts.append(piece)
            most -= len(piece)
            if most < 0:
                raise Broken("the answer is longer than any may be")
        return b"".join(parts)

    def close(self) -> None:
        """Give the connection up."""
        self._writer.close()


def _number(text: str, base: int) -> int:
    # int() would take a sign and underscores, too.
    if not text.isalnum():
        raise Broken("the length of the answer is not a number")
    try:
        return int(text, base)
    except ValueError as e:
        raise Broken("the length of the answer is not a number") from e


#: From how many bytes on a body is sent when the server wants it, and how long it has to
#: say so.
WAITS = 64 << 10
CONTINUE = 1.0


async def _send(writer: asyncio.StreamWriter, body: Union[bytes, AsyncIterator[bytes]], answer: asyncio.Future[Answer]) -> None:
    """Send a body, in chunks where it comes in pieces, unless the answer comes before its end."""
    chunked = not isinstance(body, bytes)
    try:
        async for piece in _cut(body):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            if not await _drained(writer, answer):
                return
        if chunked:
            writer.write(b"0\r\n\r\n")
    except ConnectionError:
        return  # the server may have said why it takes no more


async def _cut(body: Union[bytes, AsyncIterator[bytes]]) -> AsyncIterator[bytes]:
    """A body in pieces."""
    if isinstance(body, bytes):
        for i in range(0, len(body), WAITS):
            yield body[i : i + WAITS]
        return
    async for piece in body:
        yield piece


async def _drained(writer: asyncio.StreamWriter, answer: asyncio.Future[Answer]) -> bool:
    """Wait until more can be sent; False: the answer is there."""
    drain = asyncio.ensure_future(writer.drain())
    first: Set[asyncio.Future[Any]] = {drain, answer}
    try:
        await asyncio.wait(first, timeout=ANSWER, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return False
        if not drain.done():
            raise asyncio.TimeoutError("the server takes no more")
        await drain
        return True
    finally:
        drain.cancel()
        if drain.done() and not drain.cancelled():
            drain.exception()  # it was seen


async def _head(reader: asyncio.StreamReader) -> Head:
    """The head of an answer: its status and its headers."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as e:
        raise Broken("the server ended the connection without an answer") from e
    version, _, rest = head[0].partition(" ")
    if not version.startswith("HTTP/1."):
        raise Broken("the answer is not HTTP/1.1")
    found: Dict[str, str] = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    return _number(rest[:3], 10), found


async def _final(reader: asyncio.StreamReader, told: Optional[asyncio.Event] = None) -> Head:
    """The head of an answer, after those that only tell how it goes: there may be several of them,
    as of whoever sends the request on. told is set by the first."""
    while True:
        status, found = await _head(reader)
        if status >= 200 or status == 101:
            return status, found
        if told:
            told.set()


async def _answer(reader: asyncio.StreamReader, told: asyncio.Event) -> Answer:
    """An answer that may come before its request was sent. A short body is read at once: the
    server reads no more then, and what has come before a connection breaks is lost with it."""
    status, found = await _final(reader, told)
    length = found.get("content-length")
    if status < 200 or length is None or _number(length, 10) > HEAD:
        return status, found, None
    try:
        return status, found, await reader.readexactly(_number(length, 10))
    except asyncio.IncompleteReadError as e:
        raise Broken("the connection broke") from e


async def request(
    at: Address, tls: Optional[ssl.SSLContext], method: str, target: str, headers: Mapping[str, str], body: Union[bytes, AsyncIterator[bytes], None],
    connecting: float = ANSWER,
) -> Response:
    """Make a request, on a connection of its own, and read the head of the answer."""
    made = asyncio.open_unix_connection(at.socket, limit=HEAD) if at.socket else asyncio.open_connection(at.host, at.port, ssl=tls, limit=HEAD)
    try:
        reader, writer = await within(made, connecting, lambda pair: pair[1].close())
    except (OSError, asyncio.TimeoutError) as e:
        refused = untrusted(e, at.url)
        if refused:
            raise refused from e
        raise not_sent(e, at) from e
    answer: Optional[asyncio.Future[Answer]] = None
    read: Optional[bytes] = None
    try:
        lines = [f"{method} {target} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        if body is None and method != "GET":
            lines.append("Content-Length: 0")
        if body is None or isinstance(body, bytes) and len(body) < WAITS:
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b""))
            await writer.drain()
            status, found = await _final(reader)
        else:
            writer.write("\r\n".join([*lines, "Expect: 100-continue", "", ""]).encode("latin-1"))
            await writer.drain()
            told = asyncio.Event()
            answer = asyncio.ensure_future(_answer(reader, told))
            wanted = asyncio.ensure_future(told.wait())
            try:
                await asyncio.wait([answer, wanted], timeout=CONTINUE, return_when=asyncio.FIRST_COMPLETED)
            finally:
                wanted.cancel()
            if not answer.done():
                await _send(writer, body, answer)
            status, found, read = await within(answer, ANSWER)
        return Response(status, found, reader, writer, read)
    except BaseException:
        if answer:
            answer.cancel()
        writer.close()
        raise
