"""The best estimate, without optimism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest
from blendctl.bandit.rules.linear import check_weights, weights_for


@dataclass(frozen=True)
class Greedy:
    """Maximise sum_k weights[k] estimate[x, k]. Equal weights by default.

    It does not explore: for a learner whose prior is worth trusting, such as that of look-ahead networks.
    """

    weights: Sequence[float] | None = None  # one per objective, >= 0
    name = "greedy"
    regret_bounded = False

    def check(self, n_objectives: int) -> None:
        check_weights(self.weights, n_objectives, rule=self.name)

    def candidates(self, stage: DecisionInput) -> BoolArray:
        weights = weights_for(self.weights, stage)
        return nearly_greatest((stage.estimate * weights).sum(axis=-1), stage.tolerance * np.sum(weights))
