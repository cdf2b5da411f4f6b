"""A session's memory from bytes: what the pickles of freeze call, and how they are
read. The names here stand in what is kept on disk: FORMAT counts their changes."""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import io
import linecache
import marshal
import os
import pickle
import sys
import types
from typing import Any, Dict, List, Optional, Tuple

# The version of what freeze writes.
FORMAT = 1
_AROUND = "around "

# The session that is being put together. There is one in a process.
_session: Any = None
# What comes back otherwise than it was meant to, by a sentence.
_said: List[str] = []
# The folder that the session was in, and the one that it was copied to; none: it is where it was.
_moved: Optional[Tuple[str, str]] = None
# The classes that were made, by their number in the image: a class that is part of its
# own base comes twice.
_classes: Dict[int, Any] = {}
# The modules with a version that the fork server had; None: there was none.
_settled: Optional[List[str]] = None


# What stands in pickles.


def ref(what: str, *names: str) -> Any:
    """Returns what every session has."""
    if what == "namespace":
        return _session.namespace
    if what == "main":
        return _session.module
    if what == "session":
        return _session
    if what == "baseline":
        return _session._baseline[names[0]]
    if what == "sys":
        return getattr(sys, names[0])
    if what == "module":
        return vars(importlib.import_module(names[0]))
    found: Any = importlib.import_module(names[0])
    for name in names[1:]:
        found = getattr(found, name)
    return found


def code(data: bytes) -> types.CodeType:
    """Returns a code object."""
    return marshal.loads(data)


def cell() -> Any:
    """Returns an empty cell of a closure."""
    return types.CellType()


def names(name: Optional[str]) -> Dict[str, Any]:
    """Returns globals that belong to no module."""
    return {"__name__": name, "__builtins__": builtins}


def set_names(to: Dict[str, Any], values: Dict[str, Any]) -> None:
    """Fills them."""
    to.update(values)


def function(where: Dict[str, Any], data: bytes, name: str, closure: Any) -> Any:
    """Returns a function; its cells are empty."""
    return types.FunctionType(marshal.loads(data), where, name, None, closure)


def set_function(f: Any, state: Tuple[Any, ...]) -> None:
    """Gives a function what it refers to."""
    f.__defaults__, attributes, more, contents = state
    f.__dict__.update(attributes)
    for name, value in more.items():
        setattr(f, name, value)
    for empty, content in zip(f.__closure__ or (), contents or ()):
        if content:
            empty.cell_contents = content[0]


def cached(f: Any, maxsize: Any, typed: bool) -> Any:
    """Returns a function with a cache, which is empty."""
    return functools.lru_cache(maxsize=maxsize, typed=typed)(f)


def cached_property(f: Any, name: Optional[str]) -> Any:
    """Returns a property that is computed once."""
    made = functools.cached_property(f)
    made.attrname = name
    return made


def new_class(number: int, meta: Any, name: str, bases: Tuple[Any, ...], first: Dict[str, Any]) -> Any:
    """Returns a class without its attributes. What its bases do about classes derived
    from them, they have done when it was made first."""
    if number in _classes:
        return _classes[number]
    hooks = []
    for base in {c: None for b in bases for c in b.__mro__}:
        if base.__module__ == "__main__" and "__init_subclass__" in vars(base):
            hooks.append((base, vars(base)["__init_subclass__"]))
    for base, _ in hooks:
        type.__delattr__(base, "__init_subclass__")
    try:
        made = type.__new__(meta, name, bases, dict(first))
    finally:
        for base, hook in hooks:
            type.__setattr__(base, "__init_subclass__", hook)
    import abc

    if issubclass(meta, abc.ABCMeta):
        import _abc

        _abc._abc_init(made)
    _classes[number] = made
    return made


def set_class(cls: Any, state: Tuple[Dict[str, Any], Dict[str, Any]]) -> None:
    """Gives a class its attributes."""
    attributes, more = state
    for name, value in attributes.items():
        type.__setattr__(cls, name, value)
    if "abstract" in more:
        cls.__abstractmethods__ = frozenset(more["abstract"])


def class_body(cls: Any) -> Any:
    """Returns the names of a class as the class has them."""
    return gc.get_referents(vars(cls))[0]


def new_enum(number: int, meta: Any, name: str, bases: Tuple[Any, ...], module: str, qualname: str, members: List[Tuple[str, Any]]) -> Any:
    """Returns an enumeration."""
    if number in _classes:
        return _classes[number]
    body = meta.__prepare__(name, bases)
    for member, value in members:
        body[member] = value
    body["__module__"], body["__qualname__"] = module, qualname
    made = _classes[number] = meta.__new__(meta, name, bases, body)
    return made


