"""A session: one namespace, the cells that run in it, and the requests that
the host makes of it."""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
import types
import warnings
from time import monotonic
from typing import Any, Callable, Dict, List, Optional, Tuple

import coppice_prelude  # noqa: F401, the prelude of each session takes it from here

from . import copies, display, errors, forkserver, hostcalls, imported, magics, outlive, signals
from .calls import Calls
from .commands import Commands
from .interrupts import Interrupts, calls_user
from .limits import Limits
from .side import Side, end_cut_off, end_group
from .source import Compiler
from .stdin import Input, Stdin
from .streams import Output, Stream
from .surroundings import directory, flush_libc, following, leave_fork, patch, patched
from .wire import MOVES, VERSION, Channel, Lines, RequestTooLong, encode, parse, quoted

CO_COROUTINE = 0x80

# How long a thread may keep the others of the interpreter waiting, in seconds:
# what it is at first, and what a session puts up with. The side thread is one of
# the others.
_SWITCH, _MOST_SWITCH = sys.getswitchinterval(), 0.1
# How many requests in a row may fail before the session is given up.
_FAILURES = 3
# Characters of a number that is sent as it is.
_SHORT = 1000


def prepare() -> None:
    """Does what takes its time and is the same for all sessions. A fork server
    does it once."""
    signals.install()
    # pyplot.show() with a canvas that is not a screen: the figure is shown.
    warnings.filterwarnings("ignore", message=".*cannot be shown", category=UserWarning)
    # Every session has a side thread, and a process that the user forks releases
    # what that one might hold.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)


