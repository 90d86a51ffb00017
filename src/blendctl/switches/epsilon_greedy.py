"""Epsilon-greedy: the best estimate; a uniform draw with probability epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules import DecisionInput
from blendctl.bandit.rules.base import nearly_greatest
from blendctl.errors import InputError


@dataclass(frozen=True)
class EpsilonGreedy:
    """Maximise the weighted sum of the estimates (no optimism); with probability `epsilon` pick any arm."""

    epsilon: float = 0.1
    cost_weight: float = 1.0  # of every objective but the first
    name = "epsilon-greedy"

    def check(self, n_objectives: int) -> None:
        if not 0.0 <= self.epsilon <= 1.0 or not self.cost_weight >= 0.0:
            raise InputError(
                f'the rule "{self.name}" needs epsilon in [0, 1] and a cost weight >= 0, actually: '
                f"{self.epsilon!r} and {self.cost_weight!r}"
            )

    def candidates(self, stage: DecisionInput) -> BoolArray:
        weights = np.full(stage.estimate.shape[-1], self.cost_weight)
        weights[0] = 1.0
        best = nearly_greatest((stage.estimate * weights).sum(axis=-1), stage.tolerance)
        if self.epsilon <= 0.0 or self.epsilon >= 1.0:
            return best | (self.epsilon >= 1.0)
        # The learner's generator draws normals; one lies below this quantile with probability epsilon.
        explore = stage.normals(1)[..., 0] < NormalDist().inv_cdf(self.epsilon)
        return np.asarray(best | explore[..., None])
