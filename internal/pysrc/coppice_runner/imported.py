"""What this package changes in modules that code imports: functions that would
ask or show in another place than the host."""

from __future__ import annotations

import importlib.machinery
import os
import sys
from types import ModuleType
from typing import Any, Callable, Dict

from . import display as own
from .comms import Comms

Change = Callable[[ModuleType], None]


class Hook:
    """Changes modules when they are imported. It is a finder of modules that
    finds none itself."""

    def __init__(self, changes: Dict[str, Change], comms: Comms) -> None:
        self._changes = changes
        self.comms = comms
        self._done: Dict[str, ModuleType] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._changes:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, lambda module: self._change(name, module))  # type: ignore[assignment]
        return spec

    def look(self) -> None:
        """Changes modules that were there before."""
        for name in self._changes:
            module = sys.modules.get(name)
            if module is not None and module is not self._done.get(name):
                self._change(name, module)

    def _change(self, name: str, module: ModuleType) -> None:
        self._done[name] = module
        self._changes[name](module)


class _Loader:
    """A loader that changes what it has loaded."""

    def __init__(self, loader: Any, change: Change) -> None:
        self._loader, self._change = loader, change

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._change(module)

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)


class IPythonDisplay:
    """The display functions of IPython. Without a shell of IPython they print
    the names of what they are to show; these show it."""

    module = "IPython.core.display_functions"

    def __init__(self, display: Callable[..., Any], clear_output: Callable[..., Any]) -> None:
        self._display, self._clear = display, clear_output
        self._theirs: Any = None

    def change(self, module: ModuleType) -> None:
        """Puts our functions into their module, and where others have them
        already."""
        self._theirs = module
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
        theirs = getattr(self._theirs, "DisplayHandle", None)
        return handle if handle is None or theirs is None else theirs(handle.display_id)

    def clear_output(self, wait: bool = False) -> None:
        """Takes back what the cell has shown."""
        self._clear(wait=wait)

    def publish(self, data: Dict[str, Any], metadata: Any = None, *, transient: Any = None, **kwargs: Any) -> None:
        """Shows a MIME bundle."""
        self._display(data, raw=True, metadata=metadata, display_id=(transient or {}).get("display_id"), update=bool(kwargs.get("update")))


class Figures:
    """pyplot.show() without a screen: it shows the figures there and then, and not at the
    end of the cell."""

    module = "matplotlib.pyplot"

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display

    def change(self, module: ModuleType) -> None:
        """Puts our function in the place of theirs."""
        theirs = module.show  # type: ignore[attr-defined]

        def show(*args: Any, **kwargs: Any) -> Any:
            """Shows all open figures."""
            if module.get_backend().lower() != "agg":  # type: ignore[attr-defined]
                return theirs(*args, **kwargs)
            return self.show()

        module.show = show  # type: ignore[attr-defined]

    def show(self) -> None:
        """Shows the open figures that were not displayed yet."""
        for figure in own.figures():
            self._display(figure)


class Plots:
    """Figures of plotly. Outside of IPython plotly opens a browser of this machine, or does
    nothing where there is none; here it has the renderer that it has in a notebook."""

    module = "plotly.io._renderers"
    renderer = "plotly_mimetype"

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display

    def change(self, module: ModuleType) -> None:
        """Chooses the renderer, unless the environment did, and puts our function in the place
        of theirs, which shows nothing without IPython and nbformat."""
        renderers, theirs = module.renderers, module.show  # type: ignore[attr-defined]
        if not os.environ.get("PLOTLY_RENDERER") and renderers.default in ("browser", "", None):
            renderers.default = self.renderer

        def show(fig: Any, renderer: Any = None, validate: bool = True, **kwargs: Any) -> Any:
            """Shows a figure."""
            if renderer is not None or renderers.default != self.renderer or not hasattr(fig, "_repr_mimebundle_"):
                return theirs(fig, renderer, validate, **kwargs)
            if not validate or kwargs:
                self._display(fig._repr_mimebundle_(validate=validate, **kwargs), raw=True)
            else:
                self._display(fig)
            return None

        module.show = show  # type: ignore[attr-defined]


class Pictures:
    """Image.show() of Pillow. Elsewhere it starts a program of this machine that shows it."""

    module = "PIL.ImageShow"

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display

    def change(self, module: ModuleType) -> None:
        """Puts our function in the place of theirs."""
        theirs = module.show  # type: ignore[attr-defined]

        def show(image: Any, title: Any = None, **options: Any) -> bool:
            """Shows a picture."""
            if not hasattr(image, "_repr_png_"):
                return bool(theirs(image, title, **options))
            self._display(image)
            return True

        module.show = show  # type: ignore[attr-defined]


def install(display: Callable[..., Any], clear_output: Callable[..., Any], getpass: Callable[..., str], ask: Callable[[bytes], bool], busy: Callable[[], bool]) -> Hook:
    """Waits for the imports. ask sends a frame, and busy says that none can be sent now."""

    def own_getpass(module: ModuleType) -> None:
        module.getpass = getpass  # type: ignore[attr-defined]

    shows, figures, plots, pictures = IPythonDisplay(display, clear_output), Figures(display), Plots(display), Pictures(display)
    comms = Comms(ask, busy, figures.show)
    hook = Hook({shows.module: shows.change, "getpass": own_getpass, figures.module: figures.change, plots.module: plots.change, pictures.module: pictures.change, **comms.changes()}, comms)
    sys.meta_path.insert(0, hook)  # type: ignore[arg-type]
    return hook
