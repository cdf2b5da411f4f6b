"""What a Jupyter kernel needs of Coppice: tool and runtime, input() that can
time out, and a reset of the session's names. The host runs this text once in a
new kernel, as a module of its own; it is not written to any file."""

from __future__ import annotations

import builtins
import http.client
import json
import os
import select
import socket
import sys
import threading
import urllib.parse
from typing import Any, Dict, List, Optional

from coppice_callenv import CallEnv
from coppice_hostcalls import Call, HostCallError, install

# What the host answers to a question that waited too long, with the seconds; to
# one that has no answer it sends the first character alone, which is the end of
# input for a kernel, or why there is none.
_IDLE = "\x04coppice-idle:"
_NONE = "\x04coppice-none:"


class InputTimeout(TimeoutError):
    """Raised by input() when no answer came in time."""


InputTimeout.__module__ = "coppice"


class _Local(http.client.HTTPConnection):
    """A connection to a socket with a path, where the kernel has no network."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Bridge:
    """The transport: one HTTP request for each call, over connections that are
    used again. Proxies are not asked: the host is on this machine."""

    def __init__(self, shell: Any, url: str, token: str, session: str) -> None:
        self._shell = shell
        place = urllib.parse.urlsplit(url) if url else None
        self._place = place and (place.path if place.scheme == "unix" else (place.hostname, place.port))
        self._headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
        self._session = session
        self._lock = threading.Lock()
        self._idle: List[http.client.HTTPConnection] = []  # guarded by the lock
        self._pid = os.getpid()

    def __call__(self, call: Call) -> Dict[str, Any]:
        __tracebackhide__ = True  # IPython leaves the frame out
        if self._place is None:
            raise HostCallError(f"{call.name}: tool bridge is unavailable in this kernel", "HostCallError")
        if os.getpid() != self._pid:
            raise HostCallError(f"{call.name}: a process that the cell forked cannot call the host")
        head = json.dumps({"session": self._session, "run": str(self._shell.execution_count), "kind": call.kind, "name": call.name})
        body = f'{head[:-1]},"args":{call.args}}}'.encode()
        connection = self._take()
        call.abort = lambda: _cut(connection)
        try:
            if call.aborted:
                raise HostCallError(f"{call.name}: the call was given up", "CancelledError")
            connection.request("POST", "/v1/tool", body, self._headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException, AttributeError) as err:
            connection.close()
            if call.aborted:
                raise HostCallError(f"{call.name}: the call was given up", "CancelledError") from None
            raise HostCallError(f"{call.name}: the host cannot be reached: {type(err).__name__}", "ConnectionError") from None
        except BaseException as err:  # an interrupt: what comes on this connection now is not waited for
            connection.close()
            raise err.with_traceback(None)
        with self._lock:
            self._idle.append(connection)
        try:
            reply = json.loads(data)
        except ValueError:
            raise HostCallError(f"{call.name}: the host answered {response.status} with {data[:200]!r}") from None
        if not isinstance(reply, dict):
            raise HostCallError(f"{call.name}: the host answered {response.status} with {data[:200]!r}")
        return reply

    def _take(self) -> http.client.HTTPConnection:
        """Returns a connection that the host has not closed in the meantime. A call is
        never sent twice, so that must be known before."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return _Local(self._place) if isinstance(self._place, str) else http.client.HTTPConnection(*self._place)  # type: ignore[misc]
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()


def _cut(connection: http.client.HTTPConnection) -> None:
    try:
        sock = connection.sock
        if sock is not None:
            sock.shutdown(2)
    except OSError:
        pass  # it is closed already


class Cell:
    """The state that a reset goes back to, and the hooks of a kernel."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._cwd = os.getcwd()
        self._environ = dict(os.environ)
        self._names: Optional[Dict[str, Any]] = None  # of the namespace before the first cell of the user
        self.began = self._cwd, self._environ  # the directory and the environment then
        self.asked = False  # the cell wanted input, and none could be asked for
        self.env = CallEnv()
        # IPython adds names for as long as code runs, as it does now and in reset.
        self._builtins = dict(vars(builtins))

    def before(self, _info: Any) -> None:
        """Runs before each cell that is not silent."""
        if self._names is None:
            self.begin()
        self.asked = False
        patch_input(self._shell)

    def begin(self) -> None:
        """Notes what the session has before its first cell."""
        self._names = dict(self._shell.user_ns)
        self.began = os.getcwd(), dict(os.environ)

    def after(self, _result: Any) -> None:
        """Runs after each such cell: what its call had of variables is put back, though the
        host that would ask for it may be gone."""
        self.env.leave()

    def reset(self) -> None:
        """Removes what cells have defined, and puts the directory, the
        environment and replaced builtins back."""
        if self._names is None:
            return
        names = self._shell.user_ns
        for name in [n for n in names if n not in self._names]:
            names.pop(name, None)
        names.update(self._names)
        now = vars(builtins)
        for name in [n for n in now if n not in self._builtins]:
            del now[name]
        now.update(self._builtins)
        os.chdir(self._cwd)
        for name in [n for n in os.environ if n not in self._environ]:
            del os.environ[name]
        os.environ.update(self._environ)


def _answered() -> None:
    """Has what numbers the kernel's messages know that no question is open."""
    output = getattr(sys.modules.get("coppice_output"), "output", None)
    if hasattr(output, "answered"):
        output.answered()


