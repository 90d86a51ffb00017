"""Make the bytes of a safetensors file depend on its content alone: the library writes metadata in arbitrary order."""

from __future__ import annotations

import json


def ordered_bytes(data: bytes) -> bytes:
    """Return the bytes of a safetensors file with its header in alphabetical order."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:start]), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[start:]
