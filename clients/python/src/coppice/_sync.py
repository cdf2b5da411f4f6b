"""The client for programs without an event loop."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from typing import Any, Callable, Iterator, List, Mapping, Optional, Tuple

from . import _wire
from ._errors import ConnectionLost, CoppiceError, ServerError
from ._find import find
from ._types import Code, Event, Result, SessionInfo, session_of


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """The sessions of a running ``coppice serve``.

    Without an address it is the server of this user, as ``coppice run --session`` finds
    it: by a file in ``home``, ``COPPICE_HOME`` or the home directory. With ``url`` the
    token has to be given. ``patience`` is how many seconds the server may be out of
    reach before a request fails with ConnectionLost. It may be used from many threads.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, home: Optional[str] = None, patience: float = _wire.PATIENCE) -> None:
        if url is None:
            address, token, unix = find(home)
            self._at = _wire.Address(address, token, unix)
        else:
            self._at = _wire.Address(url, token or "")
        self._patience = patience
        self._tls = ssl.create_default_context() if self._at.tls else None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._at.url

    def close(self) -> None:
        """Nothing is kept open between two requests; this is for symmetry with sessions.

        The sessions stay: end one with ``Session.close``.
        """

    def session(self, name: str, *, cwd: Optional[str] = None, owner: str = "") -> Session:
        """A session by its name; all who give it share its variables.

        Nothing is asked of the server: the first call gives the session an interpreter.
        ``cwd`` is its working directory and a part of its identity; default: the
        server's.
        """
        return Session(self, name, cwd, owner)

    def sessions(self) -> List[SessionInfo]:
        """The sessions that have an interpreter."""
        return [session_of(s) for s in self._ask("GET", "api/sessions")["sessions"]]

    def health(self) -> Mapping[str, Any]:
        """How the server is: ``status``, ``version``, ``backend``, …"""
        answer: Mapping[str, Any] = self._ask("GET", "api/health")
        return answer

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        at = self._at
        if at.socket:
            return _UnixConnection(at.socket, timeout)
        if self._tls:
            return http.client.HTTPSConnection(at.host, at.port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(at.host, at.port, timeout=timeout)

    def _open(self, method: str, path: str, query: Optional[Mapping[str, str]], body: Optional[bytes], after: int, timeout: float) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connect(timeout)
        try:
            connection.request(method, self._at.target(path, query), body, self._at.headers(body, after))
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _ask(self, method: str, path: str, body: Any = None, *, query: Optional[Mapping[str, str]] = None, again: bool = True, timeout: float = _wire.ANSWER) -> Any:
        """One request; repeated, while the server is out of reach, when that changes nothing."""
        data, pause = _wire.encode(body), _wire.Pause(self._patience)
        while True:
            try:
                connection, response = self._open(method, path, query, data, -1, timeout)
                try:
                    answer = response.read(_wire.MOST)
                    if response.length:  # what was read is not all that was promised
                        raise ConnectionError("the connection broke")
                    return _wire.decode(response.status, answer)
                finally:
                    connection.close()
            except (OSError, http.client.HTTPException) as e:
                if not again:
                    raise ConnectionLost(f"{method} {path}: {e or type(e).__name__}") from e
                time.sleep(pause.after(e, f"{method} {path}"))

    def _events(self, execution: str) -> Iterator[Event]:
        """The events of an execution, over as many connections as it takes."""
        seen, pause = _wire.Following(execution), _wire.Pause(self._patience)
        path = _wire.execution_path(execution, "/events")
        while not seen.done:
            pause.begin()
            try:
                connection, response = self._open("GET", path, None, None, seen.after, _wire.SILENCE)
                try:
                    if response.status == 204:  # nothing follows, and nothing will
                        break
                    if response.status != 200:
                        raise _wire.problem(response.status, response.read(1 << 16))
                    parser = _wire.Parser()
                    while not seen.done:
                        piece = response.read1(1 << 16)
                        if not piece:
                            raise ConnectionError("the connection broke")
                        pause.alive()
                        for data in parser.feed(piece):
                            event = seen.take(data)
                            if event:
                                pause.progress()
                                yield event
                finally:
                    connection.close()
            except (OSError, http.client.HTTPException) as e:
                time.sleep(pause.after(e, f"events of execution {execution} after {seen.after}"))
        if not seen.done:
            raise CoppiceError(f"execution {execution} has no result")


class Session:
    """A session of a server. ``Client.session`` makes it."""

    def __init__(self, client: Client, name: str, cwd: Optional[str], owner: str) -> None:
        _wire.session_path(name)
        self._client = client
        #: Its name.
        self.name = name
        #: Its working directory; None: the server's.
        self.cwd = cwd
        self._owner = owner

    def __repr__(self) -> str:
        return f"<coppice.Session {self.name!r}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None,
        on_event: Optional[Callable[[Event], object]] = None, answer: Optional[Callable[[Event], str]] = None,
    ) -> Result:
        """Run code, and return its result.

        ``timeout`` is in seconds; None: the server's default, math.inf: none. ``env`` is
        added to the environment for this call. ``on_event`` is called with each event,
        ``answer`` with each ``input_request``, and returns the line that ``input()``
        gives; without it ``input()`` raises. Whatever is raised here, or by them, cancels
        the code.
        """
        events = self.stream(code, timeout=timeout, env=env, allow_stdin=answer is not None)
        try:
            for event in events:
                if on_event:
                    on_event(event)
                if event.type == "input_request" and answer:
                    self.input(event, answer(event))
                result = event.result
                if result:
                    return result
        finally:
            events.close()  # type: ignore[attr-defined]
        raise CoppiceError("the execution has no result")

    def stream(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, allow_stdin: bool = False,
    ) -> Iterator[Event]:
        """Run code, and yield each event while it happens, the ``final`` one last.

        The code starts with the first event that is asked for; it is cancelled when the
        loop is left before the end. With ``allow_stdin`` questions of ``input()`` come as
        ``input_request``, for ``input``. Else as ``run``.
        """
        client = self._client
        body = _wire.execution_body(self.name, self.cwd, self._owner, code, timeout, env, allow_stdin)
        ended = False
        try:
            try:
                client._ask("POST", "api/executions", body)
            except ServerError:
                ended = True  # it never began
                raise
            for event in client._events(body["id"]):
                ended = event.type == "final"
                yield event
        finally:
            if not ended:
                try:
                    client._ask("POST", _wire.execution_path(body["id"], "/cancel"), again=False, timeout=5)
                except CoppiceError:
                    pass  # what made us leave is more important

    def input(self, question: Event, value: str) -> str:
        """Answer an ``input_request``: ``accepted``, ``expired``, ``already answered``, ``unknown``."""
        path, body = _wire.answer_body(question, value)
        return str(self._client._ask("POST", path, body, again=False)["status"])

    def fork(self, copies: int = 1) -> List[Session]:
        """Copy the session with all its variables, as many times as said.

        ServerError with the code ``fork_refused`` says why it cannot be copied.
        """
        made = self._ask("POST", "/fork", {"copies": copies, **({"owner": self._owner} if self._owner else {})})
        return [Session(self._client, s["session"], s.get("cwd") or self.cwd, self._owner) for s in made["sessions"]]

    def interrupt(self) -> None:
        """Stop what runs. The variables stay."""
        self._ask("POST", "/interrupt")

    def reset(self) -> None:
        """End the interpreter; the next call has a new one."""
        self._ask("POST", "/reset")

    def close(self) -> None:
        """End the session. What runs is cancelled. One that has ended already is fine."""
        try:
            self._ask("DELETE", "")
        except ServerError as e:
            if e.status != 404:
                raise

    def _ask(self, method: str, action: str, body: Any = None) -> Any:
        query = {"cwd": self.cwd} if self.cwd is not None else None
        return self._client._ask(method, _wire.session_path(self.name, action), body, query=query, again=False)
