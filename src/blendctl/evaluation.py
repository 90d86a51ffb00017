"""Evaluate a controller: whole episodes in a world, means with 95% intervals."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller
from blendctl.envs.environment import EnvironmentSpec
from blendctl.episodes import SUMS, run_episodes
from blendctl.errors import InputError
from blendctl.statistics import mean_columns
from blendctl.switches.base import open_worlds
from blendctl.switches.single_controller import SingleController

__all__ = ["Evaluation", "evaluate"]


@dataclass(frozen=True)
class Evaluation:
    """Return, cost and length of whole episodes."""

    world: str
    seed: int  # episode i has seed + i
    deterministic: bool  # mean actions; otherwise drawn from the policy
    returns: FloatArray  # (episodes,)
    costs: FloatArray  # (episodes,)
    lengths: FloatArray  # (episodes,)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per episode: its seed, and the columns that all tables of episodes have."""
        sums = zip(self.returns.tolist(), self.costs.tolist(), self.lengths.astype(int).tolist(), strict=True)
        return [{"seed": self.seed + i} | dict(zip(SUMS, row, strict=True)) for i, row in enumerate(sums)]

    def summary(self) -> dict[str, Any]:
        """Return the means with 95% intervals, as JSON data."""
        return {
            "world": self.world,
            "episodes": len(self.returns),
            "seed": self.seed,
            "deterministic": self.deterministic,
            **mean_columns({"return": self.returns, "cost": self.costs}),
            "length_mean": float(self.lengths.mean()),
        }


def evaluate(
    controller: Controller,
    world: str | EnvironmentSpec,
    *,
    episodes: int = 100,
    seed: int = 1_000_000,
    deterministic: bool = False,
    worlds_at_once: int = 25,
    threads: int | None = None,
    on_step: Callable[[int], None] | None = None,
) -> Evaluation:
    """Run whole episodes with seeds seed, seed + 1, ...; `on_step` is called with the number of running episodes.

    world: a world, a Gymnasium id, or an `EnvironmentSpec`; without `info["cost"]` the costs are 0.
    The default seed is far from the layouts of training.
    """
    if episodes < 1:
        raise InputError(f"expected episodes >= 1, actually: {episodes}")
    results = []
    for first in range(0, episodes, worlds_at_once):
        rng = None if deterministic else np.random.default_rng([seed, first])
        with closing(open_worlds(world, min(worlds_at_once, episodes - first), threads=threads)) as worlds:
            sums = run_episodes(
                worlds,
                [controller],
                make=lambda _: SingleController(),
                seed=seed + first,
                rngs=[rng],
                on_step=None if on_step is None else lambda batch: on_step(int((batch.counted & ~batch.ended).sum())),
            )
        results.append((sums.returns, sums.costs, sums.lengths))
    returns, costs, lengths = np.concatenate(results, axis=1)
    name = world.name if isinstance(world, EnvironmentSpec) else world
    return Evaluation(name, seed, deterministic, returns=returns, costs=costs, lengths=lengths)
