"""Pack columns of numbers into a page: rounded, bytes sorted by weight, compressed, as text.

A packed column is base64 of gzip of its bytes, all first bytes of its numbers before all second ones: neighbours are
then alike, and compress well. The page undoes it with what every browser has.
"""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Packer", "round_bits", "as_script_text"]

_TYPES: dict[str, np.dtype[Any]] = {"f": np.dtype("<f4"), "i": np.dtype("<i4"), "b": np.dtype("i1")}


class Packer:
    """Collect columns and texts; give the bytes of all of them, and where each begins.

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
        """Add numbers: kind "f" (single precision), "i" (32 bit) or "b" (8 bit); bits of mantissa to keep."""
        array = np.ascontiguousarray(values, _TYPES[kind])
        if bits is not None:
            array = round_bits(array, bits)
        self.directory[name] = [kind, len(self._bytes), int(array.size)]
        planes = array.view(np.uint8).reshape(array.size, array.itemsize).T
        self._bytes += np.ascontiguousarray(planes).tobytes()

    def add_texts(self, name: str, texts: list[str]) -> None:
        """Add texts, each different one once."""
        distinct = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        self.add(f"{name}#", [distinct[text] for text in texts], "i")
        raw = json.dumps(list(distinct), ensure_ascii=False).encode()
        self.directory[name] = ["t", len(self._bytes), len(raw)]
        self._bytes += raw

    def text(self) -> str:
        """Give everything as base64."""
        return base64.b64encode(gzip.compress(bytes(self._bytes), 9, mtime=0)).decode()


def round_bits(values: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """Round to so many bits of mantissa (of 23), so that the bytes that are left compress.

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
    """Write JSON that may stand inside a <script> element, whatever names are in it.

    >>> "<" in as_script_text({"name": "</script><b>"})
    False
    """
    text = json.dumps(_without_nan(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _without_nan(data: Any) -> Any:
    """Put None where JSON has no word for a number."""
    if isinstance(data, dict):
        return {str(key): _without_nan(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_nan(value) for value in data]
    if isinstance(data, float | np.floating):
        return float(data) if np.isfinite(data) else None
    return int(data) if isinstance(data, np.integer) else data
