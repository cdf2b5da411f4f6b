"""The client for programs without an event loop."""

from __future__ import annotations

import http.client
import socket
import time
from contextlib import suppress
from typing import Any, Callable, Generator, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import _asks, _lives, _reach, _wire
from ._asked import Asked
from ._errors import ConnectionLost, CoppiceError, ServerError, said
from ._epochs import Epochs
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
    token has to be given, here or in ``COPPICE_TOKEN``. ``patience`` is how many seconds the server may be out of
    reach before a request fails with ConnectionLost: it cannot be connected to, or gives no
    answer. A request that takes long at a server that answers others is waited for. Code that a server had been given
    before it was started again is not sent to it a second time: ServerError with the code
    ``lost`` says that what became of it is not known. One client may be used by many threads.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, home: Optional[str] = None, patience: float = _reach.PATIENCE) -> None:
        self._where = Where(url, token, home)
        self._patience, self._reach = patience, _reach.Reach(patience)
        self._epochs, self._lives, self._had, self._asked = Epochs(), _lives.Lives(), _lives.Sessions(), Asked()

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
        self._ask("DELETE", "api/checkpoints/" + _wire.part("the id of a checkpoint", checkpoint_id(checkpoint)), again=False)

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

    def artifact(self, artifact: Union[str, int], encoding: str = "utf-8") -> str:
        """The whole text of an output that was too long for a result, which names it:
        ``artifact://0``. What is no text in this encoding is replaced in it."""
        return b"".join(self.stream_artifact(artifact)).decode(encoding, "replace")

    def stream_artifact(self, artifact: Union[str, int]) -> Generator[bytes, None, None]:
        """An output that was too long for a result, or a drawing, piece by piece. A connection
        that breaks is made again from where it broke."""
        path, seen = _asks.artifact_request(artifact)
        return self._content(path, None, seen)

    def _connect(self, at: _wire.Address, timeout: float) -> http.client.HTTPConnection:
        if at.socket:
            return _UnixConnection(at.socket, timeout)
        if at.tls:
            return http.client.HTTPSConnection(at.host, at.port, timeout=timeout, context=self._where.tls)
        return http.client.HTTPConnection(at.host, at.port, timeout=timeout)

    def _open(
        self, method: str, path: str, query: Optional[_wire.Query], body: Union[bytes, Iterator[bytes], None], after: int, timeout: float,
        headers: Optional[Mapping[str, str]] = None, begin: Optional[Callable[[_wire.Address], None]] = None, lookout: Optional[_reach.Lookout] = None,
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Make a request, of which begin is told. When nothing was done, and the server is elsewhere by now, it is made there."""
        while True:
            at = self._where.at
            if begin:
                begin(at)
            try:
                connection, response = self._open_at(at, method, path, query, body, after, timeout, headers, lookout)
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
        timeout: float, headers: Optional[Mapping[str, str]], lookout: Optional[_reach.Lookout] = None,
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self._connect(at, min(timeout, self._reach.answer))
        try:
            try:
                connection.connect()
            except OSError as e:
                refused = _reach.untrusted(e, at.url)
                if refused:
                    raise refused from e
                raise _wire.not_sent(e, at) from e
            sock: socket.socket = connection.sock  # it is gone from there with the head of the answer
            sock.settimeout(timeout)
            if lookout:
                lookout.watch(sock)
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
            response = connection.getresponse()
            if after >= 0:
                sock.settimeout(self._reach.silence)
            return connection, response
        except BaseException:
            connection.close()
            raise

    def _once(
        self, method: str, path: str, query: Optional[_wire.Query] = None, data: Union[bytes, Iterator[bytes], None] = None,
        headers: Optional[Mapping[str, str]] = None, timeout: Optional[float] = None, begin: Optional[Callable[[_wire.Address], None]] = None,
    ) -> Tuple[Any, _wire.Header]:
        """One request, and its answer. timeout is how long the server may say nothing; None: while it answers others."""
        if timeout is not None:
            return self._exchange(method, path, query, data, headers, timeout, begin)
        with _reach.Lookout(self._alive, self._reach.ask) as lookout:
            try:
                return self._exchange(method, path, query, data, headers, _reach.ANSWER, begin, lookout)
            except (OSError, http.client.HTTPException) as e:
                if lookout.failed:
                    raise TimeoutError(f"the server does not answer: {said(lookout.failed)}") from e
                raise

    def _exchange(
        self, method: str, path: str, query: Optional[_wire.Query], data: Union[bytes, Iterator[bytes], None], headers: Optional[Mapping[str, str]],
        timeout: float, begin: Optional[Callable[[_wire.Address], None]], lookout: Optional[_reach.Lookout] = None,
    ) -> Tuple[Any, _wire.Header]:
        connection, response = self._open(method, path, query, data, -1, timeout, headers, begin, lookout)
        try:
            answer = _whole(response)
            if response.length:  # what was read is not all that was promised
                raise ConnectionError("the connection broke")
            return _wire.decode(response.status, answer), response.getheader
        finally:
            connection.close()

    def _alive(self) -> None:
        """See that the server answers; whatever it says."""
        with suppress(CoppiceError):
            self._exchange("GET", "api/health", None, None, None, self._reach.answer, None)

    def _ask(
        self, method: str, path: str, body: Any = None, *, query: Optional[_wire.Query] = None, again: bool = True,
        timeout: Optional[float] = None, waits: bool = False, data: Union[bytes, Iterator[bytes], None] = None,
        headers: Optional[Mapping[str, str]] = None, patience: Optional[float] = None,
    ) -> Any:
        """One request; repeated, while the server is out of reach, when that changes nothing. waits:
        the answer takes its time, though nothing but what there is is asked for."""
        return self._told(method, path, body, query, again, timeout, waits, data, headers, patience)[0]

    def _told(
        self, method: str, path: str, body: Any = None, query: Optional[_wire.Query] = None, again: bool = True, timeout: Optional[float] = None,
        waits: bool = False, data: Union[bytes, Iterator[bytes], None] = None, headers: Optional[Mapping[str, str]] = None,
        patience: Optional[float] = None,
    ) -> Tuple[Any, _wire.Header]:
        """As _ask, with what stands above the answer."""
        timeout = self._reach.limit(method, waits) if timeout is None else timeout
        pause = _wire.Pause(self._patience if patience is None else patience)
        data = _wire.encode(body) if data is None else data
        repeated = False
        while True:
            try:
                pause.begin()
                return self._once(method, path, query, data, headers, timeout)
            except _asks.SourceFailed as e:
                raise e.cause
            except ServerError as e:
                e.repeated = repeated
                raise
            except (OSError, http.client.HTTPException) as e:
                sent = not isinstance(e, _wire.NotSent)
                repeated = repeated or sent
                if sent and not again:
                    raise ConnectionLost(f"{method} {path}: {said(e)}") from e
                self._wait(pause, e, f"{method} {path}")

    def _wait(self, pause: _wire.Pause, error: Exception, doing: str) -> None:
        """Wait before a try that follows one that failed, and look where the server is by then."""
        time.sleep(pause.after(error, doing))
        self._where.look()

    def _begin(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> _wire.Header:
        """Begin an execution; repeated, while the server is out of reach, when it cannot begin twice."""
        pause, sent, data = _wire.Pause(self._patience), _wire.Sent(), _wire.encode(body)
        while True:
            try:
                pause.begin()
                return self._try(str(body["id"]), data, headers, sent)
            except ServerError as e:
                e.repeated = sent.arrived
                raise
            except (OSError, http.client.HTTPException) as e:
                sent.fail(e)
                self._wait(pause, e, "POST api/executions")

    def _try(self, execution: str, data: Optional[bytes], headers: Mapping[str, str], sent: _wire.Sent) -> _wire.Header:
        """Try to begin an execution, where an attempt before may have arrived at another life of the server."""
        at_once = self._reach.answer
        life = sent.again(*self._once("GET", "api/health", headers=_wire.WHICH, timeout=at_once, begin=sent.ask)) if sent.arrived else {}
        if life is not None:
            try:
                return self._once("POST", "api/executions", None, data, {**headers, **life}, begin=sent.begin)[1]
            except ServerError as e:
                if not life or e.code != "lost":
                    raise
                # It was another life by then, and nothing was done.
        try:
            return self._once("GET", _wire.execution_path(execution), headers=_wire.WHICH, timeout=at_once)[1]  # it may have been kept, or handed over
        except ServerError as e:
            raise _wire.unknown() if e.status == 404 else e from None

    def _events(self, seen: _wire.Numbered[_wire.T]) -> Generator[_wire.T, None, None]:
        """The events of an execution or a process, over as many connections as it takes."""
        pause = _wire.Pause(self._patience)
        while not seen.done:
            pause.begin()
            try:
                connection, response = self._open("GET", seen.path, None, None, seen.after, self._reach.answer)
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

    def _content(self, path: str, query: Optional[_wire.Query], seen: _asks.Reading) -> Generator[bytes, None, None]:
        """What a file or an artifact holds, over as many connections as it takes."""
        pause = _wire.Pause(self._patience)
        while not seen.done:
            pause.begin()
            try:
                connection, response = self._open("GET", path, query, None, -1, self._reach.answer, seen.headers())
                try:
                    if not seen.begin(response.status, response.getheader):
                        raise _wire.problem(response.status, response.read(1 << 16))
                    while not seen.done:
                        piece = response.read1(seen.next)
                        if not piece:
                            raise ConnectionError("the connection broke")
                        pause.progress()
                        yield seen.take(piece)
                finally:
                    connection.close()
            except (OSError, http.client.HTTPException) as e:
                self._wait(pause, e, seen.what)

    def _lost(self, workspace: str, process: str, error: ServerError) -> ServerError:
        """What it means that a process is refused: a server that was started again does not know it."""
        life = self._lives.of(workspace, process, error)
        return life and _lives.lost(life, self._told("GET", "api/health", headers=_wire.WHICH)[1]) or error
