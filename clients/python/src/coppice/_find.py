"""Where the server of this user is."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Optional, Tuple

from ._errors import NoServer

# A record is a small file.
MOST = 1 << 20


def record_path(home: Optional[str] = None) -> Path:
    """The file that a server leaves for the programs of its user."""
    base = home or os.environ.get("COPPICE_HOME") or str(Path.home())
    return Path(base) / ".coppice" / "serve.json"


def read(path: Path) -> Tuple[str, str, str]:
    """The address, the token and the Unix socket ("": none) of the server that runs, by its record."""
    try:
        with path.open("rb") as f:
            mode = os.fstat(f.fileno()).st_mode
            text = f.read(MOST + 1)
    except FileNotFoundError:
        raise NoServer("no coppice serve runs; start it in another terminal, or name url and token") from None
    except OSError as e:
        raise NoServer(f"{path} cannot be read: {e}") from e
    if sys.platform != "win32" and mode & 0o077:
        raise NoServer(f"{path} can be read by others: end the server, remove the file, and start it again")
    try:
        record = json.loads(text) if len(text) <= MOST else None
        url, token = str(record["url"]), str(record["token"])  # type: ignore[index]
        pid, start = int(record["pid"]), str(record.get("start", ""))  # type: ignore[index, union-attr]
        socket = str(record.get("socket", ""))  # type: ignore[union-attr]
    except (ValueError, TypeError, KeyError):
        raise NoServer(f"{path} is not the record of a server; remove it if none runs") from None
    if not runs(pid, start):
        raise NoServer(f"no coppice serve runs: process {pid} of {path} has ended; start it again")
    return url, token, socket


def runs(pid: int, start: str) -> bool:
    """Whether the process that wrote a record runs.

    On Linux, start tells it from another one that has its number now. Elsewhere a
    process with its number is taken for it: the server has to answer.
    """
    if pid <= 0:
        return False
    if sys.platform == "linux" and start:
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            return False
        ended = stat[0] == b"X" or stat[0] == b"Z" and int(stat[17]) <= 1  # its first thread may end before others
        return not ended and f"{stat[19].decode()}@{boot}" == start
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