def type_var(name: str, constraints: Tuple[Any, ...], bound: Any, variance: Dict[str, bool]) -> Any:
    """Returns a variable of types."""
    import typing

    made = typing.TypeVar(name, *constraints, bound=bound, **variance)  # type: ignore[misc]
    made.__module__ = "__main__"
    return made


def view(base: Any, shape: Any, dtype: Any, offset: int, strides: Any) -> Any:
    """Returns a view of an array."""
    return type(base)(shape, dtype, base if base.flags.c_contiguous else base.T, offset, strides)


def closed_file(kind: str) -> Any:
    """Returns a file that is closed."""
    f = open(os.devnull, "r" if kind == "TextIOWrapper" else "rb", 0 if kind == "FileIO" else -1)
    f.close()
    return f


def file(path: str, kind: str, text: Optional[Tuple[str, str]], at: int) -> Any:
    """Returns a file that was open for reading, where it was."""
    if _moved is not None and (path == _moved[0] or path.startswith(_moved[0] + os.sep)):
        path = _moved[1] + path[len(_moved[0]) :]
    try:
        if text is not None:
            f: Any = open(path, encoding=text[0], errors=text[1])
        else:
            f = open(path, "rb", 0 if kind == "FileIO" else -1)
        f.seek(at)
        return f
    except (OSError, ValueError) as err:
        _said.append(f"the file {path} could not be opened again and is closed ({err})")
        return closed_file(kind)


# What an image was made with.


def kind(value: Any) -> str:
    """Returns the name of an object's type."""
    t = type(value)
    return t.__qualname__ if t.__module__ in ("builtins", "__main__") else f"{t.__module__}.{t.__qualname__}"


def version() -> str:
    """Returns the version of Python, with what tells builds apart."""
    return f"{sys.implementation.name} {sys.version.split()[0]} {importlib.machinery.EXTENSION_SUFFIXES[0]}"


def platform() -> str:
    """Returns the kind of machine."""
    return f"{sys.platform} {os.uname().machine} {sys.byteorder}"


def _folder(module: Any) -> str:
    """Returns the folder in which imports find the package that a module is of, "" for a
    part of Python."""
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    path = getattr(top, "__file__", None) or ""
    if not path or path.startswith("<"):
        return ""
    folder = os.path.dirname(os.path.dirname(path) if hasattr(top, "__path__") else path)
    return "" if folder in (os.path.dirname(os.__file__), os.path.join(os.path.dirname(os.__file__), "lib-dynload")) else folder


@functools.lru_cache(maxsize=None)
def _installs(folder: str) -> bool:
    """Says whether packages are installed in a folder, with their versions."""
    try:
        return any(name.endswith((".dist-info", ".egg-info")) for name in os.listdir(folder or "."))
    except OSError:
        return False


def of_user(module: Any) -> bool:
    """Says whether a module is neither Python's nor installed."""
    folder = _folder(module)
    return bool(folder) and not module.__name__.startswith("coppice_") and not _installs(folder)


def settle() -> None:
    """Notes, in a fork server, which of its modules have a version: the others are not
    looked at in each session, since a look at one writes to a page that they share."""
    global _settled
    _settled = list(_versions(list(sys.modules)))
    sys.modules[__name__] = sys.modules.pop(__name__)  # what a session imports comes after it


def packages() -> Dict[str, str]:
    """Returns the versions of the installed packages that were imported."""
    if _settled is None:
        return _versions(list(sys.modules))
    new: List[str] = []
    for name in reversed(sys.modules):  # they stand in the order of their imports
        if name == __name__:
            break
        new.append(name)
    return _versions(_settled + new[::-1])


def _versions(names: List[str]) -> Dict[str, str]:
    found: Dict[str, str] = {}
    for name in names:
        module = sys.modules.get(name)
        number = getattr(module, "__version__", None)
        if "." not in name and isinstance(number, str) and isinstance(module, types.ModuleType) and _folder(module) and not of_user(module):
            found[name] = number
    return found


