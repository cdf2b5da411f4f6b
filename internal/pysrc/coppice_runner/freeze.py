"""What a session has in memory, as bytes: what its names stand for goes into one
pickle, so that what they share stays shared, and large buffers stand apart from it.

Functions and classes of the session go by value: a function is its code and what it
refers to, and its globals are those of the session that it comes back to, so that
functions which write globals, recursive ones and closures work as before. Nothing is
run again. Code is marshalled, so that only the same Python reads it: the image says
which it is.

What has no bytes (a socket, a generator, a thread) is left out with every name that
leads to it, and said. What comes back otherwise than it was (a file is opened again, a
cache is empty) is said too.
"""

from __future__ import annotations

import builtins
import functools
import gc
import io
import linecache
import marshal
import os
import pickle
import re
import sys
import types
import weakref
from typing import Any, Callable, Dict, Iterable, List, Optional, Set, Tuple

from . import rebuild
from .rebuild import kind
from .surroundings import directory, patched

# A buffer that is smaller goes into the pickle.
_APART = 64 << 10
# How much is handed to the system at once.
_PIECE = 1 << 20
# What surrounds the names, and is in the pickle under a key that is no name.
_AROUND = "around "

_UNPICKLABLE = re.compile(r"cannot pickle '([^']+)' object|can't pickle ([\w.]+) objects")
# Why objects of some types have no bytes. What is not here is said by its type alone.
_WHY = {
    "generator": "a generator cannot be kept where it stands",
    "coroutine": "a coroutine cannot be kept where it stands",
    "async_generator": "an asynchronous generator cannot be kept where it stands",
    "frame": "a frame of running code cannot be kept",
    "traceback": "a traceback holds running code",
    "socket": "a connection ends with its process",
    "_thread.lock": "it is a lock, or holds one, as threads and queues do",
    "_thread.RLock": "it is a lock, or holds one, as threads and queues do",
    "sqlite3.Connection": "a connection to a database ends with its process",
    "sqlite3.Cursor": "a connection to a database ends with its process",
    "_asyncio.Task": "a task ends with its event loop",
    "_asyncio.Future": "a future ends with its event loop",
    "weakref": "a weak reference",
    "weakref.ReferenceType": "a weak reference",
    "mmap.mmap": "memory of a file that is open",
    "module": "a module that was not imported from a file",
}


class Refused(Exception):
    """Says why an object cannot be kept."""


def _stands(obj: Any) -> bool:
    """Says whether an import finds obj under its name."""
    module = sys.modules.get(getattr(obj, "__module__", None) or "")
    if module is None or module.__name__ == "__main__" or getattr(module, "__spec__", None) is None:
        return False  # it was not imported
    found: Any = module
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is obj


