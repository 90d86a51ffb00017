"""A random arm: a baseline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput


@dataclass(frozen=True)
class Random:
    """Pull an arm uniformly at random; the learner still learns, and bounds its loss."""

    name = "random"

    def candidates(self, stage: DecisionInput) -> BoolArray:
        return np.ones(stage.loss.shape, dtype=np.bool_)
