"""The environment of one call: variables that are there while its cells run, and are
put back after each of them. It needs nothing else of the package, so that an
interpreter of another kind can use it."""

from __future__ import annotations

import os
from typing import Dict, List, Optional

# Code may put another mapping in the place of os.environ.
_ENVIRON = os.environ


class CallEnv:
    """The variables of the call whose cell runs, or of the last one. Between its cells
    nothing of them is there; what the code of one makes of them, the next one finds."""

    def __init__(self) -> None:
        self._before: Optional[Dict[str, Optional[str]]] = None  # None: no cell with variables runs
        self._left: Dict[str, Optional[str]] = {}  # what the last cell has left of them

    def enter(self, wanted: Dict[str, str], again: bool) -> None:
        """Sets variables. again says that another cell of the same call had them."""
        self.leave()
        before = {name: _value(name) for name in wanted}
        self._before = before  # from here on leave puts them back, however far the rest comes
        for name, value in wanted.items():
            _set(name, self._left.get(name) if again and name in self._left else value)

    def leave(self) -> None:
        """Puts back what was there before enter. A second call does nothing; one that was
        interrupted can be made again."""
        before = self._before
        if before is None:
            return
        left = {name: _value(name) for name in before}
        for name, value in before.items():
            _set(name, value)
        self._left, self._before = left, None


def _mappings() -> List[Dict[str, str]]:
    now = os.environ
    if now is not _ENVIRON and type(now) in (dict, type(_ENVIRON)):
        return [_ENVIRON, now]  # type: ignore[list-item]
    return [_ENVIRON]  # type: ignore[list-item]


def _value(name: str) -> Optional[str]:
    return _mappings()[-1].get(name)


def _set(name: str, value: Optional[str]) -> None:
    for mapping in _mappings():
        if value is None:
            mapping.pop(name, None)
        else:
            mapping[name] = value
    if value is None:
        os.unsetenv(name)  # also what os.putenv has set, of which no mapping knows
