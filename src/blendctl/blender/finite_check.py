"""Check in a fraction of a microsecond whether an array is finite."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from blendctl.compiled import compiled

FLOAT = np.dtype(np.float64)


@compiled
def finite_vector(values: NDArray[np.float64]) -> bool:
    """Return whether a contiguous vector of float64 is finite; other types would need another compilation."""
    for value in values:  # noqa: SIM110  # compiled: a plain loop
        if not math.isfinite(value):
            return False
    return True


# load it now, not in the first control step
finite_vector(np.zeros(1))


def is_positive(value: Any) -> bool:
    """Return whether a value is a finite number above 0."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(0 < value < math.inf)


def all_finite(values: object) -> bool:
    """Return whether an array, list, dictionary or number is finite; other types count as finite."""
    if type(values) is ndarray:
        if values.dtype is FLOAT and values.flags.c_contiguous:
            return finite_vector(values if values.ndim == 1 else values.reshape(-1))
        if values.dtype.kind == "f":
            return bool(np.isfinite(values).all())
    elif isinstance(values, list | tuple):
        return all(all_finite(value) for value in values)
    elif isinstance(values, dict):
        return all(all_finite(value) for value in values.values())
    elif isinstance(values, float):
        return math.isfinite(values)
    return True
