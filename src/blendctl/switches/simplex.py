"""Simplex switching: the performant controller drives until its cost critic raises an alarm."""

from __future__ import annotations

import numpy as np

from blendctl.arrays import ArmArray
from blendctl.controllers.base import Critic
from blendctl.errors import InputError
from blendctl.switches.base import RolloutContext, StepInput, Switch


class Simplex(Switch):
    """Hand over to the last controller while the first one's cost critic expects more than `threshold`.

    The threshold is a discounted cost (with the critics' own discount); `hold` is the number of control steps per
    decision, the latch that keeps a simplex from chattering.
    """

    def __init__(self, context: RolloutContext, *, threshold: float, hold: int = 1) -> None:
        performant = context.controllers[0]
        if not isinstance(performant, Critic):
            raise InputError(
                "simplex needs a performant controller with a cost critic (cost_value); "
                f"{type(performant).__name__} has none: leave simplex out of --methods"
            )
        self.critic = performant
        self.threshold, self.hold, self.last = threshold, hold, context.arms - 1
        self.arm = np.zeros(0, np.intp)

    def choose(self, frame: StepInput) -> ArmArray:
        if frame.step % self.hold == 0:
            alarm = np.asarray(self.critic.cost_value(frame.observations)) > self.threshold
            self.arm = np.where(alarm, self.last, 0)
        return self.arm
