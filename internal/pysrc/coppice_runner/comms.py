"""Comms: what objects of a session, widgets above all, and their counterparts in a
frontend say to each other.

The packages comm and ipywidgets leave it to a kernel to carry that. Here they are
changed when code imports them: what an object says becomes a frame, and what its
counterpart says comes as code of the host, which gives it to the manager of comms.
"""

from __future__ import annotations

import base64
import sys
import threading
from collections import deque
from types import ModuleType, SimpleNamespace
from typing import Any, Callable, Deque, Dict, Optional, Sequence

from . import errors
from .wire import encode

# What stands in a message for the request that is served: its sender knows what it is.
REQUEST = "coppice:request"

# How many messages are kept of those that were said between the cells.
_MAX_KEPT = 256

_ACTIONS = {"comm_open": "open", "comm_msg": "update", "comm_close": "close"}


class Comms:
    """The comms of a session. Any thread may say something, and so may finalisers."""

    def __init__(self, ask: Callable[[bytes], bool], busy: Callable[[], bool], show_figures: Callable[..., None]) -> None:
        self._ask, self._busy = ask, busy
        self._show_figures = show_figures
        self._manager: Any = None
        self._kept: Deque[bytes] = deque(maxlen=_MAX_KEPT)
        self._turn = threading.Lock()  # of who sends
        self._shell = SimpleNamespace(kernel=SimpleNamespace(get_parent=_parent), showtraceback=_show_traceback)

    def changes(self) -> Dict[str, Callable[[ModuleType], None]]:
        """Returns what to change in which module."""
        widgets = {f"ipywidgets.widgets.{name}": self._give_shell for name in ("widget", "widget_output")}
        return {
            "comm": self._carry,
            "ipykernel.ipkernel": lambda _: self._carry(sys.modules["comm"]),
            "ipywidgets": lambda module: module.register_comm_target(),
            "ipywidgets.widgets.interaction": self._interact,
            **widgets,
        }

    def begin(self) -> None:
        """Sends what was said between the cells. A cell has begun."""
        if self._kept:
            self._flush()

    def say(self, kind: str, ident: str, data: Any, metadata: Any, buffers: Optional[Sequence[Any]], target: str) -> None:
        """Sends a message."""
        frame: Dict[str, Any] = {"type": "comm", "comm": ident, "action": _ACTIONS[kind], "content": {} if data is None else data}
        if target:
            frame["target"] = target
        if metadata:
            frame["metadata"] = metadata
        if buffers:
            frame["buffers"] = [base64.b64encode(memoryview(b).tobytes()).decode() for b in buffers]
        self._kept.append(encode(frame))
        self._flush()

    def _flush(self) -> None:
        # A finaliser can come in the middle of a send: what it says waits for the next one.
        while self._kept and not self._busy() and self._turn.acquire(False):
            try:
                if not self._send_one():
                    return
            finally:
                self._turn.release()

    def _send_one(self) -> bool:
        try:
            line = self._kept.popleft()
        except IndexError:
            return False  # it was dropped for newer ones
        sent = False
        try:
            sent = self._ask(line)
        finally:
            if not sent and len(self._kept) < _MAX_KEPT:
                self._kept.appendleft(line)
        return sent

    def _carry(self, module: ModuleType) -> None:
        """Has the package comm say things here."""
        from comm.base_comm import BaseComm, CommManager

        say = self.say

        class Comm(BaseComm):  # type: ignore[misc]
            """One object's way to its counterpart."""

            def publish_msg(self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any) -> None:
                say(msg_type, self.comm_id, data, metadata, buffers, keys.get("target_name") or "")

            def __reduce__(self) -> Any:
                raise TypeError("a comm leads to the frontends of one process")

        if self._manager is None:
            self._manager = CommManager()
        module.create_comm = Comm  # type: ignore[attr-defined]
        module.get_comm_manager = lambda: self._manager  # type: ignore[attr-defined]

    def _give_shell(self, module: ModuleType) -> None:
        """Answers what widgets ask IPython's shell: which request is served, and to show
        why a callback failed."""
        module.get_ipython = lambda: self._shell  # type: ignore[attr-defined]

    def _interact(self, module: ModuleType) -> None:
        self._give_shell(module)
        module.show_inline_matplotlib_plots = self._show_figures  # type: ignore[attr-defined]


def _parent() -> Dict[str, Any]:
    return {"header": {"msg_id": REQUEST}}


def _show_traceback(raised: Any = None, **_: Any) -> None:
    """Prints an exception that nobody has caught, as cells print theirs."""
    failed = (raised or sys.exc_info())[1]
    if failed is not None:
        sys.stderr.write("\n".join(errors.describe(failed)["traceback"]) + "\n")
