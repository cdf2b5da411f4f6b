"""The wall between the sessions of one fork server, which are under the same rules: a set
of Landlock's rules for each, by which it signals and traces only what it has started, and
reaches no abstract socket of another.

A process makes it itself, after the fork. What that takes is loaded before, once for all.
"""

from __future__ import annotations

import os
from typing import Callable, Optional

# The calls have the same numbers on all architectures.
_CREATE_RULESET, _RESTRICT_SELF = 444, 446


def wall(scopes: int) -> Optional[Callable[[], None]]:
    """Returns what a session calls to wall itself off by these bits of Landlock. None:
    there are no bits."""
    if not scopes:
        return None
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    rules = (ctypes.c_uint64 * 3)(0, 0, scopes)  # of files, of ports, scopes
    create, restrict = ctypes.c_long(_CREATE_RULESET), ctypes.c_long(_RESTRICT_SELF)
    size, none = ctypes.c_size_t(ctypes.sizeof(rules)), ctypes.c_long(0)

    def build() -> None:
        fd = call(create, rules, size, none)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "make a set of rules")
        try:
            if call(restrict, ctypes.c_long(fd), none) < 0:
                raise OSError(ctypes.get_errno(), "restrict the process")
        finally:
            os.close(fd)

    return build
