"""Files: reading and writing them, and moving them about."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Optional, Union

from .docs import helper
from .status import emit, preview

Name = Union[str, "os.PathLike[str]"]

# The variable that says where names with a scheme are: {"local": "/folder"}.
_ROOTS = "PI_EVAL_LOCAL_ROOTS"


def locate(path: Name) -> Path:
    """Returns the file that a name stands for: ~ is the home folder, and
    scheme://x is below that scheme's root."""
    name = os.fspath(path)
    scheme, found, rest = name.partition("://")
    if not found or not scheme.isidentifier():
        return Path(name).expanduser()
    try:
        root = json.loads(os.environ.get(_ROOTS) or "{}")[scheme]
    except (KeyError, ValueError, TypeError):
        raise ValueError(f"{name}: there is no root for {scheme}://") from None
    if Path(rest).is_absolute() or ".." in Path(rest).parts:
        raise ValueError(f"{name}: the path leaves the root of {scheme}://")
    return Path(root) / rest


def load(path: Path) -> str:
    """Reads a text. Its line ends stay as they are."""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def save(path: Path, content: str) -> None:
    """Writes a text as it is."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(content)


@helper("File I/O")
def read(path: Name, offset: int = 1, limit: Optional[int] = None) -> str:
    """Reads a text file, or limit lines of it from line offset on (from 1)."""
    if offset < 1:
        raise ValueError("offset counts lines from 1")
    file = locate(path)
    content = load(file)
    if offset > 1 or limit is not None:
        parts = content.splitlines(True)
        content = "".join(parts[offset - 1 : None if limit is None else offset - 1 + max(limit, 0)])
    emit("read", path=str(file), chars=len(content), preview=preview(content))
    return content


@helper("File I/O")
def write(path: Name, content: str) -> Path:
    """Writes a text file. Missing folders are made."""
    file = locate(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    save(file, content)
    emit("write", path=str(file), chars=len(content))
    return file


@helper("File I/O")
def append(path: Name, content: str) -> Path:
    """Adds text at the end of a file. Missing folders are made."""
    file = locate(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a", encoding="utf-8", newline="") as out:
        out.write(content)
    emit("append", path=str(file), chars=len(content))
    return file


@helper("File ops")
def rm(path: Name, *, recursive: bool = False) -> None:
    """Removes a file; a folder needs recursive=True. A missing path is not an
    error; the status event says so."""
    file = locate(path)
    if file.is_dir() and not file.is_symlink():
        if not recursive:
            emit("rm", path=str(file), error="directory, use recursive=True")
            return
        shutil.rmtree(file)
        emit("rm", path=str(file), recursive=True)
        return
    try:
        file.unlink()
    except FileNotFoundError:
        emit("rm", path=str(file), error="missing")
        return
    emit("rm", path=str(file))


@helper("File ops")
def mv(src: Name, dst: Name) -> Path:
    """Moves or renames a file or a folder. Missing folders above the new place are
    made."""
    old, new = locate(src), locate(dst)
    new.parent.mkdir(parents=True, exist_ok=True)
    new = Path(shutil.move(str(old), str(new)))
    emit("mv", src=str(old), dst=str(new))
    return new


@helper("File ops")
def cp(src: Name, dst: Name) -> Path:
    """Copies a file, or a folder with what is in it into another."""
    old, new = locate(src), locate(dst)
    new.parent.mkdir(parents=True, exist_ok=True)
    if old.is_dir():
        shutil.copytree(old, new, dirs_exist_ok=True)
    else:
        new = Path(shutil.copy2(old, new))
    emit("cp", src=str(old), dst=str(new))
    return new
