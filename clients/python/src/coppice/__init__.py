"""Python sessions that stay alive: the client of ``coppice serve``.

    import coppice

    with coppice.Client() as client:
        with client.session("chat 7") as session:
            session.run("x = 40")
            print(session.run("x + 2").text)

:class:`Client` is for programs without an event loop, :class:`AsyncClient` has the same
methods for asyncio. Both depend on nothing but the standard library.
"""

from ._async import AsyncClient
from ._async_places import AsyncFiles, AsyncProcess, AsyncWorkspace
from ._async_session import AsyncSession
from ._errors import ConnectionLost, CoppiceError, ExecutionFailed, NoServer, ServerError
from ._places import Exit, File, Listing, ProcessEvent, ProcessFailed, ProcessInfo, ProcessResult, WorkspaceInfo
from ._saved import Changed, Lost, Memory, SavedCheckpoint
from ._sync import Client
from ._sync_places import Files, Process, Workspace
from ._sync_session import Session
from ._types import Cell, CellResult, Checkpoint, Event, Image, LimitExceeded, Result, SessionInfo

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncFiles",
    "AsyncProcess",
    "AsyncSession",
    "AsyncWorkspace",
    "Cell",
    "CellResult",
    "Changed",
    "Checkpoint",
    "Client",
    "ConnectionLost",
    "CoppiceError",
    "Event",
    "ExecutionFailed",
    "Exit",
    "File",
    "Files",
    "Image",
    "LimitExceeded",
    "Listing",
    "Lost",
    "Memory",
    "NoServer",
    "Process",
    "ProcessEvent",
    "ProcessFailed",
    "ProcessInfo",
    "ProcessResult",
    "Result",
    "SavedCheckpoint",
    "ServerError",
    "Session",
    "SessionInfo",
    "Workspace",
    "WorkspaceInfo",
]
