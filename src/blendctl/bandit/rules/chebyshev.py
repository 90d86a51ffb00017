"""The weighted largest shortfall from a reference point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest, numbers
from blendctl.bandit.rules.linear import check_weights, weights_for
from blendctl.bandit.rules.maximal_loss import least_dominated
from blendctl.errors import InputError


@dataclass(frozen=True)
class Chebyshev:
    """Minimise max_k weights[k] (reference[k] - ucb[x, k]): the worst weighted distance to an ideal.

    Without a reference it is the best index of each objective over the arms, and with equal weights
    the rule is then the paper's. Every arm of the front is reachable with some weights.
    """

    weights: Sequence[float] | None = None  # one per objective, >= 0
    reference: Sequence[float] | None = None  # one per objective, in scaled units
    name = "chebyshev"
    regret_bounded = True

    def check(self, n_objectives: int) -> None:
        check_weights(self.weights, n_objectives, rule=self.name)
        if self.reference is not None:
            point = numbers(self.reference)
            if point is None or point.shape != (n_objectives,) or np.abs(point).max() > 1e100:
                raise InputError(
                    f'the rule "{self.name}" needs a reference of {n_objectives} numbers '
                    f"(one per objective, at most 1e100 in size), actually: {self.reference}"
                )

    def candidates(self, stage: DecisionInput) -> BoolArray:
        weights = weights_for(self.weights, stage)
        if self.reference is None:
            ideal = stage.ucb.max(axis=-2, keepdims=True)
        else:
            ideal = np.asarray(self.reference, dtype=np.float64)
        distance = (weights * (ideal - stage.ucb)).max(axis=-1)
        return least_dominated(stage, nearly_greatest(-distance, stage.tolerance * weights.max()))
