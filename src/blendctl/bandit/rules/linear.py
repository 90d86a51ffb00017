"""The weighted sum of the objectives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray, FloatArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest, numbers
from blendctl.errors import InputError


@dataclass(frozen=True)
class Linear:
    """Maximise sum_k weights[k] ucb[x, k]: scalarised LinUCB. Equal weights by default.

    It finds only arms on the convex hull of the front.
    """

    weights: Sequence[float] | None = None  # one per objective, >= 0
    name = "linear"
    regret_bounded = True

    def check(self, n_objectives: int) -> None:
        check_weights(self.weights, n_objectives, rule=self.name)

    def candidates(self, stage: DecisionInput) -> BoolArray:
        weights = weights_for(self.weights, stage)
        score = np.zeros(stage.loss.shape)
        for k, weight in enumerate(weights):  # one objective at a time: the same rounding in every form
            score = score + weight * stage.ucb[..., k]
        return nearly_greatest(score, stage.tolerance * np.sum(weights))


def check_weights(weights: Sequence[float] | None, n_objectives: int, *, rule: str) -> None:
    """Refuse weights that are not one finite number >= 0 per objective, with one above 0."""
    if weights is None:
        return
    array = numbers(weights)
    if array is None or array.shape != (n_objectives,) or array.min() < 0 or not 0 < array.max() <= 1e100:
        raise InputError(
            f'the rule "{rule}" needs {n_objectives} weights (one per objective), >= 0, not all 0, at most 1e100, '
            f"actually: {weights}"
        )


def weights_for(weights: Sequence[float] | None, stage: DecisionInput) -> FloatArray:
    """Return the weights as an array; by default equal ones."""
    if weights is None:
        return np.ones(stage.ucb.shape[-1])
    return np.asarray(weights, dtype=np.float64)
