"""Whether a server is in reach: how long it may say nothing, and what no patience mends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from typing import Callable, Optional, Tuple

from ._errors import NoServer

#: How long a server may be out of reach, and after how long without a sign of life a
#: stream is taken for broken: the server gives one every 15 s. Seconds.
PATIENCE = 30.0
SILENCE = 45.0
ALIVE = 15.0
#: How long one answer may take at a server that is in reach; those that wait at the server wait less.
ANSWER = 120.0
#: The least that an answer is waited for: less patience is for tries, not for a machine that is busy.
LEAST = 1.0


class Reach:
    """How long a server may say nothing before it counts as out of reach, in seconds."""

    def __init__(self, patience: float) -> None:
        #: Until an answer that is there at once; without patience nothing is tried again, but an answer is waited for.
        self.answer = min(max(patience, LEAST), ANSWER) if patience > 0 else PATIENCE
        #: In a stream. What is taken for broken too early is only connected again.
        self.silence = min(SILENCE, ALIVE + self.answer)
        #: After how long without an answer that may take its time the server is asked how it is, and from then on how often.
        self.ask = self.answer / 8, self.answer / 2

    def limit(self, method: str, waits: bool) -> Optional[float]:
        """How long a server may say nothing before it answers; None: for as long as it answers others."""
        return self.answer if method == "GET" and not waits else None


class Lookout:
    """Ends a request that may take its time when its server is out of reach meanwhile: it breaks its connection."""

    def __init__(self, alive: Callable[[], object], ask: Tuple[float, float]) -> None:
        self._alive, self._ask = alive, ask
        self._over = threading.Event()
        self._sock: Optional[socket.socket] = None
        #: Why the server counts as out of reach; None: it does not.
        self.failed: Optional[Exception] = None

    def __enter__(self) -> Lookout:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def watch(self, sock: socket.socket) -> None:
        """The request goes over this connection."""
        first, self._sock = self._sock is None, sock
        if first:
            threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        wait, every = self._ask
        while not self._over.wait(wait):
            wait = every
            try:
                self._alive()
            except Exception as e:
                if not silent(e):
                    continue
                if not self._over.is_set() and self._sock:
                    self.failed = e
                    with contextlib.suppress(OSError):
                        socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # that of ssl's would pull TLS from under its reader
                return


def silent(error: BaseException) -> bool:
    """Whether an error is that a server said nothing. One that takes no connections any more may be
    about to end, and answers before it does what it was asked."""
    late = (TimeoutError, socket.timeout, asyncio.TimeoutError)
    return isinstance(error, late) or isinstance(error.__cause__, late)


def untrusted(error: BaseException, where: str) -> Optional[NoServer]:
    """What it means that a connection could not be made, where trying again does not help."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return NoServer(f"the certificate of {where} is not trusted: {error.verify_message}; to trust an authority of your own, name the file of its certificate in SSL_CERT_FILE")
    # One that ends the connection in the middle may be about to end itself.
    if isinstance(error, ssl.SSLError) and not isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, TimeoutError, socket.timeout)):
        return NoServer(f"{where} does not speak TLS as it should: {error.reason or error}; is it http in place of https?")
    return None
