"""Input for making a switch: the controllers, the worlds, and a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from blendctl.arrays import ArmArray as ArmArray
from blendctl.controllers import Controller
from blendctl.envs import find_task
from blendctl.envs.environment import EnvironmentSpec
from blendctl.rollout import StepInput, Switch

__all__ = ["StepInput", "Switch", "RolloutContext", "open_worlds", "switch_seed"]


@dataclass(frozen=True)
class RolloutContext:
    """Input of a method that makes a switch for B worlds."""

    controllers: Sequence[Controller]  # performant first, safe last
    worlds: Any  # B of them: `VectorWorld` or `LockStepEnvs`; only oracles may look inside
    seed: int  # of the switch's own randomness
    lookahead: str | None = None  # look-ahead networks; None: those that ship for the controllers

    @property
    def arms(self) -> int:
        """The number of controllers."""
        return len(self.controllers)


def switch_seed(seed: int) -> int:
    """Return the seed of a switch's own randomness in a rollout with `seed`."""
    return int(np.random.default_rng([seed, 1]).integers(2**31))


def open_worlds(world: str | EnvironmentSpec, count: int, *, steps: int | None = None, threads: int | None = 1) -> Any:
    """Make worlds for a rollout, or other environments in lock-step; `steps` limits the episodes of a named world.

    A name may come from a file, so it runs no code: it is a world or an id that Gymnasium knows.
    """
    if isinstance(world, EnvironmentSpec):
        return world.make_vector(count, threads=threads)
    if world not in gymnasium.registry:
        find_task(world)  # raises InputError if it is not a world
    return EnvironmentSpec(world, episode_steps=steps).make_vector(count, threads=threads)
