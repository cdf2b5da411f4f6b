"""Python sessions that stay alive: the client of ``coppice serve``.

    import coppice

    with coppice.Client() as client:
        with client.session("chat 7") as session:
            session.run("x = 40")
            print(session.run("x + 2").text)

:class:`Client` is for programs without an event loop, :class:`AsyncClient` has the same
methods for asyncio. Both depend on nothing but the standard library.
"""

from ._async import AsyncClient, AsyncSession
from ._errors import ConnectionLost, CoppiceError, ExecutionFailed, NoServer, ServerError
from ._sync import Client, Session
from ._types import Cell, CellResult, Event, Image, Result, SessionInfo

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncSession",
    "Cell",
    "CellResult",
    "Client",
    "ConnectionLost",
    "CoppiceError",
    "Event",
    "ExecutionFailed",
    "Image",
    "NoServer",
    "Result",
    "ServerError",
    "Session",
    "SessionInfo",
]
