"""Imports the packages as the host hands it over: its code has the
file names by which it knows itself."""

import builtins
import importlib.abc
import importlib.machinery
import pathlib
import sys

_BUILTINS = dict(vars(builtins))
_FOLDER = pathlib.Path(__file__).resolve().parent.parent


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages beside this folder."""

    def find_spec(self, name, path=None, target=None):
        package, _, module = name.partition(".")
        if package in ("coppice_runner", "coppice_prelude"):
            file = _FOLDER / package / f"{module or '__init__'}.py"
        else:
            return None
        if not file.exists():
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(file), is_package=file.name == "__init__.py")
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        file = pathlib.Path(module.__spec__.origin)
        if not module.__name__.startswith("coppice_prelude"):
            module.__dict__["__builtins__"] = _BUILTINS
        exec(compile(file.read_text("utf-8"), f"<coppice>/{file.name}", "exec", dont_inherit=True), module.__dict__)


if not any(type(f).__name__ == "Finder" for f in sys.meta_path):
    sys.meta_path.insert(0, Finder())
