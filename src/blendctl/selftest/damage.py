"""Damage real files in many ways: bytes, lengths, and the values of JSON inside."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

ODD_VALUES: list[Any] = [
    None, True, -1, 0, 1, 17, -(2**31), 2**31, 2**63, 10**30, 1e308, -0.5, 1e-320, "", "x", "\ud800", [], [[]], {},
    [1, 2], {"x": {}}, [None], "reward", [0] * 50,
]  # fmt: skip


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes with one to four random changes."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(changed) + 1))
        # The start and the end of a file hold its structure.
        at = int(rng.choice([at, min(at, int(rng.integers(200))), max(0, len(changed) - int(rng.integers(1, 400)))]))
        at = min(at, len(changed))
        match rng.integers(6):
            case 0:
                changed[at : at + 1] = bytes([rng.integers(256)])
            case 1 if at < len(changed):
                changed[at] ^= 1 << int(rng.integers(8))
            case 2:
                del changed[at : at + int(rng.integers(1, 64))]
            case 3:
                source = int(rng.integers(len(changed) + 1))
                changed[at:at] = changed[source : source + int(rng.integers(1, 64))]
            case 4:
                changed[at : at + 8] = int(rng.choice([0, 1, 2**31 - 1, 2**32, 2**62])).to_bytes(8, "little")
            case 5:
                del changed[at:]
    return bytes(changed)


def odd_json(text: str, rng: np.random.Generator) -> str:
    """Return JSON with one to three values replaced, removed or doubled."""
    data = json.loads(text)
    for _ in range(rng.integers(1, 4)):
        data = _odd(data, rng)
    return json.dumps(data)


def _odd(data: Any, rng: np.random.Generator) -> Any:
    keys: list[Any] = list(data) if isinstance(data, dict) else list(range(len(data))) if isinstance(data, list) else []
    if not keys or rng.random() < 0.05:
        return _odd_value(rng)
    key = keys[rng.integers(len(keys))]
    if rng.random() < 0.15:
        del data[key]
    elif rng.random() < 0.6:
        data[key] = _odd(data[key], rng)
    else:
        data[key] = _odd_value(rng)
    return data


def _odd_value(rng: np.random.Generator) -> Any:
    return copy.deepcopy(ODD_VALUES[rng.integers(len(ODD_VALUES))])  # later changes must not affect the list


def odd_tensor_header(data: bytes, rng: np.random.Generator) -> bytes | None:
    """Return a safetensors file with odd values in blendctl's own header, without its digest; None if it has none."""
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    own = header["__metadata__"].get("blendctl", "")
    if not own.startswith("{"):
        return None
    values = {key: value for key, value in json.loads(own).items() if key != "digest"}
    header["__metadata__"]["blendctl"] = odd_json(json.dumps(values), rng)
    changed = json.dumps(header).encode()
    return len(changed).to_bytes(8, "little") + changed + data[start:]
