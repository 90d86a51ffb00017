"""Simplex switching: the performant controller drives until a cost critic raises the alarm."""

from __future__ import annotations

import numpy as np

from blendctl.controllers.base import Critic
from blendctl.errors import InputError
from blendctl.switches.base import FloatArray, RolloutContext, StepInput, Switch, one_hot

__all__ = ["Simplex"]


class Simplex(Switch):
    """Hand over to the last controller while the first one's cost critic expects more than `threshold`.

    The threshold is a discounted cost (with the critics' own discount); `hold` is how many control steps a decision
    lasts, the latch that keeps a simplex from chattering.
    """

    def __init__(self, seat: RolloutContext, *, threshold: float, hold: int = 1) -> None:
        performant = seat.controllers[0]
        if not isinstance(performant, Critic):
            raise InputError(
                "simplex needs a performant controller with a cost critic (cost_value); "
                f"{type(performant).__name__} has none: leave simplex out of --methods"
            )
        self.critic = performant
        self.threshold, self.hold, self.arms = threshold, hold, seat.arms
        self.weights = np.zeros((0, seat.arms))

    def mix(self, frame: StepInput) -> FloatArray:
        if frame.step % self.hold == 0:
            alarm = np.asarray(self.critic.cost_value(frame.observations)) > self.threshold
            self.weights = one_hot(np.where(alarm, self.arms - 1, 0), self.arms)
        return self.weights
