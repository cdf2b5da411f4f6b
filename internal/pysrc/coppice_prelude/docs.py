"""What marks a function as a helper, and the list of a namespace's helpers."""

from __future__ import annotations

from types import ModuleType
from typing import Any, Callable, Dict, List, TypeVar

# The attribute that makes a function a helper. A module of the user's may set it
# on functions of its own, to have them in the list.
CATEGORY = "__prelude_category__"

F = TypeVar("F", bound=Callable[..., Any])


def helper(category: str) -> Callable[[F], F]:
    """Marks a function as a helper of a category."""

    def mark(function: F) -> F:
        setattr(function, CATEGORY, category)
        return function

    return mark


def helpers(module: ModuleType) -> Dict[str, Any]:
    """Returns the helpers that a module defines."""
    return {name: value for name, value in vars(module).items() if _category(value) and value.__module__ == module.__name__}


def _category(value: Any) -> str:
    try:
        found = vars(value).get(CATEGORY, "") if callable(value) else ""
    except TypeError:  # it has no attributes of its own
        return ""
    return found if isinstance(found, str) else ""


def _signature(function: Any) -> str:
    """Returns the signature without its types: a reader wants the names."""
    import inspect  # here: it takes long, and most sessions need it not

    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in found.parameters.values()]
    return str(found.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def describe(namespace: Dict[str, Any]) -> List[Dict[str, str]]:
    """Lists the helpers of a namespace: name, signature, the first line of the
    documentation, category; by category, then by name."""
    import inspect

    found = []
    for name, value in list(namespace.items()):
        category = _category(value)
        if not category or name.startswith("_"):
            continue
        text = (inspect.getdoc(value) or "").strip().partition("\n\n")[0]
        found.append({"name": name, "signature": _signature(value), "docstring": " ".join(text.split()), "category": category})
    return sorted(found, key=lambda one: (one["category"], one["name"]))
