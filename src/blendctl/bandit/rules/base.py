"""The protocol of a decision rule and its input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from blendctl.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class DecisionInput:
    """Input of one decision, or of a batch of them (leading axes `...`).

    All objectives are maximised and in scaled units.
    """

    ucb: FloatArray  # (..., arms, objectives) optimistic indices
    estimate: FloatArray  # (..., arms, objectives) least-squares estimates
    width: FloatArray  # (..., arms) length of psi in the norm of V^-1
    loss: FloatArray  # (..., arms) estimated maximal loss
    radius: FloatArray  # (...,) confidence radius
    tolerance: FloatArray  # (...,) indices closer than this are ties
    updates: FloatArray  # (...,) feedback vectors learned from so far
    feedback_sum: FloatArray  # (..., objectives) sum of those feedback vectors
    whitened: FloatArray  # (..., arms, features) z with U'z = psi: estimate = Q'z, width = |z|
    normals: Callable[[int], FloatArray]  # n -> (..., n) standard normals from the learner's generator


@runtime_checkable
class Rule(Protocol):
    """A decision rule: it marks candidate arms, and the learner picks one of them uniformly.

    A rule is a pure function of the stage, written for any leading axes, so that it serves one learner, a batch and
    a pooled learner alike. Its optional abilities are `CheckedRule` and `BoundedRule`.
    """

    name: str

    def candidates(self, stage: DecisionInput) -> BoolArray:
        """Mark the candidate arms: (..., arms), at least one per decision."""
        ...


@runtime_checkable
class CheckedRule(Rule, Protocol):
    """A rule that refuses parameters that do not fit, when the learner is made."""

    def check(self, n_objectives: int) -> None:
        """Raise InputError if a parameter is not allowed."""
        ...


@runtime_checkable
class BoundedRule(Rule, Protocol):
    """A rule that says whether Theorem 1 bounds its Pareto regret; other rules have no regret bound.

    The theorem holds for a rule that never marks an arm which another arm beats in every optimistic index.
    """

    @property
    def regret_bounded(self) -> bool:
        """Whether the theorem holds, with the parameters of this rule."""
        ...


def numbers(values: Any) -> FloatArray | None:
    """Return a parameter as an array of finite numbers, or None if it is something else."""
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        return None
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        return None
    return array.astype(np.float64)


def whole(value: Any) -> TypeGuard[int]:
    """Return whether a parameter is a whole number."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def nearly_greatest(score: FloatArray, tolerance: FloatArray, among: BoolArray | None = None) -> BoolArray:
    """Mark the arms whose score (..., arms) is within the tolerance (...) of the greatest (of those `among`)."""
    allowed = score if among is None else np.where(among, score, -np.inf)
    return np.asarray(allowed >= allowed.max(axis=-1, keepdims=True) - tolerance[..., None])
