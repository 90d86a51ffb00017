"""What a switch is made from: the controllers, the worlds, and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from blendctl.controllers import Controller
from blendctl.envs import VectorWorld
from blendctl.rollout import StepInput, Switch

__all__ = ["StepInput", "Switch", "RolloutContext", "open_worlds", "switch_seed"]

FloatArray = NDArray[np.float64]
ArmArray = NDArray[np.intp]


@dataclass(frozen=True)
class RolloutContext:
    """What a method needs to make its switch for B worlds."""

    controllers: Sequence[Controller]  # performant first, safe last
    worlds: VectorWorld  # B of them; only oracles may look inside
    seed: int  # of the switch's own randomness
    lookahead: str | None = None  # look-ahead networks; None: those that ship for the controllers

    @property
    def arms(self) -> int:
        """The number of controllers."""
        return len(self.controllers)


def switch_seed(seed: int) -> int:
    """Return the seed of a switch's own randomness in a rollout with `seed`."""
    return int(np.random.default_rng([seed, 1]).integers(2**31))


def open_worlds(world: str, count: int, *, steps: int | None = None, threads: int | None = 1) -> VectorWorld:
    """Make worlds for a rollout; `steps` shortens the episodes."""
    return VectorWorld(world, count, threads=threads, autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=steps)
