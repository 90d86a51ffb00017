"""Pack columns of numbers into a page: rounded, grouped by byte, compressed, as text.

A packed column holds the first bytes of all its numbers, then all second bytes, and so on: neighbours are similar and
compress well. All columns together are gzip in base64, which every browser can decode.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_TYPES: dict[str, np.dtype[Any]] = {"f": np.dtype("<f4"), "i": np.dtype("<i4"), "b": np.dtype("i1")}


class Packer:
    """Collect columns and texts; `directory` has the position of each in the bytes of all.

    >>> packer = Packer()
    >>> packer.add("x", [1.0, 2.0], "f"), packer.add("arm", [0, 1, 1], "b")
    (None, None)
    >>> packer.directory
    {'x': ['f', 0, 2], 'arm': ['b', 8, 3]}
    """

    def __init__(self) -> None:
        self.directory: dict[str, list[Any]] = {}  # name -> type, first byte, numbers
        self._bytes = bytearray()

    def add(self, name: str, values: ArrayLike, kind: str, *, bits: int | None = None) -> None:
        """Add numbers of kind "f" (float32), "i" (int32) or "b" (int8); `bits` of the mantissa are kept."""
        array = np.ascontiguousarray(values, _TYPES[kind])
        if bits is not None:
            array = round_bits(array, bits)
        self.directory[name] = [kind, len(self._bytes), int(array.size)]
        planes = array.view(np.uint8).reshape(array.size, array.itemsize).T
        self._bytes += np.ascontiguousarray(planes).tobytes()

    def add_texts(self, name: str, texts: list[str]) -> None:
        """Add texts; each distinct one is stored once."""
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        self.add(f"{name}#", [distinct[text] for text in texts], "i")
        raw = json.dumps(list(distinct), ensure_ascii=False).encode()
        self.directory[name] = ["t", len(self._bytes), len(raw)]
        self._bytes += raw

    def text(self) -> str:
        """Return all columns as base64."""
        return base64.b64encode(gzip.compress(bytes(self._bytes), 9, mtime=0)).decode()


def round_bits(values: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """Round to this many bits of the mantissa (of 23), so that the bytes compress.

    >>> round_bits(np.array([3.14159265], np.float32), 10)
    array([3.140625], dtype=float32)
    """
    drop = 23 - bits
    words = values.view(np.uint32).copy()
    finite = np.isfinite(values)
    words[finite] += np.uint32(1 << (drop - 1))
    words[finite] &= np.uint32((0xFFFFFFFF << drop) & 0xFFFFFFFF)
    return words.view(np.float32)


def as_script_text(data: Any) -> str:
    """Return JSON that is safe inside a <script> element for any text; dataclasses become objects.

    >>> "<" in as_script_text({"name": "</script><b>"})
    False
    """
    text = json.dumps(_plain(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _plain(data: Any) -> Any:
    """Return JSON data; NaN and infinity, which JSON lacks, become None."""
    if is_dataclass(data):
        return {part.name: _plain(getattr(data, part.name)) for part in fields(data)}
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if isinstance(data, float | np.floating):
        return float(data) if np.isfinite(data) else None
    return int(data) if isinstance(data, np.integer) else data
