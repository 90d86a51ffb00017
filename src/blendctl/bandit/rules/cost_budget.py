"""A budget for the running average of one cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest, numbers, whole
from blendctl.bandit.rules.maximal_loss import least_dominated
from blendctl.errors import InputError


@dataclass(frozen=True)
class CostBudget:
    """Minimise the maximal loss among the arms whose optimistic cost keeps the average under a budget.

    The cost is the negated feedback of one objective (the last by default), in scaled units per
    decision. An arm's optimistic cost is the lowest that its confidence set allows. If no arm
    keeps the average under the budget, the one with the lowest optimistic cost drives.
    """

    budget: float = 0.025  # average cost per decision; 25 per 1,000-step episode
    objective: int = -1  # whose negated feedback is the cost
    name = "cost-budget"

    def check(self, n_objectives: int) -> None:
        if not whole(self.objective) or not -n_objectives <= self.objective < n_objectives:
            raise InputError(
                f'the rule "{self.name}" needs an objective from {-n_objectives} to {n_objectives - 1}, '
                f"actually: {self.objective!r}"
            )
        budget = numbers(self.budget)
        if budget is None or budget.ndim or abs(budget) > 1e100:
            raise InputError(
                f'the rule "{self.name}" needs a finite budget (at most 1e100 in size), actually: {self.budget!r}'
            )

    def candidates(self, stage: DecisionInput) -> BoolArray:
        optimistic = -stage.ucb[..., self.objective]  # (..., arms)
        spent = -stage.feedback_sum[..., self.objective]
        room = self.budget * (stage.updates + 1.0) - spent + stage.tolerance
        affordable = optimistic <= room[..., None]
        frugal = nearly_greatest(-optimistic, stage.tolerance)
        least = nearly_greatest(-stage.loss, stage.tolerance, among=affordable)
        return np.where(affordable.any(axis=-1, keepdims=True), least_dominated(stage, least & affordable), frugal)
