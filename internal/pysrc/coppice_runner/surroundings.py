"""What a session has around it: its directory, its environment, the buffers of C,
and the processes that its cells fork."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Dict, Optional

from . import errors
from .callenv import CallEnv

_ENV = CallEnv()


def directory() -> str:
    """Returns the working directory, "" when it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def patch(request: Dict[str, Any]) -> None:
    """Applies the cwd and env of a request, and what is for its cell alone."""
    cwd = request.get("cwd")
    if cwd:
        os.chdir(cwd)
        if cwd in sys.path:
            sys.path.remove(cwd)
        sys.path.insert(0, cwd)
    for name, value in (request.get("env") or {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if request.get("call_env"):
        _ENV.enter(request["call_env"], bool(request.get("same_call")))


def following(lines: Any) -> Optional[bytes]:
    """Puts back what was for the last cell alone, and waits for the next request."""
    _ENV.leave()
    return lines.next()  # type: ignore[no-any-return]


def leave_fork(failed: Optional[BaseException]) -> None:
    """Ends a process that a cell forked and that came to the cell's end."""
    code = 0
    if errors.of(failed, SystemExit):
        code = failed.code if isinstance(failed.code, int) else int(failed.code is not None)
    elif failed is not None:
        os.write(2, "\n".join(errors.describe(failed)["traceback"]).encode("utf-8", "replace") + b"\n")
        code = 1
    os._exit(code & 0xFF)


def flush_libc() -> None:
    """Flushes the buffers of C's stdio. Only a process that has ctypes is asked
    to: importing it costs more than all else in a cell."""
    if "ctypes" not in sys.modules:
        return
    try:
        _libc_flush()(None)
    except (OSError, AttributeError, TypeError):
        pass


@functools.lru_cache(maxsize=None)
def _libc_flush() -> Any:
    return sys.modules["ctypes"].CDLL(None).fflush
