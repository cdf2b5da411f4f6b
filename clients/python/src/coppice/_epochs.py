"""In which epochs a client has seen the sessions of a fleet."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Dict, Mapping, Optional, Tuple

from ._errors import ServerError

#: What tells a session from all others: its name, directory, workspace and kernelspec.
Key = Tuple[str, Optional[str], str, str]

EPOCH = "Coppice-Epoch"

#: How many sessions are remembered. Whoever is forgotten learns what became of a session from its next result.
MOST = 10_000


class Epochs:
    """The epoch in which a client has seen each session last: so that what is sent again never
    begins twice, and code that counts on variables that are gone does not begin. It is that of
    the client, and not of an object that stands for a session: many do for one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[Key, int] = OrderedDict()

    def headers(self, session: Key) -> Dict[str, str]:
        """What a request says of it."""
        with self._lock:
            seen = self._seen.get(session)
        return {EPOCH: str(seen)} if seen else {}

    def saw(self, session: Key, epoch: object) -> None:
        """What an answer says of it; only those of a fleet do."""
        text = str(epoch)
        seen = int(text) if text.isascii() and text.isdigit() else 0
        if not seen:
            return
        with self._lock:
            self._seen[session] = seen
            self._seen.move_to_end(session)
            if len(self._seen) > MOST:
                self._seen.popitem(last=False)

    def forget(self, session: Key) -> None:
        """The session was ended by us: we know what is gone."""
        with self._lock:
            self._seen.pop(session, None)

    def goes_on(self, session: Key, sent: Mapping[str, str], e: ServerError) -> bool:
        """Whether to send a request anew that has said this: who has not seen the session has lost
        nothing. Others are told, once."""
        self.saw(session, e.epoch)
        return EPOCH not in sent and not e.repeated and e.code == "epoch_needed" and e.epoch > 0
