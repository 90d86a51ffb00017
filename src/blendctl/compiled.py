"""Compile functions with numba; they keep their signatures for the type checker."""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

# files and constants that a compiled function depends on, by its id; compiled functions are never freed
_parts: dict[int, frozenset[tuple[str, ...]]] = {}


def compiled(function: F) -> F:
    """Compile to machine code at the first call; the result is cached on disk between processes.

    No fast-math and no parallel loops: equal input produces equal bits. The GIL is released while a compiled function
    runs. With `error_model="numpy"` a division by zero is inf, as in numpy, and loops can be vectorised.
    """
    jit = functools.partial(numba.njit, nogil=True, error_model="numpy")
    try:
        dispatcher = jit(cache=True)(function)
    except RuntimeError:  # no writable cache directory (a read-only installation): compile at every start
        dispatcher = jit()(function)
    return _remember(function, dispatcher)


def inlined(function: F) -> F:
    """Compile as `compiled` does, and copy the body into each compiled caller, which saves the call."""
    return _remember(function, numba.njit(error_model="numpy", inline="always")(function))


def _remember(function: F, dispatcher: Any) -> F:
    """Make the cache depend on all files and constants that the function uses.

    Numba checks only the function's own file. After a change in a function or constant from another file, old code
    would run.
    """
    parts = _parts[id(dispatcher)] = _parts_of(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        # In the version, which numba compares before it unpickles: types of older code may no longer exist.
        cache_file._version += f" {hashlib.sha256(repr(sorted(parts)).encode()).hexdigest()}"
    return cast(F, dispatcher)


def _parts_of(function: Callable[..., Any]) -> frozenset[tuple[str, ...]]:
    """Collect its own file, the parts of compiled functions, and the files and constants that its module names."""
    parts = {_file(function.__code__.co_filename)}
    package = function.__module__.partition(".")[0]
    for name, value in function.__globals__.items():
        parts |= _parts.get(id(value), frozenset())
        module = sys.modules.get(value.__module__) if isinstance(value, type) else value
        if isinstance(module, ModuleType) and module.__name__.partition(".")[0] == package:
            parts.add(_file(str(module.__file__)))
        elif isinstance(value, np.ndarray):
            parts.add((name, str(value.shape), hashlib.sha256(value.tobytes()).hexdigest()))
        elif not name.startswith("__") and all(
            isinstance(entry, (int, float, str)) for entry in (value if isinstance(value, tuple) else (value,))
        ):
            parts.add((name, repr(value)))
    return frozenset(parts)


@functools.cache
def _file(path: str) -> tuple[str, ...]:
    """Identify a version of a file; without one (frozen into an executable) the path is enough."""
    try:
        stat = Path(path).stat()
    except OSError:
        return (path,)
    return (Path(path).name, str(stat.st_mtime_ns), str(stat.st_size))
