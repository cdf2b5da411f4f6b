"""What both clients send and read, without any input or output of its own."""

from __future__ import annotations

import errno
import json
import math
import numbers
import time
import uuid
from typing import Any, Callable, Dict, Generic, List, Mapping, Optional, Tuple, TypeVar, Union
from urllib.parse import quote, urlencode, urlsplit

from ._errors import ConnectionLost, CoppiceError, ServerError, said
from ._types import Code, Event, cells_of

#: The most of an answer that is kept in memory, in bytes.
MOST = 256 << 20
FIRST_PAUSE = 0.01
LONGEST_PAUSE = 1.0

T = TypeVar("T")

#: What stands behind the path of a request; a list: the name as often.
Query = Mapping[str, Union[str, List[str]]]

#: What a header of an answer says.
Header = Callable[[str], Optional[str]]

#: The header that names one life of a server's process, and what asks which one it is.
SERVER = "Coppice-Server"
WHICH = {SERVER: "?"}


class NotSent(ConnectionError):
    """The connection could not be made: nothing was sent."""


def not_sent(error: Exception, at: Address) -> NotSent:
    """Why a connection could not be made."""
    where = f"the socket {at.socket}" if at.socket else at.url
    # asyncio tells of several addresses in one text.
    if isinstance(error, (ConnectionRefusedError, FileNotFoundError)) or f"[Errno {errno.ECONNREFUSED}]" in str(error):
        return NotSent(f"no server runs at {where}; start one with coppice serve")
    return NotSent(f"{where} cannot be reached: {said(error)}")


