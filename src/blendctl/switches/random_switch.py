"""Switch at random, per step or per episode: mix controllers without using the state."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import ArmArray
from blendctl.switches.base import RolloutContext, StepInput, Switch


class RandomSwitch(Switch):
    """Let the first controller drive with probability `share`, the last one otherwise.

    per: "step" draws at every control step, "episode" once for a whole episode. Per episode, the expected return and
    cost lie exactly on the mixing line.
    """

    def __init__(self, context: RolloutContext, *, share: float, per: Literal["step", "episode"]) -> None:
        self.share, self.per, self.last = share, per, context.arms - 1
        self.rng = np.random.default_rng(context.seed)
        self.arm = np.zeros(context.worlds.num_envs, np.intp)

    def choose(self, frame: StepInput) -> ArmArray:
        if self.per == "step":
            self._draw(np.ones(len(self.arm), np.bool_))
        return self.arm

    def reset(self, mask: NDArray[np.bool_]) -> None:
        if self.per == "episode":
            self._draw(mask)

    def _draw(self, mask: NDArray[np.bool_]) -> None:
        first = self.rng.random(len(self.arm)) < self.share
        self.arm = np.where(mask, np.where(first, 0, self.last), self.arm)


class UniformSwitch(Switch):
    """Draw the controller of every world and step from `rng`, each equally likely."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def choose(self, frame: StepInput) -> ArmArray:
        arms, worlds = frame.proposals.shape[:2]
        return np.asarray(self.rng.integers(arms, size=worlds))