class Pickler(pickle.Pickler):
    """Pickles what a session holds. notes is what it met that comes back otherwise."""

    def __init__(self, to: Any, session: Any, buffer: Optional[Callable[[Any], Any]] = None) -> None:
        super().__init__(to, 5, buffer_callback=buffer)
        self.notes: List[Tuple[Any, str]] = []
        self._namespace = session.namespace
        self._known = known(session)
        self._ways = _ways()
        self._bodies: Dict[int, Any] = {}  # classes, by the address of their names

    def reducer_override(self, obj: Any) -> Any:
        ref = self._known.get(id(obj))
        if ref is not None:
            return rebuild.ref, ref
        way = self._ways.get(type(obj))
        if way is not None:
            return way(self, obj)
        if isinstance(obj, type):
            if _stands(obj):
                return NotImplemented
            return self._builtin(obj) if obj.__module__ == "builtins" else self._class(obj)
        if isinstance(obj, io.IOBase):
            return self._file(obj)
        return _special(self, obj)

    # Functions.

    def _globals(self, function: Any) -> Any:
        names = function.__globals__
        if names is self._namespace:
            return _Ref("namespace")
        module = sys.modules.get(names.get("__name__") or "")
        if module is not None and vars(module) is names and getattr(module, "__spec__", None) is not None:
            return _Ref("module", module.__name__)
        return _Names(names)

    def _function(self, f: Any) -> Any:
        if _stands(f):
            return NotImplemented
        closure = f.__closure__
        contents = None if closure is None else [self._content(name, cell) for name, cell in zip(f.__code__.co_freevars, closure)]
        more = {name: getattr(f, name) for name in ("__qualname__", "__module__", "__doc__", "__kwdefaults__", "__type_params__") if getattr(f, name, None)}
        annotate = getattr(f, "__annotate__", None)
        if annotate is not None:
            more["__annotate__"] = annotate
        elif f.__annotations__:
            more["__annotations__"] = f.__annotations__
        state = (f.__defaults__, dict(f.__dict__), more, contents)
        return rebuild.function, (self._globals(f), marshal.dumps(f.__code__), f.__name__, closure), state, None, None, rebuild.set_function

    def _content(self, name: str, cell: Any) -> Tuple[Any, ...]:
        content = _content(cell)
        if name == "__classdict__" and content and type(content[0]) is dict:
            cls = self._bodies.get(id(content[0])) or _class_of(content[0])
            if cls is not None:  # from 3.14 on: what computes annotations has the names of its class
                return (_Body(cls),)
        return content

    def _body(self, body: Any) -> Any:
        return rebuild.class_body, (body.of,)

    def _cell(self, cell: Any) -> Any:
        return rebuild.cell, ()  # the function that has it fills it

    def _code(self, code: Any) -> Any:
        return rebuild.code, (marshal.dumps(code),)

    def _names(self, names: Any) -> Any:
        return rebuild.names, (names.of.get("__name__"),), {k: v for k, v in names.of.items() if k != "__builtins__"}, None, None, rebuild.set_names

    def _ref(self, ref: Any) -> Any:
        return rebuild.ref, ref.of

    def _method(self, method: Any) -> Any:
        return types.MethodType, (method.__func__, method.__self__)

    def _cached(self, f: Any) -> Any:
        if _stands(f):
            return NotImplemented
        limits = f.cache_parameters()
        self.notes.append((f, "its cache is empty"))
        return rebuild.cached, (f.__wrapped__, limits["maxsize"], limits["typed"]), {k: v for k, v in vars(f).items() if k != "__wrapped__"}

    # Classes.

    def _class(self, cls: Any) -> Any:
        enum = sys.modules.get("enum")
        if enum is not None and issubclass(cls, enum.Enum):
            return self._enum(cls)
        if cls.__module__ == "typing" and cls.__name__ in ("TypeVar", "ParamSpec"):
            return NotImplemented
        own = dict(vars(cls))
        slots = own.get("__slots__", ())
        gone = {"__weakref__", "__dict__", "_abc_impl", "__abstractmethods__"}
        gone.update((slots,) if isinstance(slots, str) else slots)
        gone.update(name for name, value in own.items() if isinstance(value, types.MemberDescriptorType))
        first = {n: own[n] for n in ("__module__", "__qualname__", "__doc__", "__slots__", "__orig_bases__") if n in own}
        if "__slots__" in first and not isinstance(slots, (str, tuple, list)):
            first["__slots__"] = tuple(slots)
        state = {n: v for n, v in own.items() if n not in gone and n not in first}
        if isinstance(state.get("__annotate_func__"), types.FunctionType):
            self._bodies[id(rebuild.class_body(cls))] = cls
            state.pop("__annotations_cache__", None)
        else:
            state.pop("__annotate_func__", None)
        more = {"abstract": sorted(own["__abstractmethods__"])} if "__abstractmethods__" in own else {}
        return rebuild.new_class, (id(cls), type(cls), cls.__name__, cls.__bases__, first), (state, more), None, None, rebuild.set_class

    def _builtin(self, cls: Any) -> Any:
        """Finds a type of Python's own that has its name in another module."""
        for name, value in vars(types).items():
            if value is cls:
                return rebuild.ref, ("imported", "types", name)
        return NotImplemented

    def _enum(self, cls: Any) -> Any:
        kinds = (types.FunctionType, classmethod, staticmethod, property)
        state = {n: v for n, v in vars(cls).items() if isinstance(v, kinds) and n not in ("__new__", "_generate_next_value_") and _of_session(v)}
        members = [(name, member._value_) for name, member in cls.__members__.items()]
        return rebuild.new_enum, (id(cls), type(cls), cls.__name__, cls.__bases__, cls.__module__, cls.__qualname__, members), (state, {}), None, None, rebuild.set_class

    def _property(self, p: Any) -> Any:
        return property, (p.fget, p.fset, p.fdel, p.__doc__)

    def _wrapped(self, m: Any) -> Any:
        return type(m), (m.__func__,)

    def _cached_property(self, p: Any) -> Any:
        return rebuild.cached_property, (p.func, p.attrname)

    def _proxy(self, proxy: Any) -> Any:
        return types.MappingProxyType, (dict(proxy),)

    def _type_var(self, v: Any) -> Any:
        if _stands_as(v):
            return NotImplemented
        variance = {n: True for n in ("covariant", "contravariant", "infer_variance") if getattr(v, f"__{n}__", False)}
        return rebuild.type_var, (v.__name__, v.__constraints__, v.__bound__, variance)

    # What belongs to the process.

    def _module(self, module: Any) -> Any:
        if sys.modules.get(module.__name__) is not module or getattr(module, "__spec__", None) is None:
            raise Refused(_WHY["module"])
        if rebuild.of_user(module):
            self.notes.append((module, "imported again: what it holds is as its file makes it"))
        return rebuild.ref, ("imported", module.__name__)

    def _file(self, f: Any) -> Any:
        if isinstance(f, (io.BytesIO, io.StringIO)):
            return NotImplemented
        if type(f) not in (io.TextIOWrapper, io.BufferedReader, io.BufferedRandom, io.BufferedWriter, io.FileIO):
            raise Refused("an open file, of a kind that cannot be opened again")
        if f.closed:
            return rebuild.closed_file, (type(f).__name__,)
        path, readable, writable = getattr(f, "name", None), f.readable(), f.writable()
        if writable or not readable:
            raise Refused("a file that is open for writing")
        if not isinstance(path, (str, bytes)):
            raise Refused("an open file that has no name")
        path = os.path.join(directory(), os.fsdecode(path))
        try:
            info, real = os.stat(path), os.fstat(f.fileno())
            at = f.tell()
        except (OSError, ValueError) as err:
            raise Refused(f"an open file that cannot be opened again: {err}") from None
        if (info.st_dev, info.st_ino) != (real.st_dev, real.st_ino) or not os.path.isfile(path):
            raise Refused("an open file that is not there any more under its name")
        text = (f.encoding, f.errors) if isinstance(f, io.TextIOWrapper) else None
        self.notes.append((f, "a file, opened again where it was read up to"))
        return rebuild.file, (path, type(f).__name__, text, at)

    def _logger(self, logger: Any) -> Any:
        if logger.handlers or logger.filters or logger.level:
            self.notes.append((logger, "a logger, found by its name: its level, handlers and filters are not kept"))
        return NotImplemented

    def _array(self, a: Any) -> Any:
        """Keeps a view of an array a view of it: it has kept all of that in memory, too."""
        base = a.base
        if type(base) is not type(a) or isinstance(base.base, type(a)) or base.dtype.hasobject or a.dtype.hasobject or not (base.flags.c_contiguous or base.flags.f_contiguous):
            return NotImplemented
        offset = a.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return rebuild.view, (base, a.shape, a.dtype, offset, a.strides)

    def _mapped(self, a: Any) -> Any:
        self.notes.append((a, "an array in memory: it was one of a file"))
        return NotImplemented