class Session:
    """What one process is. A fork server makes the object before it forks, so
    that its children share it and begin their work in a third of the time. The
    methods run in the main thread."""

    def __init__(self) -> None:
        self._main: Any = None  # the socket of requests and frames; from run on
        self._lines = Lines()
        self.interrupts = Interrupts()
        self.limits = Limits(self.interrupts)
        self._channel = Channel(self.interrupts.pending, end_cut_off)
        self.output = Output(self._channel, self.interrupts)
        self.input = Input(self.interrupts, self.output.ask, self.output.flush)
        self.calls = Calls(self.interrupts, self.output.ask)
        self.side = Side(self)
        self.compiler = Compiler()
        self.commands = Commands(self)
        self.count = 0
        self._begun = False  # init has come
        self._prelude = ""  # what of it has run before
        self._copying = False  # the session is being forked as a whole
        self.running: List[Tuple[str, str, str]] = []  # of a copy: what its original runs beside its cells
        self._loop: Any = None  # the event loop of await, made when it is needed
        self.stdout = Stream(self.output, "stdout")
        self.stderr = Stream(self.output, "stderr")
        self._buffers = (self.stdout.buffer, self.stderr.buffer)
        self.stdin = Stdin(self.input)
        self._ask, self._ask_password = self.input.read, self._getpass
        self.module = types.ModuleType("__main__")
        self.namespace = self.module.__dict__
        self.namespace.update(__name__="__main__", __builtins__=builtins, __doc__=None)
        self.namespace["display"] = self.display
        self.namespace["clear_output"] = self.clear_output
        hostcalls.install(self.namespace, self.calls)
        self.imported = imported.install(self.display, self.clear_output, self._ask_password, self.output.ask, self._channel.mine)
        self._baseline = dict(self.namespace)
        self._builtins = dict(vars(builtins))
        self._cwd = ""  # at ready
        # The environment at ready is _env with _env_patch, so that sessions which
        # are forked share most of it.
        self._env: Optional[Dict[str, str]] = None
        self._env_patch: Dict[str, Optional[str]] = {}

    # Life.

    def run(self, main: Any, control: Any, captured: Dict[str, int], lifeline: int) -> None:
        """Serves requests until the host asks for the end. It does not return
        to its caller's code: the process ends here."""
        self.sit(main, captured)
        os.register_at_fork(after_in_child=self._forked)
        self.side.start(main.fileno(), control, lifeline)
        self.warm_up()
        signals.serve(self.interrupts)
        failures = 0
        while True:
            try:
                self.serve_one()
                failures = 0
            except Exception as err:  # what an earlier cell has replaced or left behind
                failures += 1
                if failures > _FAILURES:
                    raise
                self._mend()
                self._refuse(f"a request could not be followed: {type(err).__name__}: {err}")
            if self.output.forked:
                os._exit(0)  # a process that a cell forked came back from it

    def sit(self, main: Any, captured: Dict[str, int]) -> None:
        """Makes the process this session's: where it talks to the host, what
        code sees as its module and its streams."""
        self._main = main
        self._lines.attach(main)
        self._channel.attach(main)
        self.output.attach(captured)
        sys.modules["__main__"] = self.module
        sys.argv = [""]
        self._restore()

    def serve_one(self) -> None:
        """Waits for a request and follows it."""
        try:
            line = following(self._lines)
        except RequestTooLong as err:
            self._refuse(str(err))
            return
        except OSError as err:
            return end_cut_off(err)
        if line is None:
            end_group("the host closed the session")
        self._request(line)

    def warm_up(self) -> None:
        """Does what a cell does, so that the pages which that changes are this
        process's own before somebody waits for a cell."""
        request = json.loads('{"type":"execute","id":0,"code":"1"}')
        code = self.compiler.expression(request["code"], "<cell 0>")
        data, _ = display.bundle(eval(code, {}) if code is not None else 1)
        quoted(data["text/plain"])
        self._done(None, monotonic())

    def _restore(self) -> None:
        """Puts back what an earlier cell may have replaced."""
        sys.stdin, sys.stdout, sys.stderr = self.stdin, self.stdout, self.stderr
        self._restore_names()
        self.interrupts.restore()
        if sys.getswitchinterval() > _MOST_SWITCH:
            sys.setswitchinterval(_SWITCH)
        if self.output.loose:
            self.output.feed()

    def _restore_names(self) -> None:
        self.namespace.setdefault("__builtins__", builtins)  # not this module's own
        # Set only when they differ: every change of builtins makes the
        # interpreter look names up again.
        if getattr(builtins, "input", None) is not self._ask:
            builtins.input = self._ask
        if getattr(builtins, magics.COMMANDS, None) is not self.commands:
            setattr(builtins, magics.COMMANDS, self.commands)
        getpass = sys.modules.get("getpass")
        if getpass is not None and getpass.getpass is not self._ask_password:
            getpass.getpass = self._ask_password  # type: ignore[attr-defined]
        self.imported.look()

    def _mend(self) -> str:
        """Puts back the builtins that cells have replaced, since what this package
        uses of the standard library cannot do without them. Returns which, in
        words."""
        names = vars(builtins)
        ours = {"input": self._ask, magics.COMMANDS: self.commands}  # which this session has put in place of what was there
        replaced = [name for name, value in self._builtins.items() if name not in names or names[name] is not value and names[name] is not ours.get(name, value)]
        names.update(self._builtins)
        self._restore_names()
        if not replaced:
            return ""
        return f"; builtins that the code had replaced were put back: {', '.join(replaced[:5])}{', …' if len(replaced) > 5 else ''}"

    def _getpass(self, prompt: str = "Password: ", stream: Any = None, **_: Any) -> str:
        return self.input.read(prompt, password=True)

    def _forked(self) -> None:
        """Runs in a process that the user's code forked: it writes to the
        descriptors 1 and 2 and lets go of the session's own, which no signal interrupts.
        A process that this one forks has nothing to let go of: the numbers may be the
        user's by then."""
        if self._copying or self.output.forked:
            return
        self.output.forked = True
        self.interrupts.forked()
        self.side.close_descriptors()
        self.output.let_go()
        os.close(self._main.detach())
        if not self.interrupts.held():
            signals.leave(self.interrupts)

    def _request(self, line: bytes, again: bool = False) -> None:
        if line[-1:] != b"}":  # of a host that was killed while it wrote, or that asks for a sign
            return self._refuse("the request is not whole")
        try:
            request = parse(line)
            kind = request["type"]
            ident = request.get("id", 0)
            if not isinstance(ident, int):
                raise ValueError("the id is not a number")
        except Exception as err:  # whatever is in the line
            mended = "" if again else self._mend()
            if mended:
                self.output.write("stderr", f"[session] The session could not work{mended}\n")
                self._request(line, again=True)
            else:
                self._refuse(f"the request cannot be read: {err}")
            return
        try:
            if kind == "execute":
                self._execute(ident, request)
            elif kind == "init":
                self._init(request)
            elif kind == "patch":
                patch(request)
                self._send({"type": "done", "id": ident, "ok": True})
            elif kind == "reset":
                self._reset_names(ident)
            elif kind == "fork":
                self._fork(ident, request["n"], bool(request.get("force")))
            elif kind in outlive.REQUESTS:
                outlive.REQUESTS[kind](self, ident, request)
            elif kind == "exit":
                self._exit()
            else:
                self._refuse(f"unknown request {kind!r}", ident)
        except Exception as err:  # whatever is in the request: it costs this request
            self._refuse(f"the {kind} request failed: {type(err).__name__}: {err}{self._mend()}", ident)

    def _refuse(self, why: str, ident: int = 0) -> None:
        self._send({"type": "protocol_error", "id": ident, "message": why})

    def _send(self, frame: Dict[str, Any]) -> None:
        while not self._channel.acquire():
            pass
        try:
            self._channel.send(self._channel.mark + encode(frame), last=True)
        finally:
            self._channel.release()

    def _init(self, request: Dict[str, Any]) -> None:
        if self._begun:
            raise ValueError("the session has begun already")
        self._begun = True
        mark = request.get("mark") or ""
        if not isinstance(mark, str):
            raise ValueError("the mark is not text")
        self._channel.mark = mark.encode()
        self._channel.raw = bool(mark) and request.get("raw") is True
        self._channel.moves = MOVES and self._channel.raw
        try:
            if request.get("version") != VERSION:
                raise ValueError(f"the host speaks version {request.get('version')}, this is version {VERSION}")
            patch(request)
            self.limits.apply(request.get("limits") or {})
            prelude = request.get("prelude")
            if prelude and prelude != self._prelude:
                # What of it has run ahead is not run again.
                self._run_prelude(prelude[len(self._prelude) :] if prelude.startswith(self._prelude) else prelude)
                self._env = None  # it may have changed the environment
        except BaseException as err:  # whatever the prelude raises ends the start
            self._send({"type": "failed", "message": "\n".join(errors.describe(err)["traceback"])})
            os._exit(1)
        self._cwd = directory()
        self._env_patch = request.get("env") or {}
        if self._env is None:
            self._env = dict(os.environ)
        self._ready()

    def _run_prelude(self, source: str) -> None:
        exec(compile(source, "<prelude>", "exec", 0, True), self.namespace)
        self._baseline = dict(self.namespace)

    def prepare(self, prelude: str) -> None:
        """Does ahead, in a fork server, what all its sessions share. A prelude
        that raises is left to them: they say so to somebody who waits."""
        sys.modules["__main__"] = self.module
        sys.argv = [""]
        self._restore_names()
        try:
            self._run_prelude(prelude)
        except BaseException:  # a prelude can raise anything
            self.reset()
        else:
            self._prelude = prelude
        self._env = dict(os.environ)

    def _ready(self) -> None:
        frame = {"type": "ready", "version": VERSION, "pid": os.getpid(), "python": ".".join(map(str, sys.version_info[:3]))}
        if coppice_prelude.modules.failed:
            frame["message"] = coppice_prelude.modules.told()
        self._send(frame)

    def reset(self) -> None:
        """Removes what cells have defined."""
        self.namespace.clear()
        self.namespace.update(self._baseline)

    def _reset_names(self, ident: int) -> None:
        """Follows a reset request: an interrupt ends it, since clearing a
        namespace runs the user's finalisers."""
        begin = monotonic()
        failed: Optional[BaseException] = None
        self.interrupts.begin(ident, begin)
        try:
            self._reset_all()
            self.interrupts.check()
        except BaseException as err:  # the answer reports it
            failed = err
        finally:
            self.interrupts.end()
        frame: Dict[str, Any] = {"type": "done", "id": ident, "ok": failed is None, "seconds": monotonic() - begin}
        if isinstance(failed, KeyboardInterrupt):
            frame["interrupted"] = True
        elif failed is not None:
            self._send({**errors.describe(failed), "id": ident})
        self._send(frame)

    @calls_user
    def _reset_all(self) -> None:
        env = patched(self._env, self._env_patch)
        self.reset()
        names = vars(builtins)
        for name in [n for n in names if n not in self._builtins]:
            del names[name]
        names.update(self._builtins)
        if self._cwd:
            os.chdir(self._cwd)
        for name in [n for n in os.environ if n not in env]:
            del os.environ[name]
        os.environ.update(env)

    # Copies.

    def _fork(self, ident: int, n: int, force: bool) -> None:
        """Makes n copies of the session, or says why it does not. With force it makes
        them all the same: they are to be looked at, and not to go on."""
        if not isinstance(n, int) or not 0 < n <= copies.MAX:
            raise ValueError(f"between 1 and {copies.MAX} copies can be made at once")
        why = None if force else copies.obstacle(self._loop)
        if why is not None:
            self._send({"type": "refused", "id": ident, "name": why[0], "message": why[1]})
            return
        self.running = copies.running(self._loop) if force else []
        luck = copies.luck() if force else None
        self._send({"type": "forking", "id": ident})
        seats = copies.receive(self._main, n)
        # The side thread is not in the copies: it must hold nothing that they need.
        self.side.pause()
        self._copying = True
        try:
            seat = copies.fork(seats)
        finally:
            self._copying = False
            self.side.go_on()
        if seat is None:
            self._send({"type": "done", "id": ident, "ok": True})
        else:
            self._become(seat, luck)

    def _become(self, seat: List[int], luck: Optional[Callable[[], None]]) -> None:
        """Makes this process, a copy, a session of its own. luck gives it the random
        numbers of the session, None for its own."""
        lifeline = self.side.leave()
        for fd in (self._main.detach(), *self.output.captured.values()):
            try:
                os.close(fd)
            except OSError:
                pass  # the user's code has closed it
        self._main, control, captured = forkserver.take_seat(seat)
        if luck is not None:
            luck()
        self._lines = Lines()
        self._lines.attach(self._main)
        self._channel.attach(self._main)
        self.output.attach(captured)
        if self._loop is not None:
            copies.forget(self._loop)
            self._loop = None
        self.side = Side(self)
        self.side.start(self._main.fileno(), control, lifeline)
        self._ready()

    def _exit(self) -> None:
        """Ends the process as Python would, without waiting for threads."""
        import atexit

        try:
            self._ending()
            atexit._run_exitfuncs()
        except BaseException:  # somebody's exit function; the end comes all the same
            pass
        os._exit(0)

    @calls_user
    def _ending(self) -> None:
        if self._loop is not None:
            self._loop.close()

    # Cells.

    def _execute(self, ident: int, request: Dict[str, Any]) -> None:
        code = request["code"]
        if not isinstance(code, str) or ident <= 0:
            raise ValueError("a cell has a positive id and its code is text")
        patch(request)
        self._restore()
        self.count += 1
        self.input.allowed = bool(request.get("allow_stdin"))
        self.input.requested = False
        self.limits.begin()
        self.output.begin(ident)
        begin = monotonic()
        self.interrupts.begin(ident, begin)
        self.imported.comms.begin()
        frames: List[bytes] = []
        failed: Optional[BaseException] = None
        try:
            self._run(code, frames)
        except BaseException as err:  # everything a cell can raise is reported, nothing ends the session
            failed = err
            if self.interrupts.waiting() and not errors.of(err, KeyboardInterrupt):
                failed = KeyboardInterrupt()  # what failed is what the interrupt ended
                failed.__context__ = err
        duration = monotonic() - begin
        if self.output.forked:
            leave_fork(failed)
        for buffer in self._buffers:
            if buffer.half:
                try:
                    buffer.finish()
                except BaseException as err:  # an interrupt comes late
                    failed = failed or err
        try:
            if (failed := self.limits.settle(failed)) is not None:
                frames.append(encode(self._error(failed)))
            frames.append(self._done(failed, duration))
            flush_libc()
            self.output.end(frames)
        finally:
            self.interrupts.end()
            failed = self.interrupts.left()
            if failed is not None:
                signals.tell(failed)
                failed = None

    def _run(self, code: str, frames: List[bytes]) -> None:
        filename = f"<cell {self.count}>"
        self.interrupts.check()
        self.compiler.register(filename, code)
        statements, expression = self.compiler.cell(code, filename)
        try:
            value = self._call(statements, expression)
            self.interrupts.check()
            if value is not None:
                builtins._ = value  # type: ignore[attr-defined]
                self._result(value, frames)
        finally:
            for figure in display.figures():
                self.display(figure)

    def evaluate(self, code: str, filename: str) -> Any:
        """Runs code as a cell would and returns the value of its last
        expression."""
        return self._call(*self.compiler.cell(code, filename))

    def names(self) -> List[str]:
        """Returns the names that cells have defined, sorted."""
        return sorted(n for n in self.namespace if not n.startswith("_") and n not in self._baseline)

    @calls_user
    def _call(self, statements: Optional[types.CodeType], expression: Optional[types.CodeType]) -> Any:
        """Runs a cell and returns the value of its last expression. When any
        part of it awaits, all of it runs in the event loop."""
        parts = [code for code in (statements, expression) if code is not None]
        if any(code.co_flags & CO_COROUTINE for code in parts):
            return self._await(self._awaiting(statements, expression))
        if statements is not None:
            exec(statements, self.namespace)
        return eval(expression, self.namespace) if expression is not None else None

    @calls_user
    async def _awaiting(self, statements: Optional[types.CodeType], expression: Optional[types.CodeType]) -> Any:
        value = None
        for code in (statements, expression):
            value = None
            if code is not None:
                value = eval(code, self.namespace)
                if code.co_flags & CO_COROUTINE:
                    value = await value
        return value

    @calls_user
    def _await(self, coroutine: Any) -> Any:
        """Runs a coroutine to its end. An interrupt cancels it, and waits until
        what it does about that is done."""
        import asyncio

        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        loop = self._loop
        asyncio.set_event_loop(loop)
        task = loop.create_task(coroutine)
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            while not task.done():
                task.cancel()
                try:
                    loop.run_until_complete(asyncio.wait([task]))
                except KeyboardInterrupt:
                    continue
            raise

    def _result(self, value: Any, frames: List[bytes]) -> None:
        if type(value) in display.SHORT_TYPES:
            text = repr(value)
            if len(text) < _SHORT:
                frames.append(b'{"type":"result","data":{"text/plain":"%b"},"count":%d}\n' % (text.encode(), self.count))
                return
        data, metadata = display.bundle(value)
        if (data := self._printed(data, False)) is None:
            return
        if len(data) == 1 and not metadata and "text/plain" in data:
            frames.append(b'{"type":"result","data":{"text/plain":%b},"count":%d}\n' % (quoted(data["text/plain"]), self.count))
            return
        frame = {"type": "result", "data": data, "count": self.count}
        if metadata:
            frame["metadata"] = metadata
        frames.append(encode(frame))

    def _printed(self, data: Dict[str, Any], named: bool) -> Any:
        """Prints the text of a value that no frame holds, and returns what one does."""
        data, text = display.fit(data)
        if not text:
            return data
        self.output.write("stdout", text + "\n")
        return data or ({"text/plain": "[its text is printed above: it is too long for a display]"} if named else None)

    def _error(self, failed: BaseException) -> Dict[str, Any]:
        frame = errors.describe(failed, f"<cell {self.count}>")
        if self.limits.met is not None:
            frame["name"], frame["message"] = "ResourceLimitExceeded", self.limits.describe()
            frame["traceback"].append(f"{frame['name']}: {frame['message']}")
        return frame

    def _done(self, failed: Optional[BaseException], seconds: float) -> bytes:
        flags = b""
        if errors.of(failed, KeyboardInterrupt):
            flags += b',"interrupted":true'
        if self.input.requested:
            flags += b',"stdin_requested":true'
        if self.limits.met is not None:
            flags += b',"limit":"%b"' % self.limits.met.encode()
        return b'{"type":"done","ok":%b,"count":%d,"seconds":%.6f%b}\n' % (b"true" if failed is None else b"false", self.count, seconds, flags)

    def display(self, *values: Any, raw: bool = False, metadata: Optional[dict] = None, display_id: Any = None, update: bool = False) -> Any:
        """Shows values: their richest form where there is one. With raw, a
        value is a MIME bundle already. A display_id names what is shown, so
        that update can replace it; True makes one. With it, what is returned has
        the methods display and update."""
        if display_id is True:
            display_id = os.urandom(16).hex()
        for value in values:
            if raw:
                if not isinstance(value, dict):
                    raise TypeError("display(raw=True) takes a dict of MIME types")
                data, more = {str(m): display.encodable(str(m), p) for m, p in value.items()}, {}
            else:
                data, more = display.bundle(value)
            if (data := self._printed(data, display_id is not None)) is None:
                continue
            frame: Dict[str, Any] = {"type": "display", "data": data}
            if metadata or more:
                frame["metadata"] = {**more, **(metadata or {})}
            if display_id is not None:
                frame["display_id"] = str(display_id)
                frame["update"] = bool(update)
            self.output.send(frame)
        return None if display_id is None else display.Handle(self.display, str(display_id))

    def clear_output(self, wait: bool = False) -> None:
        """Takes back what the cell has shown, with wait when there is something
        new to show."""
        self.output.send({"type": "clear", "wait": bool(wait)})
