"""Numba's jit, typed, so that compiled functions keep their signatures for the type checker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])

# files that a compiled function depends on, by its id; compiled functions live as long as the process
_sources: dict[int, frozenset[str]] = {}


def compiled(function: F) -> F:
    """Compile to machine code at the first call; the result is cached on disk between processes.

    No fast-math and no parallel loops: the same input gives the same bits every time.
    The GIL is released while a compiled function runs. `error_model="numpy"` makes a
    division by zero give inf as in numpy, and lets the loops vectorise.
    """
    return _remember(function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: F) -> F:
    """Compile as `compiled` does, and copy the body into each compiled caller: no call, no array headers."""
    return _remember(function, numba.njit(error_model="numpy", inline="always")(function))


def _remember(function: F, dispatcher: Any) -> F:
    """Make the cache depend on every file that the function is made of.

    Numba looks at the function's own file alone, so a change in a function that it calls, from another
    file, would go unseen, and old code would run.
    """
    files = _files_behind(function)
    _sources[id(dispatcher)] = files
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        others = tuple(
            (Path(file).name, stat.st_mtime_ns, stat.st_size)
            for file in sorted(files)
            for stat in [Path(file).stat()]
        )
        cache_file._source_stamp = (cache_file._source_stamp, others)
    return cast(F, dispatcher)


def _files_behind(function: Callable[..., Any]) -> frozenset[str]:
    """Own file, files of the compiled functions and of the classes of this package that its module names."""
    files = {function.__code__.co_filename}
    package = function.__module__.partition(".")[0]
    for value in function.__globals__.values():
        files |= _sources.get(id(value), frozenset())
        if isinstance(value, type) and value.__module__.partition(".")[0] == package:
            files.add(str(sys.modules[value.__module__].__file__))
    return frozenset(files)
