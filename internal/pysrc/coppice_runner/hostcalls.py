"""tool.name(...) and runtime.name(...): the host's functions, as code in cells
calls them. How a call travels is the transport's affair; this module imports
nothing of the package, so that a Jupyter kernel can have it too."""

from __future__ import annotations

import builtins
import contextvars
import json
import sys
import threading
from typing import Any, Callable, Dict, List, Optional

# Characters of the JSON of one call's arguments.
MAX_ARGS = 8 << 20
_MAX_DEPTH = 100
# Errors whose constructor wants more than a message, or that mean something
# else to whoever would catch them here.
_NOT_RAISED = ("UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError", "ExceptionGroup", "StopIteration", "StopAsyncIteration", "SyntaxError")


class HostCallError(RuntimeError):
    """A call of the host's functions failed. error_type is what the host calls
    the error."""

    def __init__(self, message: str = "", error_type: str = "HostCallError") -> None:
        super().__init__(message)
        self.error_type = error_type


class _HostKeyError(KeyError):
    """A KeyError whose text is its message: KeyError itself shows the repr."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


_HostKeyError.__name__ = _HostKeyError.__qualname__ = "KeyError"
_HostKeyError.__module__ = "builtins"
HostCallError.__module__ = "coppice"


def error_of(kind: str, message: str) -> Exception:
    """Returns the exception for an error of the host."""
    if kind == "KeyError":
        err: Exception = _HostKeyError(message)
    else:
        found = getattr(builtins, kind, None)
        if isinstance(found, type) and issubclass(found, Exception) and kind not in _NOT_RAISED:
            err = found(message)
        else:
            err = HostCallError(message, kind or "HostCallError")
    if not isinstance(err, HostCallError):
        err.error_type = kind  # type: ignore[attr-defined]
    return err


def _dump(value: Any, what: str) -> str:
    """Returns a value that was checked as JSON."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(text) > MAX_ARGS:
        raise ValueError(f"{what}: the arguments have {len(text)} characters as JSON, and {MAX_ARGS} is the most; write them to a file and send its name")
    return text


def _check(value: Any, where: str, depth: int, above: set) -> None:
    __tracebackhide__ = True
    if value is None or isinstance(value, (bool, int)):
        return
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError(f"{where} holds half of a surrogate pair, which JSON cannot say") from None
        return
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{where} is {value!r}, which JSON cannot say; send None or a string")
        return
    if not isinstance(value, (list, tuple, dict)):
        kind = type(value)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"{where} is a {name}, which cannot be sent to the host; JSON has None, bool, int, float, str, list and dict")
    if id(value) in above:
        raise ValueError(f"{where} contains itself, which JSON cannot say")
    if depth >= _MAX_DEPTH:
        raise ValueError(f"{where} is nested deeper than {_MAX_DEPTH} levels")
    above.add(id(value))
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}: the keys of a JSON object are strings")
            _check(item, f"{where}[{key!r}]", depth + 1, above)
    else:
        for n, item in enumerate(value):
            _check(item, f"{where}[{n}]", depth + 1, above)
    above.discard(id(value))


class Call:
    """One call on its way. The transport sets abort to what gives it up."""

    def __init__(self, kind: str, name: str, args: str) -> None:
        self.kind, self.name, self.args = kind, name, args
        self.abort: Optional[Callable[[], None]] = None
        self.aborted = False

    def cancel(self) -> None:
        """Gives the call up; any thread may call it."""
        self.aborted = True
        abort = self.abort
        if abort is not None:
            abort()


# A transport takes a call and returns the host's reply when it has come: an
# object with "ok", and "value" or "error" and "error_type".
Transport = Callable[[Call], Dict[str, Any]]


