"""What a cell has printed and shown while something captured it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional


class Captured:
    """What %%capture took."""

    def __init__(self) -> None:
        self.texts: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        self.outputs: List[Dict[str, Any]] = []  # frames of displays
        self.outer: Optional[Captured] = None

    @property
    def stdout(self) -> str:
        """The text of stdout."""
        return "".join(self.texts["stdout"])

    @property
    def stderr(self) -> str:
        """The text of stderr."""
        return "".join(self.texts["stderr"])

    def __str__(self) -> str:
        return self.stdout

    def __repr__(self) -> str:
        return f"<{len(self.stdout)} characters of stdout, {len(self.stderr)} of stderr, {len(self.outputs)} displays>"
