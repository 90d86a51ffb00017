"""One controller drives all the time."""

from __future__ import annotations

import numpy as np

from blendctl.switches.base import FloatArray, RolloutContext, StepInput, Switch, one_hot

__all__ = ["Alone"]


class Alone(Switch):
    """Let controller `arm` drive; -1 is the last."""

    def __init__(self, seat: RolloutContext, *, arm: int) -> None:
        self.weights = one_hot(np.full(seat.worlds.num_envs, arm), seat.arms)

    def mix(self, frame: StepInput) -> FloatArray:
        return self.weights
