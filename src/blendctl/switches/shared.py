"""Shared control: the applied action is a weighted sum of the controllers' actions."""

from __future__ import annotations

import numpy as np

from blendctl.switches.base import FloatArray, RolloutContext, StepInput, Switch

__all__ = ["Shared"]


class Shared(Switch):
    """Give the first controller's action the weight `share`, the last one's the rest, at every step."""

    def __init__(self, seat: RolloutContext, *, share: float) -> None:
        self.weights = np.zeros((seat.worlds.num_envs, seat.arms))
        self.weights[:, 0] = share
        self.weights[:, -1] += 1.0 - share

    def mix(self, frame: StepInput) -> FloatArray:
        return self.weights
