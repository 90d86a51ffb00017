"""One objective after the other, in order of importance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest, numbers, whole
from blendctl.errors import InputError


@dataclass(frozen=True)
class Lexicographic:
    """Maximise the first objective of the order; among arms within its tolerance the next; and so on."""

    order: Sequence[int] | None = None  # objectives, most important first; as declared by default
    tolerances: Sequence[float] | float = 0.0  # allowed shortfall in each objective (as ordered), scaled units
    name = "lexicographic"

    def check(self, n_objectives: int) -> None:
        order = range(n_objectives) if self.order is None else self.order
        if (
            not isinstance(order, (Sequence, np.ndarray))
            or len(order) == 0
            or not all(whole(k) and 0 <= k < n_objectives for k in order)
            or len(set(order)) != len(order)
        ):
            raise InputError(
                f'the rule "{self.name}" needs an order of different objectives from 0 to {n_objectives - 1}, '
                f"actually: {self.order!r}"
            )
        slack = numbers(self.tolerances)
        if slack is None or slack.shape not in {(), (1,), (len(order),)} or slack.min() < 0:
            raise InputError(
                f'the rule "{self.name}" needs one tolerance >= 0, or {len(order)} (one per objective of the order), '
                f"actually: {self.tolerances!r}"
            )

    @property
    def regret_bounded(self) -> bool:
        """Whether no tolerance lets a dominated arm pass."""
        return not np.any(self.tolerances)

    def candidates(self, stage: DecisionInput) -> BoolArray:
        order = range(stage.ucb.shape[-1]) if self.order is None else self.order
        slack = np.broadcast_to(np.asarray(self.tolerances, dtype=np.float64), (len(order),))
        left = np.ones(stage.loss.shape, dtype=np.bool_)
        for k, shortfall in zip(order, slack, strict=True):
            left = nearly_greatest(stage.ucb[..., k], stage.tolerance + shortfall, among=left)
        return left
