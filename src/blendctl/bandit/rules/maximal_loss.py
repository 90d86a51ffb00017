"""The paper's rule: the least estimated loss in any objective."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest
from blendctl.errors import InputError


@dataclass(frozen=True)
class MaximalLoss:
    """Minimise the estimated maximal loss, eps(x) = max_k max_x' (ucb[x', k] - ucb[x, k]).

    Among several minimisers, dominated arms are left out, which makes the paper's
    Lemma 2 true for three or more arms: with indices (0, 5), (0, 4), (5, 0) every arm loses 5, but
    (0, 4) is dominated by (0, 5). `printed=True` keeps them, as Algorithm 1 is printed.
    """

    printed: bool = False
    name = "maximal-loss"
    regret_bounded = True

    def check(self, n_objectives: int) -> None:
        if not isinstance(self.printed, (bool, np.bool_)):
            raise InputError(f'the rule "{self.name}" needs printed to be True or False, actually: {self.printed!r}')

    def candidates(self, stage: DecisionInput) -> BoolArray:
        least = nearly_greatest(-stage.loss, stage.tolerance)
        if self.printed:
            return least
        return least_dominated(stage, least)


def least_dominated(stage: DecisionInput, among: BoolArray) -> BoolArray:
    """Remove from `among` (..., arms) the arms that another arm dominates by more than the tolerance."""
    gain = stage.ucb[..., None, :, :] - stage.ucb[..., :, None, :]  # (..., arm, other arm, objective)
    slack = stage.tolerance[..., None, None, None]
    dominated = np.any(np.all(gain >= -slack, axis=-1) & np.any(gain > slack, axis=-1), axis=-1)
    kept = among & ~dominated
    # every arm may be dominated within the tolerance: then keep all
    return np.asarray(np.where(kept.any(axis=-1, keepdims=True), kept, among))