class _Ref:
    """What is there in every session, by its name."""

    def __init__(self, *of: Any) -> None:
        self.of = of


class _Body:
    """The names of a class."""

    def __init__(self, of: Any) -> None:
        self.of = of


def _class_of(body: Dict[str, Any]) -> Any:
    """Returns the class that has these names, None when none has."""
    for cls in gc.get_referrers(body):
        if isinstance(cls, type) and rebuild.class_body(cls) is body:
            return cls
    return None


class _Names:
    """The globals of a function that belong to no module."""

    _made: Dict[int, "_Names"] = {}

    def __new__(cls, of: Dict[str, Any]) -> "_Names":
        # One for each dict, so that functions which share one go on sharing it.
        one = cls._made.get(id(of))
        if one is None:
            one = cls._made[id(of)] = super().__new__(cls)
            one.of = of
        return one

    of: Dict[str, Any]


def _content(cell: Any) -> Tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()  # it is empty


def _of_session(value: Any) -> bool:
    """Says whether a method was written in the session."""
    value = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    return getattr(value, "__module__", None) == "__main__"


def _stands_as(v: Any) -> bool:
    module = sys.modules.get(getattr(v, "__module__", None) or "")
    return module is not None and module.__name__ != "__main__" and getattr(module, v.__name__, None) is v


