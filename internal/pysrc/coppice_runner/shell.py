"""Programs that magics run. What they print goes to the descriptors 1 and 2,
and so arrives as it is printed."""

from __future__ import annotations

import re
import subprocess
import time
from time import monotonic
from typing import Any, Dict, List, Optional, Sequence, Union

from . import processes
from .interrupts import Interrupts, calls_user

# How long a program that was interrupted has to end.
_GRACE = 0.5

# How soon what it has started since is interrupted too.
_AGAIN = 0.03

# How coarse the start times of processes are.
_PRECISION = 0.02

_BRACES = re.compile(r"\{\{([^{}]*)\}\}|\{([^{}\n]+)\}")
_DOLLAR = re.compile(r"\$(\$?)([^\W\d]\w*)")


class Lines(List[str]):
    """The lines that a program printed."""

    returncode = 0

    @property
    def l(self) -> List[str]:  # noqa: E743, the name that notebooks use
        """The lines as a list."""
        return list(self)

    @property
    def n(self) -> str:
        """The lines as one text."""
        return "\n".join(self)

    @property
    def s(self) -> str:
        """The lines as words."""
        return " ".join(self)


def run(command: Union[str, Sequence[str]], interrupts: Interrupts, stdin: Optional[str] = None, env: Optional[Dict[str, str]] = None) -> int:
    """Runs a program, a text by the shell, and returns its exit code."""
    begin = monotonic()
    process = subprocess.Popen(command, shell=isinstance(command, str), stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE, env=env, text=True, errors="replace")
    _finish(process, interrupts, stdin, begin)
    return process.returncode


def capture(command: Union[str, Sequence[str]], interrupts: Interrupts) -> Lines:
    """Runs a program and returns what it wrote to stdout."""
    begin = monotonic()
    process = subprocess.Popen(command, shell=isinstance(command, str), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    lines = Lines((_finish(process, interrupts, None, begin) or "").splitlines())
    lines.returncode = process.returncode
    return lines


def _finish(process: "subprocess.Popen[str]", interrupts: Interrupts, stdin: Optional[str], begin: float) -> Optional[str]:
    """Waits for a program. When the cell is interrupted, the program was too;
    it and what it started are killed when they do not end."""
    try:
        return _communicate(process, stdin)
    except BaseException:
        try:
            _await_end(process, interrupts)
            _end_strays(begin)
        except BaseException:  # a second interrupt is no reason to leave it behind
            running = [process.pid, *processes.descendants_of(process.pid)]
            for pid in running:
                processes.kill(pid)
            process.wait()
            _await_gone(running)
        raise


def _await_end(process: "subprocess.Popen[str]", interrupts: Interrupts) -> None:
    """Waits for the end of a program that was interrupted, for a while. A shell that
    the interrupt found just before it ran another program heeds it when that one
    has ended, which was not there yet to be interrupted. Time in which one of them
    waits for a processor does not count against it."""
    over, states = monotonic() + _GRACE, set()
    while True:
        running = [process.pid, *processes.descendants_of(process.pid)]
        interrupts.tell(running)
        try:
            process.wait(_AGAIN)
            return
        except subprocess.TimeoutExpired:
            before, states = states, processes.runnable(running)
            if monotonic() >= over and not before & states:
                raise


def _end_strays(begin: float) -> None:
    """Ends what a shell was just about to run when the interrupt ended it: its
    child was not there yet when the interrupt was sent, and has lost its parent."""
    strays = processes.strays_since(begin - _PRECISION)
    for pid in strays:
        processes.interrupt(pid)
    strays = _await_gone(strays)
    for pid in strays:
        processes.kill(pid)
    _await_gone(strays)


def _await_gone(pids: List[int]) -> List[int]:
    """Waits for the end of processes that were asked to end, for a while, and returns
    those that live: even one that was killed ends only when it gets a processor."""
    over = monotonic() + _GRACE
    while True:
        pids = processes.living(pids)
        if not pids or monotonic() >= over:
            return pids
        time.sleep(0.005)


@calls_user
def _communicate(process: "subprocess.Popen[str]", stdin: Optional[str]) -> Optional[str]:
    return process.communicate(stdin)[0]


def expand(command: str, namespace: Dict[str, Any]) -> str:
    """Puts values of the namespace into a command: {expression}, and $name when
    there is such a name. What does not evaluate is the shell's, and {{ }} and
    $$ keep it so."""

    def braces(match: "re.Match[str]") -> str:
        if match.group(1) is not None:
            return "{" + match.group(1) + "}"
        try:
            return str(_evaluate(match.group(2), namespace))
        except Exception:  # not ours then
            return match.group(0)

    def dollar(match: "re.Match[str]") -> str:
        escaped, name = match.groups()
        if name in namespace and not name.startswith("__"):
            return "$" + name if escaped else str(namespace[name])
        return match.group(0)

    return _DOLLAR.sub(dollar, _BRACES.sub(braces, command))


@calls_user
def _evaluate(expression: str, namespace: Dict[str, Any]) -> Any:
    return eval(expression, namespace)
