"""The requests by which a session's memory outlives its process: it is written to a
file of the host's, and another session takes it over from there. freeze and rebuild
do the work; they are brought in when they are asked for."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import types
from typing import Any, Dict

from . import copies


def bring(name: str) -> Any:
    """Returns a module of this package that is not there from the beginning."""
    package, full = sys.modules[__package__], f"{__package__}.{name}"
    late, names, execute = getattr(package, "late", ({}, None, None))
    if full in sys.modules or full not in late:
        return importlib.import_module(full)
    module = types.ModuleType(full)
    module.__package__, module.__spec__ = __package__, importlib.machinery.ModuleSpec(full, None, origin=late[full])
    module.__dict__["__builtins__"] = names
    execute(full, module)
    sys.modules[full] = module
    setattr(package, name, module)
    return module


def freeze(session: Any, ident: int, request: Dict[str, Any]) -> None:
    """Writes what the session has in memory to a file of the host's."""
    bring("rebuild")
    write = bring("freeze").freeze
    session._send({"type": "forking", "id": ident})
    fd = copies.receive_one(session._main)
    try:
        image = write(session, fd, request.get("names") or [], bool(request.get("apart")), session.running, bool(request.get("whole")))
    except OSError as err:  # of the file, as on a disk that is full: what the user's objects raise is of their names
        session._send({"type": "refused", "id": ident, "name": "failed", "message": err.strerror or str(err)})
        return
    finally:
        os.close(fd)
    session._send({"type": "frozen", "id": ident, "args": image})


def thaw(session: Any, ident: int, request: Dict[str, Any]) -> None:
    """Takes over what another session had in memory, from a file of the host's."""
    rebuild = bring("rebuild")
    manifest = request["args"]
    why = "it was written by a kernel of IPython, and this is a session of the runner" if manifest.get("kernel") else rebuild.unlike(manifest)
    if why:
        session._send({"type": "refused", "id": ident, "name": "unlike", "message": why})
        return
    session._send({"type": "forking", "id": ident})
    fd = copies.receive_one(session._main)
    try:
        came = rebuild.thaw(session, fd, manifest)
    except BaseException as err:  # whatever the user's objects raise when they are made
        session._send({"type": "refused", "id": ident, "name": "failed", "message": f"{type(err).__name__}: {err}"[:1000]})
        return
    finally:
        os.close(fd)
    session._restore()
    session._send({"type": "thawed", "id": ident, "args": came})


REQUESTS = {"freeze": freeze, "thaw": thaw}
