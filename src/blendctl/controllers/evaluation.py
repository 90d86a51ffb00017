"""Evaluate a controller: whole episodes in a world, means with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from blendctl.controllers.adapters import act_rows
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.network import NetworkController
from blendctl.envs import VectorWorld
from blendctl.errors import InputError, StateError
from blendctl.statistics import mean_interval

__all__ = ["Evaluation", "evaluate", "check_fits"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """What whole episodes brought."""

    world: str
    seed: int  # episode i has seed + i
    deterministic: bool  # mean actions; otherwise drawn from the policy
    returns: FloatArray  # (episodes,)
    costs: FloatArray  # (episodes,)
    lengths: FloatArray  # (episodes,)

    def summary(self) -> dict[str, Any]:
        """Give the means with 95% intervals, as JSON data."""
        return {
            "world": self.world,
            "episodes": len(self.returns),
            "seed": self.seed,
            "deterministic": self.deterministic,
            "return_mean": float(self.returns.mean()),
            "return_ci95": mean_interval(self.returns),
            "cost_mean": float(self.costs.mean()),
            "cost_ci95": mean_interval(self.costs),
            "length_mean": float(self.lengths.mean()),
        }


def check_fits(controller: Controller, worlds: VectorWorld) -> None:
    """Refuse a network controller whose shapes do not fit the world."""
    if not isinstance(controller, NetworkController):
        return
    have = (controller.observation_size, controller.action_size)
    need = (worlds.single_observation_space.shape[0], worlds.single_action_space.shape[0])  # type: ignore[index]  # both are boxes
    if have != need:
        raise InputError(
            f"controller {controller.name!r} takes {have[0]} observations and gives {have[1]} actions; this world "
            f"has {need[0]} and {need[1]}. Use a controller trained for it"
        )


def evaluate(
    controller: Controller,
    world: str,
    *,
    episodes: int = 100,
    seed: int = 1_000_000,
    deterministic: bool = False,
    worlds_at_once: int = 25,
    threads: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run whole episodes with seeds seed, seed + 1, ...; `on_step` hears how many steps were made.

    The default seed keeps clear of the layouts that training saw.
    """
    if episodes < 1:
        raise InputError(f"expected episodes >= 1, actually: {episodes}")
    results = []
    for first in range(0, episodes, worlds_at_once):
        count = min(worlds_at_once, episodes - first)
        worlds = VectorWorld(world, count, threads=threads, autoreset_mode=AutoresetMode.DISABLED)
        try:
            check_fits(controller, worlds)
            if isinstance(controller, Stateful):
                controller.reset()  # what it remembers is of other episodes
            rng = None if deterministic else np.random.default_rng([seed, first])
            results.append(_episodes(controller, worlds, seed=seed + first, rng=rng, on_step=on_step))
        finally:
            worlds.close()
    returns, costs, lengths = np.concatenate(results, axis=1)
    return Evaluation(world, seed, deterministic, returns=returns, costs=costs, lengths=lengths)


def _episodes(
    controller: Controller,
    worlds: VectorWorld,
    *,
    seed: int,
    rng: np.random.Generator | None,
    on_step: Callable[[int], None] | None,
) -> FloatArray:
    """Give (3, worlds): return, cost and length of one episode in each world."""
    totals = np.zeros((3, worlds.num_envs))
    live = np.ones(worlds.num_envs, np.bool_)
    observations, _ = worlds.reset(seed=seed)
    while live.any():
        actions = act_rows(controller, observations, rng)
        if not np.isfinite(actions).all():
            raise StateError("the controller gave an action that is NaN or infinite; it cannot be evaluated")
        observations, rewards, terminated, truncated, infos = worlds.step(np.clip(actions, -1.0, 1.0))
        totals += np.stack([rewards, infos["cost"], np.ones_like(rewards)]) * live
        live &= ~(terminated | truncated)
        if on_step is not None:
            on_step(int(live.sum()))
        if live.any() and not live.all():
            # Worlds that are done take no further step: restart them, and count nothing more there.
            observations, _ = worlds.reset(options={"reset_mask": ~live & (terminated | truncated)})
    return totals
