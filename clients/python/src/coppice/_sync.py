"""The client for programs without an event loop."""

from __future__ import annotations

import http.client
import socket
import time
from contextlib import suppress
from typing import Any, Callable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union
from urllib.parse import quote

from . import _asks, _wire
from ._errors import ConnectionLost, ServerError
from ._places import WorkspaceInfo, workspace_of
from ._sync_places import Workspace
from ._sync_session import Session
from ._saved import SavedCheckpoint, drop_request, saved_of
from ._types import Checkpoint, SessionInfo, checkpoint_id, checkpoint_of, session_of
from ._where import Where


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _whole(response: http.client.HTTPResponse) -> bytes:
    """An answer, in pieces: some versions of Python make room for all that is asked for."""
    answer = bytearray()
    while len(answer) < _wire.MOST:
        piece = response.read(_asks.PIECE)
        if not piece:
            break
        answer += piece
    return bytes(answer)


class Client:
    """The sessions and workspaces of a running ``coppice serve``.

    Without an address it is the server of this user, as ``coppice run --session`` finds
    it: by a file in ``home``, ``COPPICE_HOME`` or the home directory. Such a client follows
    its server when that is started again elsewhere, with another token. With ``url`` the
    token has to be given. ``patience`` is how many seconds the server may be out of
    reach before a request fails with ConnectionLost. Code that a server had been given
    before it was started again is not sent to it a second time: ServerError with the code
    ``lost`` says that what became of it is not known. One client may be used by many threads.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, home: Optional[str] = None, patience: float = _wire.PATIENCE) -> None:
        self._where = Where(url, token, home)
        self._patience = patience

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Where the server is."""
        return self._where.at.url

    def close(self) -> None:
        """Nothing is kept open between two requests; this is for symmetry with sessions.

        The sessions stay: end one with ``Session.close``.
        """

    def session(self, name: str, *, cwd: Optional[str] = None, owner: str = "", kernel: str = "") -> Session:
        """A session by its name; all who give it share its variables.

        Nothing is asked of the server: the first call gives the session an interpreter.
        ``cwd`` is its working directory and a part of its identity; default: the
        server's. So is ``kernel``, the kernelspec of its kernels; default: the one of
        sessions that name none.
        """
        return Session(self, name, cwd, owner, kernel=kernel)

    def workspace(self, name: str) -> Workspace:
        """A workspace that is there, by its name. Nothing is asked of the server."""
        return Workspace(self, name)

    def create_workspace(
        self, name: str, *, folder: Optional[str] = None, keep_folder: bool = False, env: Optional[Mapping[str, str]] = None,
        pass_env: Optional[Sequence[str]] = None, labels: Optional[Mapping[str, str]] = None, limits: Optional[Mapping[str, float]] = None,
        isolation: Optional[Mapping[str, Any]] = None, quota: int = 0, end_in: float = 0, idle_end: float = 0, owner: str = "",
        total: Optional[Mapping[str, float]] = None,
    ) -> Workspace:
        """Make a workspace, or return the one of this name that is there and was made alike.

        ``folder`` is one that is there on the machine of the server; default: one of its
        own, which is removed with it unless ``keep_folder`` is set. ``env`` is its
        environment, beside the variables of the server that ``pass_env`` names; default:
        those that all sessions get. ``limits`` bound each session: ``memory_bytes``,
        ``cpu_seconds``, ``runtime_seconds``, ``files``, ``processes``, ``processors``.
        ``total`` bounds everything in it together: ``memory_bytes``, ``processes``,
        ``processors``, and ``output_bytes`` of each cell and process. ``isolation`` has
        ``level``, ``write``, ``read``, ``network``, ``private``, ``users``. ``quota`` is
        how many bytes its files may have. It ends ``end_in`` seconds from now, and
        after ``idle_end`` seconds without use; 0 of each: never.
        """
        body = _asks.workspace_body(name, folder, keep_folder, env, pass_env, labels, limits, isolation, quota, end_in, idle_end, owner, total)
        self._ask("POST", "api/workspaces", body)
        return Workspace(self, name)

    def workspaces(self, *, labels: Optional[Mapping[str, str]] = None, owner: str = "") -> List[WorkspaceInfo]:
        """The workspaces that have not ended: all, or those with these labels ("": any value) and owner."""
        query = _asks.workspace_query(labels, owner)
        return [workspace_of(w) for w in self._ask("GET", "api/workspaces", query=query)["workspaces"]]

    def checkpoints(self) -> List[Checkpoint]:
        """The checkpoints that the server keeps, the oldest first."""
        return [checkpoint_of(c) for c in self._ask("GET", "api/checkpoints")["checkpoints"]]

    def drop_checkpoint(self, checkpoint: Union[Checkpoint, str]) -> None:
        """End a checkpoint."""
        self._ask("DELETE", "api/checkpoints/" + quote(checkpoint_id(checkpoint), safe=""), again=False)

    def saved_checkpoints(self) -> List[SavedCheckpoint]:
        """What sessions have saved on the server's disk, by workspace and name."""
        return [saved_of(c) for c in self._ask("GET", "api/saved-checkpoints")["checkpoints"]]

    def drop_saved_checkpoint(self, checkpoint: Union[SavedCheckpoint, str], *, workspace: str = "", owner: str = "") -> None:
        """Drop one from the server's disk; owner "": for no one in particular, who may drop any."""
        path, query = drop_request(checkpoint, workspace, owner)
        self._ask("DELETE", path, query=query, again=False)

    def sessions(self) -> List[SessionInfo]:
        """The sessions that have an interpreter."""
        return [session_of(s) for s in self._ask("GET", "api/sessions")["sessions"]]

    def health(self) -> Mapping[str, Any]:
        """How the server is: ``status``, ``version``, ``backend``, …"""
        answer: Mapping[str, Any] = self._ask("GET", "api/health")
        return answer

    def _connect(self, at: _wire.Address, timeout: float) -> http.client.HTTPConnection:
        if at.socket:
            return _UnixConnection(at.socket, timeout)
        if at.tls:
            return http.client.HTTPSConnection(at.host, at.port, timeout=timeout, context=self._where.tls)
        return http.client.HTTPConnection(at.host, at.port, timeout=timeout)

    def _open(
        self, method: str, path: str, query: Optional[_wire.Query], body: Union[bytes, Iterator[bytes], None], after: int, timeout: float,
        headers: Optional[Mapping[str, str]] = None, begin: Optional[Callable[[_wire.Address], None]] = None,
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Make a request, of which begin is told. When nothing was done, and the server is elsewhere by now, it is made there."""
        while True:
            at = self._where.at
            if begin:
                begin(at)
            try:
                connection, response = self._open_at(at, method, path, query, body, after, timeout, headers)
            except _wire.NotSent:
                if not self._where.moved(at):
                    raise
                continue
            # Of what is read while it is sent, a part is gone.
            if response.status != 401 or not (body is None or isinstance(body, bytes)) or not self._where.moved(at):
                return connection, response
            connection.close()

    def _open_at(
        self, at: _wire.Address, method: str, path: str, query: Optional[_wire.Query], body: Union[bytes, Iterator[bytes], None], after: int,
        timeout: float, headers: Optional[Mapping[str, str]],
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connect(at, timeout)
        try:
            try:
                connection.connect()
            except OSError as e:
                raise _wire.NotSent(str(e) or type(e).__name__) from e
            head = at.headers(body, after, headers)
            if isinstance(body, bytes) and len(body) > _asks.PIECE:  # the timeout is that of a piece
                body = _asks.cut(body)
            try:
                connection.request(method, at.target(path, query), body, head, encode_chunked="Transfer-Encoding" in head)
            except (BrokenPipeError, ConnectionResetError):
                if not body:
                    raise
                with suppress(OSError, http.client.HTTPException):  # the server may have said why it takes no more
                    return connection, connection.getresponse()
                raise
            return connection, connection.getresponse()
        except BaseException:
            connection.close()
            raise

    def _once(
        self, method: str, path: str, query: Optional[_wire.Query] = None, data: Union[bytes, Iterator[bytes], None] = None,
        headers: Optional[Mapping[str, str]] = None, timeout: float = _wire.ANSWER, begin: Optional[Callable[[_wire.Address], None]] = None,
    ) -> Tuple[Any, _wire.Header]:
        """One request, and its answer."""
        connection, response = self._open(method, path, query, data, -1, timeout, headers, begin)
        try:
            answer = _whole(response)
            if response.length:  # what was read is not all that was promised
                raise ConnectionError("the connection broke")
            return _wire.decode(response.status, answer), response.getheader
        finally:
            connection.close()

    def _ask(
        self, method: str, path: str, body: Any = None, *, query: Optional[_wire.Query] = None, again: bool = True,
        timeout: float = _wire.ANSWER, data: Union[bytes, Iterator[bytes], None] = None, headers: Optional[Mapping[str, str]] = None,
    ) -> Any:
        """One request; repeated, while the server is out of reach, when that changes nothing."""
        pause = _wire.Pause(self._patience)
        data = _wire.encode(body) if data is None else data
        repeated = False
        while True:
            try:
                return self._once(method, path, query, data, headers, timeout)[0]
            except _asks.SourceFailed as e:
                raise e.cause
            except ServerError as e:
                e.repeated = repeated
                raise
            except (OSError, http.client.HTTPException) as e:
                repeated = repeated or not isinstance(e, _wire.NotSent)
                if not again:
                    raise ConnectionLost(f"{method} {path}: {e or type(e).__name__}") from e
                self._wait(pause, e, f"{method} {path}")

    def _wait(self, pause: _wire.Pause, error: Exception, doing: str) -> None:
        """Wait before a try that follows one that failed, and look where the server is by then."""
        time.sleep(pause.after(error, doing))
        self._where.look()

    def _begin(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        """Begin an execution; repeated, while the server is out of reach, when it cannot begin twice."""
        pause, sent, data = _wire.Pause(self._patience), _wire.Sent(), _wire.encode(body)
        while True:
            try:
                return self._try(str(body["id"]), data, headers, sent)
            except ServerError as e:
                e.repeated = sent.arrived
                raise
            except (OSError, http.client.HTTPException) as e:
                sent.fail(e)
                self._wait(pause, e, "POST api/executions")

    def _try(self, execution: str, data: Optional[bytes], headers: Mapping[str, str], sent: _wire.Sent) -> None:
        """Try to begin an execution, where an attempt before may have arrived at another life of the server."""
        life = sent.again(*self._once("GET", "api/health", headers=_wire.WHICH, begin=sent.ask)) if sent.arrived else {}
        if life is not None:
            try:
                self._once("POST", "api/executions", None, data, {**headers, **life}, begin=sent.begin)
                return
            except ServerError as e:
                if not life or e.code != "lost":
                    raise
                # It was another life by then, and nothing was done.
        try:
            self._once("GET", _wire.execution_path(execution))  # it may have been kept, or handed over
        except ServerError as e:
            raise _wire.unknown() if e.status == 404 else e from None

    def _events(self, seen: _wire.Numbered[_wire.T]) -> Iterator[_wire.T]:
        """The events of an execution or a process, over as many connections as it takes."""
        pause = _wire.Pause(self._patience)
        while not seen.done:
            pause.begin()
            try:
                connection, response = self._open("GET", seen.path, None, None, seen.after, _wire.SILENCE)
                try:
                    if response.status == 204:  # nothing follows, and nothing will
                        break
                    if response.status != 200:
                        raise seen.refused(_wire.problem(response.status, response.read(1 << 16)))
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
                self._wait(pause, e, f"events of {seen.what} after {seen.after}")
        if not seen.done:
            seen.over()
