"""Numba's jit, typed, so that compiled functions keep their signatures for the type checker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile to machine code at the first call; the result is cached on disk between processes.

    No fast-math and no parallel loops: the same input gives the same bits every time.
    The GIL is released while a compiled function runs. `error_model="numpy"` makes a
    division by zero give inf as in numpy, and lets the loops vectorise.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile as `compiled` does, and copy the body into each compiled caller: no call, no array headers."""
    return cast(F, numba.njit(error_model="numpy", inline="always")(function))
