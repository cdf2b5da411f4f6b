"""The framing v1.kernel.websocket.jupyter.org: offsets, then parts one after the other."""

from __future__ import annotations

import struct
from typing import List, Sequence, Tuple

PROTOCOL = "v1.kernel.websocket.jupyter.org"


def encode(channel: str, parts: Sequence[bytes]) -> bytes:
    """Returns one frame: of a channel, with header, parent header, metadata, content and buffers."""
    whole = [channel.encode(), *(bytes(p) for p in parts)]
    at = 8 * (len(whole) + 2)
    offsets = [at]
    for part in whole:
        at += len(part)
        offsets.append(at)
    return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(whole)


def decode(frame: bytes) -> Tuple[str, List[bytes]]:
    """Returns what encode was given. It raises ValueError for what is no frame."""
    try:
        (count,) = struct.unpack_from("<Q", frame)
        if not 6 <= count <= len(frame) // 8:
            raise ValueError("the frame has no parts")
        offsets = struct.unpack_from(f"<{count}Q", frame, 8)
    except struct.error as err:
        raise ValueError(f"the frame is cut off: {err}") from None
    if offsets[0] < 8 * (count + 1) or list(offsets) != sorted(offsets) or offsets[-1] > len(frame):
        raise ValueError("the parts of the frame are not one after the other")
    parts = [frame[a:b] for a, b in zip(offsets, offsets[1:])]
    return parts[0].decode(), parts[1:]
