"""The error tree: everything blendctl raises on purpose is a BlendctlError.

BlendctlError
├── InputError (ValueError)          an argument, array or option is not allowed
├── StateError (RuntimeError)        a call at the wrong time (step before reset, observe before act)
├── FileFormatError                  a file is truncated, tampered with, foreign, or of another version
└── MissingExtraError (ImportError)  an optional dependency is not installed; names the `pip install` for it
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BlendctlError",
    "InputError",
    "StateError",
    "FileFormatError",
    "MissingExtraError",
    "did_you_mean",
]


class BlendctlError(Exception):
    """Base of every error that blendctl raises on purpose."""


class InputError(BlendctlError, ValueError):
    """An argument is not allowed; the message says what was passed, what is allowed and what to try."""


class StateError(BlendctlError, RuntimeError):
    """The call is valid, but not in the current state."""


class FileFormatError(BlendctlError):
    """A file cannot be trusted or read: truncated, tampered with, foreign, or of another version."""


class MissingExtraError(BlendctlError, ImportError):
    """An optional dependency is missing.

    >>> str(MissingExtraError("torch", extra="train"))
    'torch is not installed; install it with: pip install "blendctl[train]"'
    """

    def __init__(self, package: str, *, extra: str) -> None:
        super().__init__(f'{package} is not installed; install it with: pip install "blendctl[{extra}]"')


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """Return a hint: the allowed name nearest to `name`, and the list of all.

    >>> did_you_mean("PointGaol1", ["PointGoal1", "CarButton1"])
    'did you mean "PointGoal1"? allowed: PointGoal1, CarButton1'
    """
    names = list(allowed)
    lowered = {n.lower(): n for n in names}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    hint = f'did you mean "{lowered[near[0]]}"? ' if near else ""
    return f"{hint}allowed: {', '.join(names)}"