class Address:
    """Where a server is, and what opens it."""

    def __init__(self, url: str, token: str, socket: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the address of a server; it is like http://127.0.0.1:7788")
        if any(c in token for c in "\r\n"):
            raise ValueError("a token is one line")
        self.url = url
        self.host = parts.hostname
        self.tls = parts.scheme == "https"
        self.port = parts.port or (443 if self.tls else 80)
        self.netloc = parts.netloc.rpartition("@")[2]
        self.base = parts.path.rstrip("/")
        self.token = token
        self.socket = socket

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and (self.url, self.token, self.socket) == (other.url, other.token, other.socket)

    def target(self, path: str, query: Optional[Query] = None) -> str:
        """What stands in the first line of a request."""
        try:
            return f"{self.base}/{path}" + ("?" + urlencode(query, doseq=True) if query else "")
        except UnicodeEncodeError as e:
            raise not_text("a path or a name", e) from None

    def headers(self, body: object, after: int = -1, more: Optional[Mapping[str, str]] = None) -> Dict[str, str]:
        """The headers of a request; after is the last event seen, -1: no stream.

        A body that is not bytes goes in chunks."""
        headers = {"Authorization": f"Bearer {self.token}", "Host": self.netloc, "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = "application/json"
            if isinstance(body, bytes):
                headers["Content-Length"] = str(len(body))
            else:
                headers["Transfer-Encoding"] = "chunked"
        if after >= 0:
            headers["Accept"] = "text/event-stream"
        if after > 0:
            headers["Last-Event-ID"] = str(after)
        headers.update(more or {})
        return headers


def encode(body: Any) -> Optional[bytes]:
    """The body of a request."""
    if body is None:
        return None
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as e:
        raise not_text("what is sent", e) from None


def not_text(what: str, e: UnicodeEncodeError) -> ValueError:
    """What has half of a character in it, which others would replace without a word."""
    return ValueError(f"{what} is not valid Unicode text: {e.object[e.start]!r} at character {e.start} stands for no character")


def check_text(what: str, text: object) -> None:
    """Refuse what is no text that can be sent."""
    if not isinstance(text, str):
        raise TypeError(f"{what} is text, not {text!r:.100}")
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise not_text(what, e) from None


def seconds(timeout: object, none: str) -> float:
    """A timeout as it is sent."""
    if isinstance(timeout, bool) or not isinstance(timeout, numbers.Real):
        raise TypeError(f"a timeout is a number of seconds, not {timeout!r:.100}")
    found = timeout if isinstance(timeout, (int, float)) else float(timeout)
    if not found > 0:
        raise ValueError(f"a timeout is more than 0 seconds, not {timeout!r}; {none} is none")
    return found


def decode(status: int, data: bytes) -> Any:
    """The answer to a request; ServerError when it says no."""
    if status >= 300:
        raise problem(status, data)
    if not data:
        return None
    try:
        return json.loads(data)
    except ValueError as e:
        raise CoppiceError(f"the answer of the server is not JSON: {e}") from e


def problem(status: int, data: bytes) -> ServerError:
    """An answer that says no."""
    try:
        error = json.loads(data)["error"]
        return ServerError(status, str(error["code"]), str(error["message"]), str(error.get("hint", "")), int(error.get("epoch", 0)))
    except (ValueError, TypeError, KeyError, AttributeError):
        return ServerError(status, "unknown", f"the server answered with status {status}")


#: What is left to do when nobody knows what became of code.
LOOK = "look at what it was to do before you run it again"


def unknown() -> ServerError:
    """What becomes of a request whose first attempt may have reached a server that is gone."""
    return ServerError(410, "lost", "the server was started again after the code was sent: whether it ran is not known", "it is not sent a second time; " + LOOK)


def gone() -> ServerError:
    """What becomes of an execution that was begun at a server that is gone."""
    return ServerError(410, "lost", "the server was started again while the code ran: what became of it is not known", LOOK)


class Sent:
    """What is known of a request that begins an execution, so that it never begins twice.

    It has a name of ours, by which the life of a server that has got it knows it when it is
    sent again. The next life of that server does not: it would run the code a second time.
    """

    def __init__(self) -> None:
        self._asked: Optional[Address] = None
        self._attempt: Optional[Tuple[Address, float, float]] = None
        self._first: Optional[Tuple[Address, float, float]] = None

    @property
    def arrived(self) -> bool:
        """Whether an attempt may have arrived."""
        return self._first is not None

    def begin(self, at: Address) -> None:
        """An attempt begins."""
        self._attempt = at, time.monotonic(), time.time()

    def fail(self, error: Exception) -> None:
        """It failed. The first one that may have arrived counts."""
        if self._first is None and not isinstance(error, NotSent):
            self._first = self._attempt

    def ask(self, at: Address) -> None:
        """A server is asked how it is."""
        self._asked = at

    def again(self, health: Any, header: Header) -> Optional[Dict[str, str]]:
        """What the request says when it is sent again to the server that was asked; None: it
        is not sent, since the first attempt went to another life of the server."""
        life, uptime = header(SERVER), health.get("uptime_seconds") if isinstance(health, dict) else None
        if self._first is None or header("Coppice-Node") or not life or not isinstance(uptime, (int, float)) or uptime <= 0:
            return {}  # a fleet has epochs for this, and a server of before says nothing
        at, steady, wall = self._first
        # The one clock does not count while this machine sleeps, the other one may be set back.
        since = max(time.monotonic() - steady, time.time() - wall)
        return {SERVER: life} if at == self._asked and uptime >= since else None


def part(what: str, text: str) -> str:
    """A part of a path."""
    if not text:
        raise ValueError(f"{what} is not empty")
    check_text(what, text)
    return quote(text, safe="")


def session_path(name: str, action: str = "") -> str:
    """The path of a session."""
    return "api/sessions/" + part("the name of a session", name) + action


def execution_path(execution: str, action: str = "") -> str:
    """The path of an execution."""
    return "api/executions/" + quote(execution, safe="") + action


def session_query(cwd: Optional[str], workspace: str, kernel: str = "") -> Dict[str, str]:
    """What tells a session from others of its name."""
    return {
        **({"cwd": cwd} if cwd is not None else {}), **({"workspace": workspace} if workspace else {}),
        **({"kernel": kernel} if kernel else {}),
    }


def execution_body(
    session: str, cwd: Optional[str], workspace: str, owner: str, code: Code, timeout: Optional[float],
    env: Optional[Mapping[str, str]], call_env: Optional[Mapping[str, str]], allow_stdin: bool, kernel: str = "",
) -> Dict[str, Any]:
    """A request to run code. It has a name of ours, so that it may be sent twice."""
    body: Dict[str, Any] = {"id": uuid.uuid4().hex, "session": session, "cells": cells_of(code), **session_query(cwd, workspace, kernel)}
    if owner:
        body["owner"] = owner
    for cell in body["cells"]:
        for part, text in cell.items():
            check_text("code" if part == "code" else "a title", text)
    if timeout is not None:
        bound = seconds(timeout, "math.inf")
        body["timeout_seconds"] = -1 if math.isinf(bound) else bound
    if env:
        body["env"] = dict(env)
    if call_env:
        body["call_env"] = dict(call_env)
    if allow_stdin:
        body["allow_stdin"] = True
    return body


class Pause:
    """The time between tries, while a server is out of reach."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._length = FIRST_PAUSE
        self._trouble: Optional[float] = None
        self._begun = time.monotonic()
        self._heard = False

    def begin(self) -> None:
        """A try begins."""
        self._begun, self._heard = time.monotonic(), False

    def progress(self) -> None:
        """A try went well."""
        self._trouble, self._length, self._heard = None, FIRST_PAUSE, True

    def alive(self) -> None:
        """The server gives a sign of life. One that has done so for as long as patience
        lasts is in reach, though it may have nothing to say."""
        self._heard = True
        if time.monotonic() - self._begun >= self._patience:
            self._trouble = None

    def after(self, error: Exception, doing: str) -> float:
        """How long to wait after a try that failed; ConnectionLost when patience ends."""
        now = time.monotonic()
        if self._trouble is None:
            # A server that says nothing in a whole try has been out of reach since that began.
            self._trouble = now if self._heard else self._begun
        if now - self._trouble >= self._patience:
            raise ConnectionLost(f"{doing}: {said(error)}") from error
        length, self._length = self._length, min(2 * self._length, LONGEST_PAUSE)
        return length


class Parser:
    """Server-sent events, as they come in pieces: the HTML standard's format."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: List[bytes] = []

    def feed(self, piece: bytes) -> List[bytes]:
        """The data of the events that a piece completes."""
        events = []
        text = self._rest + piece
        # The end of a line may be cut in the middle.
        keep = b"\r" if text.endswith(b"\r") else b""
        lines = text[: len(text) - len(keep)].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + keep
        if len(self._rest) + sum(map(len, self._data)) > MOST:
            raise CoppiceError("the server's events make no sense: one is longer than any may be")
        for line in lines:
            if not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                self._data = []
                continue
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value[1:] if value.startswith(b" ") else value)
        return events


class Numbered(Generic[T]):
    """The events of one source, each once and in order, over several connections."""

    #: The type of the last event, and of one that says that some before it are lost.
    last = ""
    gap: Optional[str] = None

    def __init__(self, path: str, what: str, after: int = 0) -> None:
        self.path = path
        self.what = what
        self.after = after
        self.done = False

    def event(self, raw: Mapping[str, Any]) -> T:
        """What an event is, for those who read it."""
        raise NotImplementedError

    def over(self) -> None:
        """Nothing follows, though the last event was not seen."""

    def refused(self, error: ServerError) -> ServerError:
        """What it means that the server refuses them."""
        return error

    def take(self, data: bytes) -> Optional[T]:
        """The event that data is; None when it was seen before."""
        try:
            raw = json.loads(data)
            event, seq, kind = self.event(raw), raw["seq"], raw["type"]
            new = seq > self.after
        except (ValueError, TypeError, KeyError) as e:
            raise CoppiceError(f"the server's events make no sense: {e}") from e
        if not new:
            return None
        if seq != self.after + 1 and kind != self.gap:
            raise CoppiceError(f"the server's events make no sense: event {seq} follows event {self.after}")
        self.after = seq
        self.done = kind == self.last
        return event


class Following(Numbered[Event]):
    """The events of an execution that we have begun."""

    last = "final"

    def __init__(self, execution: str) -> None:
        super().__init__(execution_path(execution, "/events"), f"execution {execution}")
        self.execution = execution

    def event(self, raw: Mapping[str, Any]) -> Event:
        return Event(seq=raw["seq"], cell=raw["cell"], type=raw["type"], execution=self.execution, raw=raw)

    def over(self) -> None:
        raise CoppiceError(f"{self.what} has no result")

    def refused(self, error: ServerError) -> ServerError:
        return gone() if error.status == 404 and error.code == "not_found" else error  # it was there when it began


def answer_body(question: Event, value: str) -> Tuple[str, Dict[str, str]]:
    """Where an answer goes, and what it is."""
    if question.type != "input_request":
        raise ValueError(f"an event {question.type} asks nothing")
    check_text("an answer", value)
    return execution_path(question.execution, "/input"), {"id": str(question.raw["id"]), "value": value}
