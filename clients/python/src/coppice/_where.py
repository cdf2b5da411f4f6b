"""Where the server of a client is, and where it is after it was started again."""

from __future__ import annotations

import os
import ssl
from functools import cached_property
from typing import Optional

from ._errors import NoServer
from ._find import read, record_path
from ._wire import Address


def _token(url: str, token: Optional[str]) -> str:
    """The token of a server that was named; "" is for one that wants none."""
    found = os.environ.get("COPPICE_TOKEN") if token is None else token
    if found is None:
        raise ValueError(f"the server at {url} wants a token: give token=..., or set COPPICE_TOKEN; its user finds it in ~/.coppice/serve.json")
    return found


class Where:
    """Where a server is: where its user says, or where the record of servers says."""

    def __init__(self, url: Optional[str], token: Optional[str], home: Optional[str]) -> None:
        self._record = record_path(home) if url is None else None
        #: Where it is now. It is replaced as a whole, so that a token goes nowhere but to its own address.
        self.at = Address(*read(self._record)) if self._record else Address(url or "", _token(url or "", token))

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """How it is known, where it has a certificate."""
        return ssl.create_default_context()

    def look(self) -> None:
        """Look at the record again. While no server runs, nothing changes: the next one may be about to come."""
        if self._record is None:
            return
        try:
            self.at = Address(*read(self._record))
        except (NoServer, ValueError):
            pass

    def moved(self, at: Address) -> bool:
        """Whether a server that could not be reached, or does not take the token, is elsewhere by now."""
        self.look()
        return self.at != at