def _ways() -> Dict[Any, Callable[[Any, Any], Any]]:
    """How objects of some types are reduced. Modules that were not imported have
    none."""
    ways: Dict[Any, Callable[[Any, Any], Any]] = {
        types.FunctionType: Pickler._function,
        types.CellType: Pickler._cell,
        types.CodeType: Pickler._code,
        types.MethodType: Pickler._method,
        types.ModuleType: Pickler._module,
        types.MappingProxyType: Pickler._proxy,
        property: Pickler._property,
        classmethod: Pickler._wrapped,
        staticmethod: Pickler._wrapped,
        functools.cached_property: Pickler._cached_property,
        type(functools.lru_cache(lambda: None)): Pickler._cached,
        _Ref: Pickler._ref,
        _Names: Pickler._names,
        _Body: Pickler._body,
        weakref.finalize: _finalizer,
    }
    for module, name, way in (
        ("typing", "TypeVar", Pickler._type_var),
        ("logging", "Logger", Pickler._logger),
        ("logging", "RootLogger", Pickler._logger),
        ("numpy", "ndarray", Pickler._array),
        ("numpy", "memmap", Pickler._mapped),
    ):
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None:
            ways[kind] = way
    return ways


def _finalizer(_: Any, obj: Any) -> Any:
    raise Refused("something is to be done when it goes, as with a temporary folder")


def _special(pickler: Pickler, obj: Any) -> Any:
    """Refuses what would be pickled and not be what it was."""
    module = type(obj).__module__
    if isinstance(obj, BaseException):
        if obj.__traceback__ is not None or obj.__context__ is not None or obj.__cause__ is not None:
            pickler.notes.append((obj, "an exception without its traceback and what led to it"))
    elif module == "subprocess" and hasattr(obj, "poll") or module.partition(".")[0] == "multiprocessing":
        raise Refused("it belongs to a process that does not outlive this one")
    return NotImplemented


def known(session: Any) -> Dict[int, Tuple[Any, ...]]:
    """What every session has, by its address: it is found by its name again."""
    found: Dict[int, Tuple[Any, ...]] = {
        id(sys.stdout): ("sys", "stdout"),
        id(sys.stderr): ("sys", "stderr"),
        id(sys.stdin): ("sys", "stdin"),
        id(os.environ): ("imported", "os", "environ"),
        id(session.module): ("main",),
        id(session): ("session",),
    }
    dataclasses = sys.modules.get("dataclasses")
    for name in ("MISSING", "KW_ONLY", "_FIELD", "_FIELD_CLASSVAR", "_FIELD_INITVAR", "_HAS_DEFAULT_FACTORY"):
        if hasattr(dataclasses, name):
            found[id(getattr(dataclasses, name))] = ("imported", "dataclasses", name)
    for name, value in session._baseline.items():
        if not isinstance(value, (str, int, type(None))) and name != "__builtins__":
            found[id(value)] = ("baseline", name)
    return found


