"""Always the same arm: a baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, whole
from blendctl.errors import InputError


@dataclass(frozen=True)
class Fixed:
    """Always pull one arm; the learner still learns, and bounds its loss."""

    arm: int = 0
    name = "fixed"

    def check(self, n_objectives: int) -> None:
        if not whole(self.arm) or self.arm < 0:
            raise InputError(f'the rule "{self.name}" needs the number of an arm, 0 or more, actually: {self.arm!r}')

    def candidates(self, stage: DecisionInput) -> BoolArray:
        arms = stage.loss.shape[-1]
        if self.arm >= arms:
            raise InputError(
                f'the rule "{self.name}" pulls arm {self.arm}, but there are {arms} arms (0 to {arms - 1})'
            )
        return np.broadcast_to(np.arange(arms) == self.arm, stage.loss.shape)