def patch_input(shell: Any) -> None:
    """Has input() and getpass raise InputTimeout when the host says that no answer
    came. Kernels put their own functions in place when they start."""
    kernel = getattr(shell, "kernel", None)
    ask = getattr(kernel, "_input_request", None)
    if ask is None or getattr(ask, "coppice", False):
        return

    def request(*args: Any, **kwargs: Any) -> str:
        __tracebackhide__ = True  # IPython leaves the frame out
        try:
            value = ask(*args, **kwargs)
        finally:
            _answered()
        if isinstance(value, str) and value.startswith(_IDLE):
            raise InputTimeout(f"input request timed out: no answer came within {float(value[len(_IDLE):]):g} seconds")
        if isinstance(value, str) and value.startswith(_NONE):
            raise EOFError(f"there is no answer: {value[len(_NONE):]}")
        return value

    request.coppice = True  # type: ignore[attr-defined]
    kernel._input_request = request


def tell_input(shell: Any, cell: Cell) -> None:
    """Has the answer to a cell say that it wanted input where none could be asked for,
    also when the cell has caught what that raises."""
    kernel = shell.kernel
    session, send = kernel.session, kernel.session.send

    def sending(stream: Any, msg_or_type: Any, content: Any = None, *args: Any, **kwargs: Any) -> Any:
        if cell.asked and msg_or_type == "execute_reply" and isinstance(content, dict):
            content, cell.asked = dict(content, coppice_stdin=True), False
        return send(stream, msg_or_type, content, *args, **kwargs)

    _note_refusal(kernel, cell)
    session.send = sending


def _note_refusal(kernel: Any, cell: Cell) -> None:
    """Has cell know when a read from stdin is refused: by the class of what it raises. A
    function around the one that asks would be a frame more in tracebacks."""
    module = next((sys.modules[c.__module__] for c in type(kernel).__mro__ if "raw_input" in vars(c)), None)
    refused = getattr(module, "StdinNotImplementedError", None)
    if refused is None:
        return

    class StdinNotImplementedError(refused):  # type: ignore[misc, valid-type]
        def __init__(self, *args: Any) -> None:
            cell.asked = True
            super().__init__(*args)

    StdinNotImplementedError.__module__, StdinNotImplementedError.__qualname__ = refused.__module__, refused.__qualname__
    module.StdinNotImplementedError = StdinNotImplementedError  # type: ignore[union-attr]


class Exit:
    """exit and quit of a session: they end the cell, as sys.exit does, and not the
    kernel with all variables. A reset does that."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"Use {self._name}() to end the cell; the variables stay."

    def __call__(self, code: object = None) -> None:
        __tracebackhide__ = True  # IPython leaves the frame out
        raise SystemExit(code)


def keep_kernel(shell: Any) -> None:
    """Puts our exit and quit in place of those that end the kernel, also after a reset."""
    names = {name: Exit(name) for name in ("exit", "quit")}
    anew = shell.init_user_ns

    def init_user_ns() -> None:
        anew()
        shell.user_ns.update(names)
        shell.user_ns_hidden.update(names)

    shell.init_user_ns = init_user_ns
    shell.user_ns.update(names)
    shell.user_ns_hidden.update(names)


def start(url: str, token: str, session: str) -> Cell:
    """Prepares the kernel that runs this."""
    from IPython import get_ipython

    shell = get_ipython()
    install(shell.user_ns, Bridge(shell, url, token, session))
    for name in ("tool", "runtime"):
        shell.user_ns_hidden[name] = shell.user_ns[name]
    cell = Cell(shell)
    shell.events.register("pre_run_cell", cell.before)
    shell.events.register("post_run_cell", cell.after)
    keep_kernel(shell)
    try:
        tell_input(shell, cell)
    except AttributeError:
        pass  # not ipykernel: what the code catches is not told
    return cell
