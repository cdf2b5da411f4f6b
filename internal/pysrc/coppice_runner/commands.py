"""What the magics do. magics.py turns them into calls of Commands."""

from __future__ import annotations

import builtins
import importlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from . import shell, whole
from .interrupts import calls_user


class UsageError(Exception):
    """Raised for a magic that does not exist, or is used wrongly."""


class Commands:
    """The magics of one session, as cells call them."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._previous = ""  # the directory before the last %cd
        self._lines: Dict[str, Callable[[str], Any]] = {
            "cd": self._cd,
            "env": self._env,
            "load": self._load,
            "ls": self._ls,
            "matplotlib": lambda _: None,  # figures are always shown
            "pip": self._pip,
            "pwd": lambda _: os.getcwd(),
            "reset": lambda _: session.reset(),
            "run": self._run,
            "set_env": self._set_env,
            "time": self._time,
            "timeit": self._timeit,
            "who": self._who,
            "whos": self._whos,
        }
        self._cells: Dict[str, Callable[[str, str], Any]] = {
            "bash": lambda args, body: self._script("bash", args, body),
            "capture": self._capture,
            "sh": lambda args, body: self._script("sh", args, body),
            "time": lambda _, body: self._time(body),
            "timeit": self._timeit,
            "writefile": self._writefile,
        }

    # What cells call.

    def line(self, name: str, args: str) -> Any:
        """Runs %name."""
        found = self._lines.get(name)
        if found is None:
            raise UsageError(f"there is no %{name}; there are {', '.join('%' + n for n in self._lines)}")
        return found(args)

    def cell(self, name: str, args: str, body: str) -> Any:
        """Runs %%name."""
        found = self._cells.get(name)
        if found is None:
            raise UsageError(f"there is no %%{name}; there are {', '.join('%%' + n for n in self._cells)}")
        return found(args, body)

    def shell(self, command: str) -> None:
        """Runs !command. Its exit code is kept as _exit_code."""
        self._session.output.flush()
        self._session.namespace["_exit_code"] = shell.run(shell.expand(command, self._session.namespace), self._session.interrupts)

    def capture(self, command: str) -> shell.Lines:
        """Returns the lines of x = !command. What it writes to stderr is shown."""
        self._session.output.flush()
        lines = shell.capture(shell.expand(command, self._session.namespace), self._session.interrupts)
        self._session.namespace["_exit_code"] = lines.returncode
        return lines

    def check_complete(self, code: str) -> Tuple[str, Optional[int]]:
        """Says whether code is whole, under the name that IPython has for it."""
        return whole.check(code)

    # Directories and files.

    def _cd(self, args: str) -> None:
        target = args.strip().strip("'\"")
        if target == "-":
            if not self._previous:
                raise UsageError("%cd -: there is no directory to go back to")
            target = self._previous
        here = os.getcwd()
        os.chdir(os.path.expanduser(shell.expand(target, self._session.namespace)) if target else os.path.expanduser("~"))
        self._previous = here
        print(os.getcwd())

    def _ls(self, args: str) -> None:
        self.shell("ls -F " + args)

    def _writefile(self, args: str, body: str) -> None:
        words = shlex.split(args)
        append = "-a" in words or "--append" in words
        names = [w for w in words if w not in ("-a", "--append")]
        if len(names) != 1:
            raise UsageError("usage: %%writefile [-a] PATH")
        path = pathlib.Path(os.path.expanduser(names[0]))
        path.parent.mkdir(parents=True, exist_ok=True)
        did = "Appending to" if append and path.exists() else "Overwriting" if path.exists() else "Writing"
        with open(path, "a" if append else "w", encoding="utf-8") as f:
            f.write(body if body.endswith("\n") else body + "\n")  # so that what is appended is a line of its own
        print(did, path)

    def _load(self, args: str) -> Any:
        path = self._path(args, "%load")
        text = path.read_text(encoding="utf-8")
        print(text, end="" if text.endswith("\n") else "\n")
        return self._session.evaluate(text, str(path))

    def _path(self, args: str, magic: str) -> pathlib.Path:
        words = shlex.split(args)
        if len(words) != 1:
            raise UsageError(f"usage: {magic} PATH")
        return pathlib.Path(os.path.expanduser(words[0]))

    # The environment.

    def _env(self, args: str) -> Any:
        args = args.strip()
        if not args:
            return dict(os.environ)
        if "=" in args or len(args.split(None, 1)) == 2:
            return self._set_env(args)
        if args not in os.environ:
            raise UsageError(f"the environment has no {args}")
        return os.environ[args]

    def _set_env(self, args: str) -> None:
        name, equals, value = args.strip().partition("=")
        if not equals or " " in name.strip():
            name, _, value = args.strip().partition(" ")
        name = name.strip()
        if not name or not (equals or value):
            raise UsageError("usage: %set_env NAME=VALUE")
        os.environ[name] = shell.expand(value.strip(), self._session.namespace)
        print(f"env: {name}={os.environ[name]}")

    # Code.

    def _run(self, args: str) -> None:
        words = shlex.split(args)
        if not words:
            raise UsageError("usage: %run PATH [ARGUMENT ...]")
        path = os.path.expanduser(words[0])
        if not os.path.exists(path) and not path.endswith(".py"):
            path += ".py"
        with open(path, "rb") as f:
            source = f.read()
        scope: Dict[str, Any] = {"__name__": "__main__", "__file__": path, "__builtins__": builtins}
        argv, sys.argv = sys.argv, [path, *words[1:]]
        first = os.path.dirname(os.path.abspath(path))
        sys.path.insert(0, first)
        try:
            _execute(compile(source, path, "exec", 0, True), scope)
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
        finally:
            sys.argv = argv
            if first in sys.path:
                sys.path.remove(first)
            self._session.namespace.update((k, v) for k, v in scope.items() if not k.startswith("__"))

    def _time(self, code: str) -> Any:
        if not code.strip():
            raise UsageError("usage: %time STATEMENT")
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return self._session.evaluate(code, "<%time>")
        finally:
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(f"CPU time: {_seconds(cpu)}, wall time: {_seconds(wall)}")

    def _timeit(self, args: str, body: Optional[str] = None) -> None:
        import timeit

        loops, repeat, statement = _timeit_options(args)
        setup = "pass"
        if body is not None:
            setup, statement = statement or "pass", body
        timer = timeit.Timer(statement, setup, globals=self._session.namespace)
        if not loops:
            loops, _ = _call(timer.autorange)
        best = min(_call(timer.timeit, loops) for _ in range(repeat)) / loops
        print(f"{loops} loop{'s' if loops != 1 else ''}, best of {repeat}: {_seconds(best)} per loop")

    def _capture(self, args: str, body: str) -> None:
        words = [w for w in shlex.split(args) if not w.startswith("--")]
        if len(words) > 1 or not all(w.isidentifier() for w in words):
            raise UsageError("usage: %%capture [NAME]")
        captured = self._session.output.capture()
        try:
            self._session.evaluate(body, "<%%capture>")
        finally:
            self._session.output.captured_until(captured)
            if words:
                self._session.namespace[words[0]] = captured

    def _script(self, program: str, args: str, body: str) -> None:
        found = shutil.which(program)
        if found is None:
            raise UsageError(f"there is no {program} on PATH")
        self._session.output.flush()
        code = shell.run([found, "-c", body, program, *shlex.split(args)], self._session.interrupts)
        self._session.namespace["_exit_code"] = code
        if code != 0:
            raise subprocess.CalledProcessError(code, program)

    # Packages.

    def _pip(self, args: str) -> None:
        words = shlex.split(shell.expand(args, self._session.namespace))
        env = {**os.environ, "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        before = _installed()
        self._session.output.flush()
        code = shell.run([sys.executable, "-m", "pip", *words], self._session.interrupts, env=env)
        self._session.namespace["_exit_code"] = code
        importlib.invalidate_caches()
        # A module that was imported before would go on being the old one.
        stale = sorted({m for name, versions in _installed().items() if before.get(name) != versions for m in _modules_of(name)})
        evicted = [m for m in list(sys.modules) if m.split(".")[0] in stale]
        for module in evicted:
            del sys.modules[module]
        if code != 0:
            raise subprocess.CalledProcessError(code, "pip")

    # Names.

    def _names(self) -> List[str]:
        return self._session.names()

    def _who(self, args: str) -> None:
        wanted = args.split()
        names = [n for n in self._names() if not wanted or type(self._session.namespace[n]).__name__ in wanted]
        print("\t".join(names) if names else "There are no variables.")

    def _whos(self, _args: str) -> None:
        rows: List[Tuple[str, str, str]] = [("Name", "Type", "Value")]
        for name in self._names():
            value = self._session.namespace[name]
            try:
                text = " ".join(_call(repr, value).split())
            except Exception as err:  # a repr can raise anything
                text = f"<{type(err).__name__}>"
            rows.append((name, type(value).__name__, text if len(text) <= 60 else text[:57] + "..."))
        if len(rows) == 1:
            print("There are no variables.")
            return
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        for row in rows:
            print(f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}")


@calls_user
def _call(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


@calls_user
def _execute(code: Any, scope: Dict[str, Any]) -> None:
    exec(code, scope)


def _timeit_options(args: str) -> Tuple[int, int, str]:
    loops, repeat = 0, 5
    while True:
        words = args.split(None, 2)
        flag = words[0] if words else ""
        if flag in ("-n", "-r") and len(words) > 1 and words[1].isdigit():
            number, args = int(words[1]), words[2] if len(words) > 2 else ""
        elif flag[:2] in ("-n", "-r") and flag[2:].isdigit():
            number, args = int(flag[2:]), args.lstrip()[len(flag) :]
        else:
            return loops, repeat, args.strip()
        if flag[:2] == "-n":
            loops = number
        else:
            repeat = max(1, number)


def _seconds(value: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _installed() -> Dict[str, Set[str]]:
    """Returns the distributions that can be imported, with their versions: a
    folder can hold what is left of an older one."""
    from importlib import metadata

    found: Dict[str, Set[str]] = {}
    for one in metadata.distributions():
        try:
            found.setdefault(one.metadata["Name"], set()).add(one.version)
        except Exception:  # a broken installation, not ours
            continue
    return found


def _modules_of(name: str) -> List[str]:
    """Returns the top-level modules of a distribution."""
    from importlib import metadata

    try:
        listed = metadata.distribution(name).read_text("top_level.txt")
    except Exception:  # it is gone again, or broken
        listed = None
    return listed.split() if listed else [name.replace("-", "_").lower(), name.replace("-", "_")]
