"""Helpers that every session has: short names for what agents do all day with
files, text and commands.

The package stands alone and needs the standard library only, so that any
interpreter can load it: the runner imports it before it forks sessions, a
Jupyter kernel gets its source as text. install() puts the helpers into a
namespace; everything else is found through them.

Each helper shows one status event when it is done: a display of the MIME type
application/x-<brand>-status whose value is {"op": name, ...}. A helper that
fails raises a plain Python exception, unless its documentation says otherwise.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from . import agent, files, flow, lines, modules, navigation, replace, search, shell, status, text
from .docs import describe, helpers

_MODULES = (shell, files, search, replace, text, navigation, lines, agent, flow)

# What a namespace calls the list of its helpers.
DOCS = "__prelude_docs__"


def install(namespace: Dict[str, Any], display: Callable[..., Any], mime: str) -> Dict[str, Any]:
    """Puts the helpers into a namespace and returns them. display is what shows
    a raw bundle there, mime the type of the status events."""
    status.attach(display, mime)
    found: Dict[str, Any] = {}
    for module in _MODULES:
        found.update(helpers(module))
    found[DOCS] = lambda: describe(namespace)
    modules.installed = found
    namespace.update(found)
    return found