# The whole.


def gather(session: Any, left: Iterable[str] = ()) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Returns what the session's names stand for, and what else is in the pickle."""
    left, base = set(left), session._baseline
    names = {n: v for n, v in session.namespace.items() if n not in left and isinstance(n, str) and n != "__builtins__" and not (n in base and base[n] is v)}
    around: Dict[str, Any] = {"count": session.count, "flags": session.compiler._flags, "warnings": list(sys.modules["warnings"].filters)}
    around["cells"] = {n: e[2] for n, e in linecache.cache.items() if n.startswith("<cell ") and len(e) > 2}
    for name, state in (("random", "getstate"), ("numpy.random", "get_state")):
        if name in sys.modules:
            around[name] = getattr(sys.modules[name], state)()
    own = known(session)
    own.update({id(session.commands): (), id(session._ask): ()})
    for name, value in vars(builtins).items():
        if id(value) not in own and (name not in session._builtins or session._builtins[name] is not value):
            around["builtins." + name] = value
    return names, {_AROUND + name: value for name, value in around.items() if _AROUND + name not in left}


def surroundings(session: Any) -> Dict[str, Any]:
    """Returns what code has changed of the directory, the environment and the path of
    imports: it is put back before anything is read."""
    found: Dict[str, Any] = {"path": [p for p in sys.path if isinstance(p, str)]}
    here = directory()
    if here and here != session._cwd:
        found["cwd"] = here
    before = patched(session._env, session._env_patch)
    now = dict(os.environ)
    env: Dict[str, Optional[str]] = {n: v for n, v in now.items() if before.get(n) != v}
    env.update({n: None for n in before if n not in now})
    if env:
        found["env"] = env
    return found


class _File:
    """Writes to a descriptor, and counts."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self.size += view.nbytes
        while view.nbytes:
            view = view[os.write(self._fd, view[:_PIECE]) :]
        return self.size


class _Nowhere:
    """Takes bytes and keeps none."""

    def write(self, data: Any) -> int:
        return len(data)


class Freezer:
    """Finds out what of a session can be kept, and writes it."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.lost: Dict[str, Tuple[str, str]] = {}  # by name: its type, and why

    def _try(self, names: Dict[str, Any], to: Any, buffer: Optional[Callable[[Any], Any]]) -> Pickler:
        pickler = Pickler(to, self._session, buffer)
        pickler.dump(names)
        return pickler

    def fit(self, names: Dict[str, Any]) -> Dict[str, Any]:
        """Returns the names that can be pickled, and notes why the others cannot. It
        halves what fails, so that what shares much is gone through a few times."""
        try:
            self._try(names, _Nowhere(), lambda buffer: None)
            return names
        except BaseException as err:  # whatever the user's objects raise when they are asked
            if len(names) == 1:
                ((name, value),) = names.items()
                self.lost[name] = (kind(value), why(value, err))
                return {}
        keys = list(names)
        half = len(keys) // 2
        first, second = self.fit({k: names[k] for k in keys[:half]}), self.fit({k: names[k] for k in keys[half:]})
        return {**first, **second}

    def write(self, fd: int, names: Dict[str, Any], apart: bool) -> Tuple[List[int], List[Tuple[Any, str]]]:
        """Writes names and returns the sizes of its parts: the pickle and then its
        buffers; with apart, a pickle for each name. It returns what comes back
        otherwise, too."""
        sizes: List[int] = []
        notes: List[Tuple[Any, str]] = []
        for group in [{n: v} for n, v in names.items()] if apart else [names]:
            buffers: List[Any] = []

            def out_of_band(buffer: Any) -> bool:
                try:
                    raw = buffer.raw()
                except BufferError:
                    return True  # in the pickle: it is not contiguous
                if apart or raw.nbytes < _APART:
                    return True
                buffers.append(raw)
                return False

            head = _File(fd)
            notes += self._try(group, head, out_of_band).notes
            sizes.append(head.size)
            for part in buffers:
                sizes.append(_File(fd).write(part))
        return sizes, notes

    def changed(self, names: Dict[str, Any], notes: List[Tuple[Any, str]]) -> Dict[str, str]:
        """Says of which names what comes back otherwise is part."""
        found: Dict[str, Set[str]] = {}
        if not notes:
            return {}
        for name, value in names.items():
            for _, text in self._try({name: value}, _Nowhere(), lambda buffer: None).notes:
                found.setdefault(name, set()).add(text)
        return {name: "; ".join(sorted(texts)) for name, texts in found.items()}


