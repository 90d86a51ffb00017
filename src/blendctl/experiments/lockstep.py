"""Units without a learner: one controller alone, or random switching, in as many worlds as there are episodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from blendctl.controllers import Controller, open_controller
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.evaluation import check_fits
from blendctl.envs import VectorWorld
from blendctl.errors import StateError
from blendctl.experiments.scores import score
from blendctl.experiments.units import Result, unit_kind

__all__ = ["lockstep"]

FloatArray = NDArray[np.float64]


@unit_kind(version=1)
def lockstep(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Drive one episode in each of `episodes` worlds; with several controllers chance picks one at every step.

    Parameters: world, controllers, first_seed (episode i has first_seed + i), episodes, noise_seed, steps (None: the
    world's own). The result's table has a row per episode; with several controllers it tells, from counterfactual
    steps of all of them from each state, how many choices were correct, their Pareto gaps and maximal losses.
    """
    count = int(parameters["episodes"])
    worlds = VectorWorld(
        str(parameters["world"]),
        count,
        threads=1,
        autoreset_mode=AutoresetMode.DISABLED,
        max_episode_steps=parameters.get("steps"),
    )
    drivers = [open_controller(spec, world=str(parameters["world"])) for spec in parameters["controllers"]]
    started = time.perf_counter()
    with closing(worlds):
        for driver in drivers:
            check_fits(driver, worlds)
        columns = _drive(worlds, drivers, seed=int(parameters["first_seed"]), noise=int(parameters["noise_seed"]))
    seconds = time.perf_counter() - started
    return Result({}, pa.table(columns), {"seconds": seconds, "iterations": float(columns["length"].sum())})


def _drive(worlds: VectorWorld, drivers: list[Controller], *, seed: int, noise: int) -> dict[str, NDArray[Any]]:
    """Give a column (episodes,) of each quantity."""
    n, arms = worlds.num_envs, len(drivers)
    names = ["return", "cost", "length"]
    names += ["correct", "judged", "gap", "loss", "switches"] if arms > 1 else []
    sums = {name: np.zeros(n) for name in names}
    chance, *own = (np.random.default_rng(s) for s in np.random.SeedSequence(noise).spawn(1 + arms))
    live, rows = np.ones(n, np.bool_), np.arange(n)
    last = np.full(n, -1)
    truth = np.zeros((n, arms, 2))  # reward and cost that every arm would bring
    observations, _ = worlds.reset(seed=seed)
    while live.any():
        proposals = np.stack([act_rows(c, observations, rng) for c, rng in zip(drivers, own, strict=True)])
        # (arms, n, act)
        if not np.isfinite(proposals).all():
            raise StateError("a controller gave an action that is NaN or infinite; it cannot be measured")
        arm = chance.integers(arms, size=n) if arms > 1 else np.zeros(n, np.intp)
        if arms > 1:
            others = (arm + 1 + np.arange(arms - 1)[:, None]) % arms  # (arms - 1, n): who does not drive
            truth[rows, others] = np.stack(worlds.peek(proposals[others, rows])[:2], axis=-1)
        observations, rewards, terminated, truncated, infos = worlds.step(proposals[arm, rows])
        if arms > 1:
            truth[rows, arm] = np.stack([rewards, infos["cost"]], axis=-1)
            told = score(truth * (1.0, -1.0), arm)
            sums["correct"] += told.correct & live
            sums["gap"] += told.gap * live
            sums["loss"] += told.loss * live
            sums["judged"] += live
            sums["switches"] += (arm != last) & (last >= 0) & live
            last = arm
        sums["return"] += rewards * live
        sums["cost"] += infos["cost"] * live
        sums["length"] += live
        over = terminated | truncated
        live &= ~over
        if live.any() and over.any():
            # Worlds that are done take no further step: begin anew there, and count nothing more.
            observations, _ = worlds.reset(options={"reset_mask": over})
    whole = ("length", "correct", "judged", "switches")
    return {name: total.astype(np.int64) if name in whole else total for name, total in sums.items()}
