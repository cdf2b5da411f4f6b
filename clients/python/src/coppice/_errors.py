"""What can go wrong between a program and its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._types import Result


def said(error: BaseException) -> str:
    """What an error says; its name, when it says nothing."""
    return str(error) or type(error).__name__


class CoppiceError(Exception):
    """The base of all errors of this package."""


class NoServer(CoppiceError):
    """No server runs for this user, or what tells of it cannot be trusted: a record, or a certificate."""


class ConnectionLost(CoppiceError):
    """The server could not be reached, or said nothing, for as long as patience lasts.

    Code that it had been given may run on, and may have run.
    """


class ServerError(CoppiceError):
    """The server says no."""

    def __init__(self, status: int, code: str, message: str, hint: str = "", epoch: int = 0) -> None:
        # One word is for programs, and no next step: busy, off, lossy, exists, threads.
        super().__init__(f"{message}; {hint}" if " " in hint else message)
        #: The HTTP status.
        self.status = status
        #: For programs: ``not_found``, ``bad_request``, ``overloaded``, …; ``lost``: what became
        #: of the code is not known, and it was not sent a second time.
        self.code = code
        #: What is the matter.
        self.message = message
        #: The next step, or one word that says what is in the way; "" when there is nothing to say.
        self.hint = hint
        #: The epoch that a session of a fleet is in, with ``epoch_gone`` and
        #: ``epoch_needed``; else 0.
        self.epoch = epoch
        #: Whether the request had been sent before, with nothing known of that.
        self.repeated = False


class ExecutionFailed(CoppiceError):
    """A call did not end well; raised by ``Result.raise_for_outcome``."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.text or result.outcome)
        #: The result of the call.
        self.result = result
