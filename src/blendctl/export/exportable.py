"""Declare the C form of a Python function, so that a blend that uses it can be exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from blendctl.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class CSource:
    """The statements of a C function, with the sizes of what it takes and returns where they must be known."""

    body: str
    observation_size: int | None = None
    action_size: int | None = None


def exportable(body: str, *, observation_size: int | None = None, action_size: int | None = None) -> Callable[[F], F]:
    """Attach the C form to a function: a controller, or the function of `features.Custom`.

    body: C99 statements without side effects. A controller reads `observation` (const double *) and writes `action`
    (double *). A feature reads `observation`, `action` (const double *) and `arm` (int), and writes `psi` (double *).
    The golden vectors of an export compare it with the Python function.

    >>> @exportable("action[0] = -0.5 * observation[0];", observation_size=3, action_size=1)
    ... def brake(observation):
    ...     return [-0.5 * observation[0]]
    >>> c_source(brake).body
    'action[0] = -0.5 * observation[0];'
    """
    if not isinstance(body, str) or not body.strip():
        raise InputError(f"the C form of a function must be C statements, actually: {body!r}")

    def declare(function: F) -> F:
        function.__dict__["c_source"] = CSource(body, observation_size, action_size)
        return function

    return declare


def c_source(function: object) -> CSource | None:
    """Return the C form that was declared for a function or controller, None without one."""
    declared = getattr(function, "c_source", None)
    return declared if isinstance(declared, CSource) else None