def freeze(session: Any, fd: int, left: Iterable[str], apart: bool, running: List[Tuple[str, str, str]], whole: bool = False) -> Dict[str, Any]:
    """Writes the image of a session to a file, and returns what is in it. left are
    names to leave out, running what runs besides the session's main thread. With whole
    nothing is in it when something would be lost."""
    left = list(left)
    names, around = gather(session, left)
    with sys.modules["warnings"].catch_warnings():  # of what is pickled: no cell runs that they could belong to
        sys.modules["warnings"].simplefilter("ignore")
        return _freeze(session, fd, names, around, apart, running, whole)


def _freeze(session: Any, fd: int, names: Dict[str, Any], around: Dict[str, Any], apart: bool, running: List[Tuple[str, str, str]], whole: bool) -> Dict[str, Any]:
    freezer = Freezer(session)
    everything = {**names, **around}
    if apart:
        everything = {k: v for k, v in everything.items() if freezer.fit({k: v})}
    sizes: List[int] = []
    notes: List[Tuple[Any, str]] = []
    if whole and running:
        everything = freezer.fit(everything)
    else:
        try:
            sizes, notes = freezer.write(fd, everything, apart)
        except BaseException:  # something of it cannot be pickled: it is looked for
            os.lseek(fd, 0, os.SEEK_SET)
            os.ftruncate(fd, 0)
            everything = freezer.fit(everything)
            if not (whole and freezer.lost):
                sizes, notes = freezer.write(fd, everything, apart)
    types_of = {n: kind(v) for n, v in names.items() if n in everything}
    changed = freezer.changed({n: v for n, v in names.items() if n in everything}, notes)
    lost = [{"name": shown(n), "type": t, "reason": w} for n, (t, w) in freezer.lost.items()]
    lost += [{"name": n, "type": t, "reason": w} for n, t, w in running]
    return {
        "format": rebuild.FORMAT,
        "python": rebuild.version(),
        "platform": rebuild.platform(),
        "packages": rebuild.packages(),
        "sections": sizes,
        "apart": list(everything) if apart else None,
        "around": surroundings(session),
        "kept": sorted(n for n in types_of if n not in changed and not hidden(n)),
        "lost": sorted(lost, key=lambda one: one["name"]),
        "changed": [{"name": n, "type": types_of[n], "change": c} for n, c in sorted(changed.items()) if not hidden(n)],
        "types": types_of,
    }


def hidden(name: str) -> bool:
    """Says whether a name is Python's own, and not told."""
    return name.startswith("__") and name.endswith("__")


def shown(name: str) -> str:
    """Returns what people read for a key of the pickle."""
    name = name[len(_AROUND) :] if name.startswith(_AROUND) else name
    return "_" if name == "builtins._" else name


def why(value: Any, err: BaseException) -> str:
    """Says why an object cannot be kept."""
    if isinstance(err, Refused):
        return str(err)
    if isinstance(err, RecursionError):
        return "it is nested too deeply"
    text = str(err)
    match = _UNPICKLABLE.search(text)
    if match is None:
        return f"{type(err).__name__}: {text}"[:300]
    what = match.group(1) or match.group(2)
    reason = _WHY.get(what)
    short = kind(value).rpartition(".")[2]
    if what.rpartition(".")[2] == short:
        return reason or f"Python cannot keep a {what}"
    return f"it holds a {what}" + (f": {reason}" if reason else "")
