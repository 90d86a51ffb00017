"""Shared control: the applied action is a weighted sum of the controllers' actions."""

from __future__ import annotations

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.switches.base import RolloutContext, StepInput, Switch


class SharedControl(Switch):
    """Weight the first controller's action by `share` and the last one's by the rest, at every step."""

    def __init__(self, context: RolloutContext, *, share: float) -> None:
        self.weights = np.zeros((context.worlds.num_envs, context.arms))
        self.weights[:, 0] = share
        self.weights[:, -1] += 1.0 - share

    def choose(self, frame: StepInput) -> FloatArray:
        return self.weights
