"""Check numbers that come from a file before compiled code or an allocation uses them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from blendctl.errors import InputError


def check_whole(value: Any, name: str, *, low: int, high: int) -> int:
    """Return a whole number in [low, high]; raise InputError for anything else.

    >>> check_whole(16, "bins", low=4, high=64)
    16
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise InputError(f"{name} is {_shown(value)}; allowed: whole numbers from {low} to {high}")
    return int(value)


def check_real(value: Any, name: str, *, low: float = -1e12, high: float = 1e12) -> float:
    """Return a finite number in [low, high]; raise InputError for anything else.

    >>> check_real(1, "radius", low=0.0)
    1.0
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not low <= value <= high or not math.isfinite(value):
        raise InputError(f"{name} is {_shown(value)}; allowed: finite numbers from {low:g} to {high:g}")
    return float(value)


def _shown(value: Any) -> str:
    """Return a short text: the value may be large, nested or hostile."""
    if isinstance(value, bool | float | np.floating) or (isinstance(value, int) and abs(value) < 10**18):
        return repr(value)
    return f"of type {type(value).__name__}" if not isinstance(value, int) else "a huge number"
