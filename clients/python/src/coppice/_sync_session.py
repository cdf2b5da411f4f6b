"""A session, for programs without an event loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Generator, List, Mapping, Optional, Union

from . import _lives, _wire
from ._epochs import EPOCH
from ._errors import ConnectionLost, CoppiceError, NoServer, ServerError
from ._saved import Memory, SavedCheckpoint, memory_of, restore_body, save_body
from ._types import Checkpoint, Code, Event, Result, checkpoint_id, checkpoint_of

if TYPE_CHECKING:
    from ._sync import Client


class Session:
    """A session of a server. ``Client.session`` makes it."""

    def __init__(self, client: Client, name: str, cwd: Optional[str], owner: str, workspace: str = "", kernel: str = "") -> None:
        _wire.session_path(name)
        self._client = client
        #: Its name.
        self.name = name
        #: Its working directory; None: the server's, or the folder of the workspace.
        self.cwd = cwd
        #: The workspace that it belongs to; "": none.
        self.workspace = workspace
        #: The kernelspec of its kernels; "": the one of sessions that name none.
        self.kernel = kernel
        self._owner = owner
        self._key = (name, cwd, workspace, kernel)

    def __repr__(self) -> str:
        return f"<coppice.Session {self.name!r}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, call_env: Optional[Mapping[str, str]] = None,
        on_event: Optional[Callable[[Event], object]] = None, answer: Optional[Callable[[Event], str]] = None,
    ) -> Result:
        """Run code, and return its result.

        ``timeout`` is in seconds; None: the server's default, math.inf: none. ``env`` is
        set before the first cell, and stays; ``call_env`` is put back after this call.
        ``on_event`` is called with each event,
        ``answer`` with each ``input_request``, and returns the line that ``input()``
        gives; without it ``input()`` raises. Whatever is raised here, or by them, cancels
        the code.
        """
        events = self.stream(code, timeout=timeout, env=env, call_env=call_env, allow_stdin=answer is not None)
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
            events.close()
        raise CoppiceError("the execution has no result")

    def stream(
        self, code: Code, *, timeout: Optional[float] = None, env: Optional[Mapping[str, str]] = None, call_env: Optional[Mapping[str, str]] = None,
        allow_stdin: bool = False,
    ) -> Generator[Event, None, None]:
        """Run code, and yield each event while it happens, the ``final`` one last.

        The code starts with the first event that is asked for; it is cancelled when the
        loop is left before the end. With ``allow_stdin`` questions of ``input()`` come as
        ``input_request``, for ``input``. Else as ``run``.
        """
        client, epochs = self._client, self._client._epochs
        body = _wire.execution_body(self.name, self.cwd, self.workspace, self._owner, code, timeout, env, call_env, allow_stdin, self.kernel)
        ended, leaving = False, 5
        client._asked.follow(body["id"])
        try:
            try:
                says = {**_wire.WHICH, **epochs.headers(self._key)}
                try:
                    header = client._begin(body, says)
                except ServerError as e:
                    if not epochs.goes_on(self._key, says, e):
                        raise
                    header = client._begin(body, {**_wire.WHICH, **epochs.headers(self._key)})
                epochs.saw(self._key, header(EPOCH))
            except (ServerError, NoServer, TypeError, ValueError):
                ended = True  # it never began, or is gone
                raise
            for event in client._events(_wire.Following(body["id"])):
                if client._asked.again(event):
                    continue
                ended = event.type == "final"
                yield client._had.result(self._key, _lives.of_server(header), event) if ended else event
        except ConnectionLost:
            leaving = 1  # it will hardly answer, but may read on
            raise
        finally:
            if not ended:
                try:
                    client._ask("POST", _wire.execution_path(body["id"], "/cancel"), again=False, timeout=leaving, patience=0)
                except CoppiceError:
                    pass  # what made us leave is more important
            client._asked.leave(body["id"])

    def input(self, question: Event, value: str) -> str:
        """Answer an ``input_request``: ``accepted``, ``expired``, ``already answered`` (also when the
        answer to this request was lost, and it was made again), ``unknown``."""
        path, body = _wire.answer_body(question, value)
        asked = self._client._asked
        try:
            told = self._client._ask("POST", path, body)  # it is taken once
        except ServerError as e:
            raise asked.refused(question, e) from None
        return asked.answered(question, str(told["status"]))

    def fork(self, copies: int = 1) -> List[Session]:
        """Copy the session with all its variables, as many times as said.

        ServerError with the code ``fork_refused`` says why it cannot be copied.
        """
        made = self._ask("POST", "/fork", {"copies": copies, **({"owner": self._owner} if self._owner else {})})
        return [Session(self._client, s["session"], s.get("cwd") or self.cwd, self._owner, self.workspace, self.kernel) for s in made["sessions"]]

    def checkpoint(self) -> Checkpoint:
        """Keep the state as it is now, for ``rewind``, until it is dropped or the server ends.

        Files are no part of it. ServerError with the code ``fork_refused`` says why it
        cannot be kept.
        """
        return checkpoint_of(self._ask("POST", "/checkpoint"))

    def rewind(self, checkpoint: Union[Checkpoint, str]) -> None:
        """Go back to the state of a checkpoint, which stays. It may be another session's
        with the same working directory."""
        self._ask("POST", "/rewind", {"checkpoint": checkpoint_id(checkpoint)})

    def save(self, name: str, *, lossy: bool = False, replace: bool = False) -> Memory:
        """Keep the variables on the server's disk under a name; the session goes on.

        ``restore`` has this session or another one go on from there, also in a later server.
        What would lose something is refused unless ``lossy``, and a name that is there
        unless ``replace``: ServerError with the code ``hibernate_refused``, whose hint says
        why. It needs ``coppice serve --hibernate``.
        """
        return memory_of(self._ask("POST", "/save", save_body(name, self._owner, lossy, replace)))

    def restore(self, checkpoint: Union[SavedCheckpoint, str]) -> Memory:
        """Go on from what ``save`` has kept, of this session or another one, which stays.

        What the session had is gone; it need not have been there. ServerError with the code
        ``restore_refused`` says why it was not done, and nothing has changed then.
        """
        return memory_of(self._ask("POST", "/restore", restore_body(checkpoint, self._owner)))

    def interrupt(self) -> None:
        """Stop what runs. The variables stay."""
        self._ask("POST", "/interrupt")

    def reset(self) -> None:
        """End the interpreter; the next call has a new one."""
        self._ask("POST", "/reset")
        self._client._had.forget(self._key)

    def close(self) -> None:
        """End the session. What runs is cancelled. One that has ended already is fine."""
        try:
            self._ask("DELETE", "")
        except ServerError as e:
            if e.status != 404:
                raise
        self._client._epochs.forget(self._key)
        self._client._had.forget(self._key)

    def _ask(self, method: str, action: str, body: Any = None) -> Any:
        query = _wire.session_query(self.cwd, self.workspace, self.kernel)
        return self._client._ask(method, _wire.session_path(self.name, action), body, query=query, again=False)
