"""Uniform over the front of the optimistic indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput
from blendctl.bandit.rules.maximal_loss import least_dominated


@dataclass(frozen=True)
class ParetoUniform:
    """Pick any arm that no other arm's optimistic index dominates: all of the front is worth the same.

    Pareto UCB of Drugan and Nowe (2013); MOGLM-UCB of Lu et al. (2019). It has the same Pareto regret
    bound as the paper's rule, but no control of the loss in single objectives.
    """

    name = "pareto-uniform"
    regret_bounded = True

    def candidates(self, stage: DecisionInput) -> BoolArray:
        return least_dominated(stage, np.ones(stage.loss.shape, dtype=np.bool_))