class _Caller:
    """What tool and runtime share."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _run(self, call: Call) -> Any:
        __tracebackhide__ = True  # IPython leaves the frame out
        reply = self._transport(call)
        if not reply.get("ok"):
            raise error_of(str(reply.get("error_type") or "HostCallError"), str(reply.get("error") or "the host gave no reason"))
        self._done(reply)
        return reply.get("value")

    def _done(self, reply: Dict[str, Any]) -> None:
        pass

    async def _later(self, call: Call) -> Any:
        """Runs a call in a thread of its own. Who is cancelled while it waits
        gives the call up."""
        import asyncio

        loop = asyncio.get_running_loop()
        future: "asyncio.Future[Any]" = loop.create_future()

        def settle(setter: Callable[[Any], None], value: Any) -> None:
            if not future.done():
                setter(value)

        def run() -> None:
            try:
                setter, value = future.set_result, self._run(call)
            except BaseException as err:  # it is raised where the call is awaited
                setter, value = future.set_exception, err
            try:
                loop.call_soon_threadsafe(settle, setter, value)
            except RuntimeError:
                pass  # the loop is closed, and nothing waits

        threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True, name=f"coppice-{call.name}").start()
        try:
            return await future
        except asyncio.CancelledError:
            call.cancel()
            raise


class _Function:
    """tool.name: call it, or await its aio."""

    def __init__(self, owner: "Tool", name: str) -> None:
        self._owner, self._name = owner, name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        for known in self._owner._listed():
            if known["name"] == self._name:
                more = (known.get("help") or "").strip()
                return f"tool.{_line(known)}" + (f"\n\n{more}" if more else "")
        return f"tool.{self._name}: the host lists no such function; dir(tool) names those that there are."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves the frame out
        return self._owner._run(self._call(args, kwargs))

    def aio(self, *args: Any, **kwargs: Any) -> Any:
        """The same, to be awaited: other tasks run in the meantime."""
        return self._owner._later(self._call(args, kwargs))

    def _call(self, args: tuple, kwargs: Dict[str, Any]) -> Call:
        __tracebackhide__ = True  # IPython leaves the frame out
        what = f"tool.{self._name}()"
        if len(args) > 1 or (args and not isinstance(args[0], dict)):
            raise TypeError(f"{what} takes keyword arguments, or one dict of them")
        given = dict(args[0]) if args else {}
        for key in kwargs:
            if key in given:
                raise TypeError(f"{what} got {key!r} twice")
        given.update(kwargs)
        for key, value in given.items():
            if not isinstance(key, str):
                raise TypeError(f"{what}: the name of an argument is {key!r}, not a string")
            _check(value, f"{what}: {key}", 1, set())
        return Call("tool", self._name, _dump(given, what))

    def __repr__(self) -> str:
        return f"<function {self._name} of the host>"


class Tool(_Caller):
    """The functions that the host offers: tool.name(key=value) calls one and
    returns its value; await tool.name.aio(key=value) does so without holding up
    other tasks. tool["name"] is for names that Python cannot say."""

    _text = __doc__

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._known: List[Dict[str, str]] = []

    def _listed(self) -> List[Dict[str, str]]:
        """Asks the host for its functions. When it cannot be asked, as between cells,
        they are those of the last time."""
        try:
            reply = self._transport(Call("functions", "functions", "{}"))
            value = reply.get("value")
            if reply.get("ok") and isinstance(value, list):
                self._known = value
        except Exception:
            pass  # whoever lists is not to fail
        return self._known

    def __dir__(self) -> List[str]:
        return [known["name"] for known in self._listed()]

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        names = "\n".join(f"tool.{_line(known)}" for known in self._listed())
        return f"{_flat(self._text)}\n\n{names or 'The host offers none.'}"

    def __getattr__(self, name: str) -> _Function:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Function(self, name)

    def __getitem__(self, name: str) -> _Function:
        if not isinstance(name, str) or not name:
            raise TypeError("the name of a host function is a string")
        return _Function(self, name)

    def __repr__(self) -> str:
        return "<the functions of the host: tool.name(key=value)>"


def _flat(text: Optional[str]) -> str:
    return " ".join((text or "").split())


def _line(known: Dict[str, str]) -> str:
    """Returns a function of the host in one line."""
    about = _flat(known.get("description"))
    return f"{known['name']}{known.get('signature') or '(...)'}" + (f": {about}" if about else "")


class _Path:
    """A dotted name of a primitive, in the making."""

    def __init__(self, owner: "Runtime", name: str) -> None:
        self._owner, self._name = owner, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Path(self._owner, f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython leaves the frame out
        return self._owner.call(self._name, *args, **kwargs)

    def aio(self, *args: Any, **kwargs: Any) -> Any:
        """The same, to be awaited."""
        return self._owner._later(self._owner._call(self._name, args, kwargs))

    def __repr__(self) -> str:
        return f"<primitive runtime.{self._name}>"

    def __dir__(self) -> List[str]:
        return sorted(self._owner._below(self._name + ".")) or ["aio"]

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        below = self._owner._below(self._name + ".")
        if below:
            return f"The primitives below runtime.{self._name}: {', '.join(sorted(below))}."
        return str(self._owner._ask("get_primitive_spec", self._name) or _Path._text)

    _text = "A primitive of the host: runtime.list_primitives() names them all."


class Runtime(_Caller):
    """The runtime primitives of the host: runtime.list_primitives() names them,
    runtime.get_primitive_spec(name) describes one, runtime.<name>(...) calls it.
    next_steps holds what the last call recommends."""

    _text = __doc__

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.next_steps: List[str] = []

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Calls the primitive of that name."""
        __tracebackhide__ = True  # IPython leaves the frame out
        return self._run(self._call(name, args, kwargs))

    def _done(self, reply: Dict[str, Any]) -> None:
        self.next_steps = list(reply.get("next_steps") or ())

    def _call(self, name: str, args: tuple, kwargs: Dict[str, Any]) -> Call:
        __tracebackhide__ = True  # IPython leaves the frame out
        if not isinstance(name, str) or not name:
            raise TypeError("the name of a primitive is a string")
        what = f"runtime.{name}()"
        for n, value in enumerate(args):
            _check(value, f"{what}: argument {n + 1}", 1, set())
        for key, value in kwargs.items():
            _check(value, f"{what}: {key}", 1, set())
        return Call("primitive", name, _dump({"args": list(args), "kwargs": kwargs}, what))

    def __getattr__(self, name: str) -> _Path:
        if name.startswith("_"):
            raise AttributeError(name)
        return _Path(self, name)

    def _ask(self, name: str, *args: Any) -> Any:
        """Calls a primitive on the way, which leaves next_steps alone; None when the
        host cannot be asked."""
        try:
            reply = self._transport(self._call(name, args, {}))
            return reply.get("value") if reply.get("ok") else None
        except Exception:
            return None

    def _below(self, prefix: str) -> List[str]:
        """Names what comes next after a prefix."""
        names = self._ask("list_primitives") or []
        if not prefix:
            names = [n[len("runtime.") :] if n.startswith("runtime.") else n for n in names]
        return list({n[len(prefix) :].partition(".")[0] for n in names if n.startswith(prefix)})

    def __dir__(self) -> List[str]:
        return sorted({"call", "next_steps", *self._below("")})

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        names = ", ".join(self._ask("list_primitives") or [])
        return f"{_flat(self._text)}\n\n{names}"

    def __repr__(self) -> str:
        return "<the runtime primitives of the host: runtime.list_primitives()>"


class _Hint:
    """Says what `import runtime` and `import tool` get wrong, when there is no
    module of that name."""

    names = ("runtime", "tool")

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> None:
        __tracebackhide__ = True  # IPython leaves the frame out
        if name in cls.names:
            raise ModuleNotFoundError(f"No module named {name!r}: {name} is there in every cell and is not imported", name=name)


def install(namespace: Dict[str, Any], transport: Transport) -> None:
    """Puts tool and runtime into a namespace."""
    namespace["tool"] = Tool(transport)
    namespace["runtime"] = Runtime(transport)
    if not any(getattr(finder, "__name__", "") == "_Hint" for finder in sys.meta_path):
        sys.meta_path.append(_Hint)  # type: ignore[arg-type]