def unlike(manifest: Dict[str, Any]) -> str:
    """Says how this process differs from the one that an image was made in, "" when it
    does not. It puts the path of imports back, where the packages are looked for, and
    imports nothing."""
    global _moved
    if manifest.get("format") != FORMAT:
        return f"it was written in the form {manifest.get('format')}, and this reads the form {FORMAT}"
    for what, was, now in (("Python", manifest["python"], version()), ("the machine", manifest["platform"], platform())):
        if was != now:
            return f"{what} was {was} and is {now}"
    _said.clear()
    moved = manifest.get("moved")
    _moved = (moved[0], moved[1]) if moved else None
    _surround(manifest["around"])
    if not manifest["packages"]:
        return ""
    from importlib import metadata  # it takes its time

    for name, was in sorted(manifest["packages"].items()):
        loaded = getattr(sys.modules.get(name), "__version__", None)
        try:
            now = loaded or metadata.version(name)
        except metadata.PackageNotFoundError:
            if importlib.util.find_spec(name) is None:
                return f"the package {name} {was} is not installed"
            continue  # a package whose name is not that of its module
        if now != was and metadata_agrees(name, was, now):
            return f"the package {name} was {was} and is {now}"
    return ""


def metadata_agrees(name: str, was: str, now: str) -> bool:
    """Says whether two versions are of one scheme: some modules say less of theirs than
    their packages."""
    return not (now.startswith(was) or was.startswith(now))


# Reading.


def _read(fd: int, size: int) -> bytearray:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        n = os.readv(fd, [view[at:]])
        if n == 0:
            raise EOFError("the image is shorter than it says")
        at += n
    return data


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "__main__":  # never made by freeze: nothing of the session is there yet
            raise pickle.UnpicklingError(f"__main__.{name} is not in the image")
        return super().find_class(module, name)


def _values(fd: int, manifest: Dict[str, Any]) -> Tuple[Dict[str, Any], List[Dict[str, str]]]:
    """Returns what an image holds, by name, and what of it could not be read: of an
    image that is one pickle, that raises."""
    sizes = manifest["sections"]
    if os.fstat(fd).st_size < sum(sizes):
        raise EOFError("the image is shorter than it says")
    if manifest["apart"] is None:
        os.lseek(fd, sizes[0], os.SEEK_SET)
        buffers = [_read(fd, size) for size in sizes[1:]]
        os.lseek(fd, 0, os.SEEK_SET)
        with open(os.dup(fd), "rb") as head:  # it is not in memory twice
            return _Unpickler(head, buffers=buffers).load(), []
    os.lseek(fd, 0, os.SEEK_SET)
    values: Dict[str, Any] = {}
    failed = []
    for name, size in zip(manifest["apart"], sizes):
        data = _read(fd, size)
        try:
            values.update(_Unpickler(io.BytesIO(data)).load())
        except BaseException as err:  # whatever the user's objects raise when they are made
            failed.append({"name": name, "type": manifest["types"].get(name, ""), "reason": f"it cannot be put together again: {type(err).__name__}: {err}"[:300]})
    return values, failed


def _surround(around: Dict[str, Any]) -> None:
    """Puts back the path of imports, the directory and the environment."""
    sys.path[:] = around["path"] + [p for p in sys.path if p not in around["path"]]
    if "cwd" in around:
        try:
            os.chdir(around["cwd"])
        except OSError as err:
            _said.append(f"the working directory {around['cwd']} is not there any more ({err.strerror})")
    for name, value in around.get("env", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def thaw(session: Any, fd: int, manifest: Dict[str, Any]) -> Dict[str, Any]:
    """Puts what an image holds into a session, when unlike has said nothing. It returns what came otherwise than the
    image says (said), and which names did not come (failed): then the session is not
    the one that was kept."""
    global _session
    _session = session
    _classes.clear()
    values, failed = _values(fd, manifest)
    for name, was in manifest["types"].items():
        if name in values and kind(values[name]) != was:
            failed.append({"name": name, "type": was, "reason": f"it came back as a {kind(values[name])}"})
    for name, was in manifest["packages"].items():
        now = getattr(sys.modules.get(name), "__version__", was)
        if now != was:
            raise ImportError(f"the package {name} was {was} and is {now}")
    around = {n[len(_AROUND) :]: values.pop(n) for n in list(values) if n.startswith(_AROUND)}
    session.namespace.update(values)
    session.count = around.get("count", 0)
    session.compiler._flags = around.get("flags", session.compiler._flags)
    for name, lines in around.get("cells", {}).items():
        session.compiler.register(name, "".join(lines))
    if "random" in around:
        importlib.import_module("random").setstate(around["random"])
    if "numpy.random" in around:
        importlib.import_module("numpy.random").set_state(around["numpy.random"])
    if "warnings" in around:
        warnings: Any = importlib.import_module("warnings")
        warnings.filters[:] = around["warnings"]
        mutated = getattr(warnings, "_filters_mutated", None) or getattr(warnings, "_filters_mutated_lock_held", None)
        if mutated is not None:
            mutated()
    for name, value in around.items():
        if name.startswith("builtins."):
            setattr(builtins, name[len("builtins.") :], value)
    return {"said": list(_said), "failed": failed}
