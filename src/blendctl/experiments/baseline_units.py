"""Units without a learner: one controller alone, or random switching, with one world per episode."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np

from blendctl.controllers import open_controller
from blendctl.episodes import run_episodes
from blendctl.experiments.units import Result, unit_kind
from blendctl.switches.base import open_worlds
from blendctl.switches.random_switch import UniformSwitch


@unit_kind(version=1)
def baseline(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run one episode in each of `episodes` worlds; with several controllers each step draws one at random.

    Parameters: world, controllers, first_seed (episode i has first_seed + i), episodes, noise_seed, steps (None: the
    world's limit). The result's table has a row per episode; with several controllers it scores every choice by
    counterfactual steps of all of them from the same state.
    """
    world = str(parameters["world"])
    controllers = [open_controller(spec, world=world) for spec in parameters["controllers"]]
    several = len(controllers) > 1
    seeds = np.random.SeedSequence(int(parameters["noise_seed"])).spawn(1 + len(controllers))
    chance, *noise = (np.random.default_rng(seed) for seed in seeds)
    started = time.perf_counter()
    with closing(open_worlds(world, int(parameters["episodes"]), steps=parameters.get("steps"))) as worlds:
        episodes = run_episodes(
            worlds,
            controllers,
            make=lambda _: UniformSwitch(chance),
            seed=int(parameters["first_seed"]),
            rngs=noise,
            judge_every=int(several),
        )
    seconds = time.perf_counter() - started
    table = episodes.table(with_choices=several)
    if several:
        # The share of random switching is not published: it is one half by construction.
        table = table.drop_columns(["driven_0"])
    return Result({}, table, {"seconds": seconds, "iterations": float(episodes.lengths.sum())})
