"""The environment, and commands."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from typing import Any, List, Optional, Union

from .docs import helper
from .status import emit, preview

_SECRET = re.compile(r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|COOKIE|AUTH|BEARER|[A-Z]*KEY|PAT|DSN)($|_)|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.I)

# How long an interrupted command has before it is killed, in seconds.
_GRACE = 2.0


@helper("Shell")
def env(key: Optional[str] = None, value: Optional[str] = None) -> Any:
    """Gets all variables of the environment, gets one, or sets one."""
    if key is None:
        found = dict(sorted(os.environ.items()))
        emit("env", count=len(found), keys=list(found)[:20])
        return found
    if value is not None:
        os.environ[key] = str(value)
        emit("env", key=key, value=_shown(key, str(value)), action="set")
        return str(value)
    got = os.environ.get(key)
    emit("env", key=key, value=_shown(key, got), action="get")
    return got


def _shown(key: str, value: Optional[str]) -> Optional[str]:
    """Returns the value as an event may show it: secrets stay in the process."""
    if value is None or not value:
        return value
    return "***" if _SECRET.search(key) else preview(value)


class ShellResult(subprocess.CompletedProcess):  # type: ignore[type-arg]
    """What a command came to. True when its exit code is 0."""

    @property
    def code(self) -> int:
        """The exit code."""
        return self.returncode

    @property
    def exit_code(self) -> int:
        """The exit code."""
        return self.returncode

    def __bool__(self) -> bool:
        return self.returncode == 0

    def __repr__(self) -> str:
        return "" if self.returncode == 0 else f"exit code {self.returncode}"


@helper("Shell")
def run(cmd: str, *, cwd: Union[str, "os.PathLike[str]", None] = None, timeout: Optional[float] = None) -> ShellResult:
    """Runs a shell command and returns its stdout, stderr and returncode."""
    shell = shutil.which("bash") or shutil.which("sh")
    if shell is None:
        raise RuntimeError("there is no shell: neither bash nor sh is on PATH")
    process = subprocess.Popen(
        [shell, "-c", cmd], cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8", errors="replace", start_new_session=hasattr(os, "setsid"),
    )
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        out, err = _end(process, 0)
        code = -9
    except BaseException:  # an interrupt ends the command, and then the cell
        _end(process, _GRACE)
        raise
    result = ShellResult(cmd, code, out, err)
    emit("sh", cmd=preview(cmd, 80), code=code, output=preview(out + err))
    return result


def _end(process: "subprocess.Popen[str]", grace: float) -> List[str]:
    """Ends a command with what it started, and returns what it printed."""
    if grace:
        _signal(process, signal.SIGINT)
        try:
            return list(process.communicate(timeout=grace))
        except subprocess.TimeoutExpired:
            pass
    _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    try:
        return list(process.communicate(timeout=_GRACE))
    except subprocess.TimeoutExpired:  # somebody who left the group holds its output
        return ["", ""]


def _signal(process: "subprocess.Popen[str]", number: int) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)
        else:
            process.kill()
    except OSError:
        pass
