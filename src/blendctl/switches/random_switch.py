"""Switching by chance, per step or per episode: what mixing the controllers blindly brings."""

from __future__ import annotations

import numpy as np

from blendctl.switches.base import FloatArray, RolloutContext, StepInput, Switch, one_hot

__all__ = ["Chance"]


class Chance(Switch):
    """Let the first controller drive with probability `share`, the last one otherwise.

    per: "step" tosses at every control step, "episode" once for a whole episode. Per episode, the expected return and
    cost lie exactly on the mixing line.
    """

    def __init__(self, seat: RolloutContext, *, share: float, per: str) -> None:
        self.share, self.per, self.arms = share, per, seat.arms
        self.rng = np.random.default_rng(seat.seed)
        self.weights = np.zeros((0, seat.arms))

    def mix(self, frame: StepInput) -> FloatArray:
        if self.per == "step" or not len(self.weights):
            first = self.rng.random(len(frame.observations)) < self.share
            self.weights = one_hot(np.where(first, 0, self.arms - 1), self.arms)
        return self.weights
