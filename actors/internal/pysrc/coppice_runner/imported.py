"""The display functions that code imports from IPython. Without a shell of
IPython they print the names of what they are to show; here they show it."""

from __future__ import annotations

import importlib.machinery
import sys
from types import ModuleType
from typing import Any, Callable, Dict, Optional

from . import display as own

_MODULE = "IPython.core.display_functions"


class Imported:
    """Puts our functions into the module when it is imported. It is a finder of
    modules, and the loader of that one."""

    def __init__(self, display: Callable[..., Any], clear_output: Callable[..., Any]) -> None:
        self._display, self._clear = display, clear_output
        self._loader: Any = None
        self._done: Optional[ModuleType] = None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != _MODULE:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        self._loader, spec.loader = spec.loader, self  # type: ignore[assignment]
        return spec

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or self._loader is None:
            raise AttributeError(name)
        return getattr(self._loader, name)

    def look(self) -> None:
        """Changes a module that was there before."""
        module = sys.modules.get(_MODULE)
        if module is not None and module is not self._done:
            self._change(module)

    def _change(self, module: ModuleType) -> None:
        self._done = module
        for name, function in (("display", self.display), ("clear_output", self.clear_output), ("publish_display_data", self.publish)):
            theirs = getattr(module, name, None)
            setattr(module, name, function)
            for other in ("IPython.display", "IPython.core.display", "IPython"):
                if other in sys.modules and getattr(sys.modules[other], name, None) is theirs:
                    setattr(sys.modules[other], name, function)

    def display(
        self, *objs: Any, include: Any = None, exclude: Any = None, metadata: Any = None, transient: Any = None, display_id: Any = None, raw: bool = False, clear: bool = False, **kwargs: Any
    ) -> Any:
        """Shows objects, as IPython's function of that name does."""
        if clear:
            self._clear(wait=True)
        display_id = display_id or (transient or {}).get("display_id")
        update = bool(kwargs.get("update"))
        if update and not display_id:
            raise TypeError("display_id required for update_display")
        if not objs and display_id:
            objs, raw = ({},), True  # a place for what is shown later
        if (include or exclude) and not raw:
            for obj in objs:
                data, more = own.bundle(obj)
                data = {m: part for m, part in data.items() if (not include or m in include) and m not in (exclude or ())}
                self._display(data, raw=True, metadata={**more, **(metadata or {})}, display_id=display_id, update=update)
            return None
        handle = self._display(*objs, raw=raw, metadata=metadata, display_id=display_id, update=update)
        theirs = getattr(self._done, "DisplayHandle", None)
        return handle if handle is None or theirs is None else theirs(handle.display_id)

    def clear_output(self, wait: bool = False) -> None:
        """Takes back what the cell has shown."""
        self._clear(wait=wait)

    def publish(self, data: Dict[str, Any], metadata: Any = None, *, transient: Any = None, **kwargs: Any) -> None:
        """Shows a MIME bundle."""
        self._display(data, raw=True, metadata=metadata, display_id=(transient or {}).get("display_id"), update=bool(kwargs.get("update")))


def install(display: Callable[..., Any], clear_output: Callable[..., Any]) -> Imported:
    """Waits for the import."""
    made = Imported(display, clear_output)
    sys.meta_path.insert(0, made)  # type: ignore[arg-type]
    return made
