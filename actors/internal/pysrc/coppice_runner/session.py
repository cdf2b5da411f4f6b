"""A session: one namespace, the cells that run in it, and the requests that
the host makes of it."""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
import time
import types
import warnings
from typing import Any, Dict, List, Optional

from . import display, errors, magics
from .commands import Commands
from .interrupts import Interrupts, calls_user
from .side import Side, end_group
from .source import Compiler
from .stdin import Input, Stdin
from .streams import Output, Stream
from .wire import VERSION, Channel, Lines, RequestTooLong, encode

CO_COROUTINE = 0x80


class Session:
    """What one process is after it was made. The methods run in the main
    thread."""

    def __init__(self, main: Any, control: Any, captured: Dict[str, int], lifeline: int) -> None:
        self._main = main
        self._lines = Lines(main)
        self.interrupts = Interrupts()
        self._channel = Channel(main, self.interrupts.waiting, lambda: end_group("the host is gone"))
        self.output = Output(self._channel, self.interrupts, captured)
        self.input = Input(self.interrupts, self.output.send, self.output.flush)
        self.side = Side(control, lifeline, self)
        self.compiler = Compiler()
        self.commands = Commands(self)
        self.count = 0
        self.pid = os.getpid()
        self._loop: Any = None  # the event loop of await, made when it is needed
        self.stdout = Stream(self.output, "stdout")
        self.stderr = Stream(self.output, "stderr")
        self.stdin = Stdin(self.input)
        self.module = types.ModuleType("__main__")
        self.namespace = self.module.__dict__
        self._baseline: Dict[str, Any] = {}

    # Life.

    def run(self) -> None:
        """Serves requests until the host asks for the end. It does not return
        to its caller's code: the process ends here."""
        self._install()
        self.side.start()
        while True:
            try:
                line = self._lines.next()
            except RequestTooLong as err:
                self._refuse(str(err))
                continue
            except OSError:
                line = None
            if line is None:
                end_group("the host closed the session")
            self._request(line)
            if os.getpid() != self.pid:
                os._exit(0)  # a process that a cell forked came back from it

    def _install(self) -> None:
        """Makes this process the session's: its module, streams and hooks."""
        sys.modules["__main__"] = self.module
        self.namespace.update(__name__="__main__", __builtins__=builtins, __doc__=None)
        self.namespace["display"] = self.display
        self.namespace["clear_output"] = self.clear_output
        self._baseline = dict(self.namespace)
        sys.argv = [""]
        self._restore()
        os.register_at_fork(after_in_child=self._forked)
        warnings.filterwarnings("ignore", message=".*cannot be shown", category=UserWarning)
        warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
        self.interrupts.install()

    def _restore(self) -> None:
        """Puts back what an earlier cell may have replaced."""
        sys.stdin, sys.stdout, sys.stderr = self.stdin, self.stdout, self.stderr
        builtins.input = self.input.read
        setattr(builtins, magics.COMMANDS, self.commands)
        getpass = sys.modules.get("getpass")
        if getpass is not None:
            getpass.getpass = self._getpass  # type: ignore[attr-defined]
        if signal.getsignal(signal.SIGINT) != self.interrupts._on_signal:
            self.interrupts.install()

    def _getpass(self, prompt: str = "Password: ", stream: Any = None, **_: Any) -> str:
        return self.input.read(prompt, password=True)

    def _forked(self) -> None:
        """Runs in a process that the user's code forked: it writes to the
        descriptors 1 and 2 and lets go of the session's own."""
        self.output.forked = True
        self.interrupts.current = 0
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self.side.close_descriptors()
        os.close(self._main.detach())

    # Requests.

    def _request(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            kind = request["type"]
            ident = request.get("id", 0)
            if not isinstance(ident, int):
                raise ValueError("the id is not a number")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as err:
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
                self.reset()
                self._send({"type": "done", "id": ident, "ok": True})
            elif kind == "exit":
                self._exit()
            else:
                self._refuse(f"unknown request {kind!r}", ident)
        except (ValueError, TypeError, KeyError, OSError) as err:
            self._refuse(f"the {kind} request failed: {err}", ident)

    def _refuse(self, why: str, ident: int = 0) -> None:
        self._send({"type": "protocol_error", "id": ident, "message": why})

    def _send(self, frame: Dict[str, Any]) -> None:
        while not self._channel.acquire():
            pass
        try:
            self._channel.send(encode(frame), last=True)
        finally:
            self._channel.release()

    def _init(self, request: Dict[str, Any]) -> None:
        try:
            if request.get("version") != VERSION:
                raise ValueError(f"the host speaks version {request.get('version')}, this is version {VERSION}")
            patch(request)
            prelude = request.get("prelude")
            if prelude:
                exec(compile(prelude, "<prelude>", "exec", 0, True), self.namespace)
                self._baseline = dict(self.namespace)
        except BaseException as err:  # whatever the prelude raises ends the start
            self._send({"type": "failed", "message": "\n".join(errors.describe(err)["traceback"])})
            os._exit(1)
        self._send({"type": "ready", "version": VERSION, "pid": self.pid, "python": ".".join(map(str, sys.version_info[:3]))})

    def reset(self) -> None:
        """Removes what cells have defined."""
        self.namespace.clear()
        self.namespace.update(self._baseline)

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
        self.output.begin(ident)
        self.interrupts.begin(ident)
        begin = time.perf_counter()
        frames: List[Dict[str, Any]] = []
        failed: Optional[BaseException] = None
        try:
            self._run(code, frames)
        except BaseException as err:  # everything a cell can raise is told, nothing ends the session
            failed = err
            if self.interrupts.waiting() and not isinstance(err, KeyboardInterrupt):
                failed = KeyboardInterrupt()  # what failed is what the interrupt ended
                failed.__context__ = err
        duration = time.perf_counter() - begin
        if os.getpid() != self.pid:
            _leave_fork(failed)
        try:
            if failed is not None:
                frames.append(errors.describe(failed))
            done = {
                "type": "done",
                "ok": failed is None,
                "count": self.count,
                "seconds": round(duration, 6),
            }
            if isinstance(failed, KeyboardInterrupt):
                done["interrupted"] = True
            if self.input.requested:
                done["stdin_requested"] = True
            frames.append(done)
            _flush_libc()
            self.output.end(frames)
        finally:
            self.interrupts.end()
            failed = None

    def _run(self, code: str, frames: List[Dict[str, Any]]) -> None:
        filename = f"<cell {self.count}>"
        self.interrupts.check()
        self.compiler.register(filename, code)
        statements, expression = self._compile(code, filename)
        try:
            value = self._call(statements, expression)
            self.interrupts.check()
            if value is not None:
                builtins._ = value  # type: ignore[attr-defined]
                self._result(value, frames)
        finally:
            for figure in display.figures():
                self.display(figure)

    def _compile(self, code: str, filename: str) -> "tuple[Optional[types.CodeType], Optional[types.CodeType]]":
        try:
            tree = self.compiler.parse(code, filename)
        except SyntaxError:
            python = magics.transform(code)
            if python is None:
                raise
            code = python
            tree = None
        if tree is None:  # outside of the handler: what is wrong now has nothing to do with it
            tree = self.compiler.parse(code, filename)
        return self.compiler.compile(tree, code, filename)

    def evaluate(self, code: str, filename: str) -> Any:
        """Runs code as a cell would and returns the value of its last
        expression."""
        return self._call(*self._compile(code, filename))

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

    def _result(self, value: Any, frames: List[Dict[str, Any]]) -> None:
        data, metadata = display.bundle(value)
        frame = {"type": "result", "data": data, "count": self.count}
        if metadata:
            frame["metadata"] = metadata
        frames.append(frame)

    def display(self, *values: Any, raw: bool = False, metadata: Optional[dict] = None, display_id: Optional[str] = None, update: bool = False) -> None:
        """Shows values: their richest form where there is one. With raw, a
        value is a MIME bundle already. A display_id names what is shown, so
        that update can replace it."""
        for value in values:
            if raw:
                if not isinstance(value, dict):
                    raise TypeError("display(raw=True) takes a dict of MIME types")
                data, more = {str(m): display.encodable(str(m), p) for m, p in value.items()}, {}
            else:
                data, more = display.bundle(value)
            frame: Dict[str, Any] = {"type": "display", "data": data}
            if metadata or more:
                frame["metadata"] = {**more, **(metadata or {})}
            if display_id is not None:
                frame["display_id"] = str(display_id)
                frame["update"] = bool(update)
            self.output.send(frame)


    def clear_output(self, wait: bool = False) -> None:
        """Takes back what the cell has shown, with wait when there is something
        new to show."""
        self.output.send({"type": "clear", "wait": bool(wait)})


def patch(request: Dict[str, Any]) -> None:
    """Applies the cwd and env of a request."""
    cwd = request.get("cwd")
    if cwd:
        os.chdir(cwd)
        if cwd in sys.path:
            sys.path.remove(cwd)
        sys.path.insert(0, cwd)
    for name, value in (request.get("env") or {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _leave_fork(failed: Optional[BaseException]) -> None:
    """Ends a process that a cell forked and that came to the cell's end."""
    code = 0
    if isinstance(failed, SystemExit):
        code = failed.code if isinstance(failed.code, int) else int(failed.code is not None)
    elif failed is not None:
        os.write(2, "\n".join(errors.describe(failed)["traceback"]).encode("utf-8", "replace") + b"\n")
        code = 1
    os._exit(code & 0xFF)


def _flush_libc() -> None:
    """Flushes the buffers of C's stdio. Only a process that has ctypes is asked
    to: importing it costs more than all else in a cell."""
    ctypes = sys.modules.get("ctypes")
    if ctypes is None:
        return
    try:
        ctypes.CDLL(None).fflush(None)
    except (OSError, AttributeError, TypeError):
        pass
