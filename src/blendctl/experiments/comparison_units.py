"""The comparison's kinds of unit: a block of episodes driven by one method, and the training of a method."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from blendctl.controllers import Controller, open_controller
from blendctl.envs import find_task
from blendctl.experiments.units import Result, unit_kind
from blendctl.switches.driving import drive, open_worlds
from blendctl.switches.log_collection import log_drives
from blendctl.switches.methods import find_method
from blendctl.switches.offline import fit

__all__ = ["episodes", "train", "EPISODES", "TRAIN"]

EPISODES = f"{__name__}:episodes"
TRAIN = f"{__name__}:train"


@unit_kind(version=1)
def episodes(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Drive `count` episodes from `seed` on with a method and its setting; a row per episode."""
    p = parameters
    method = find_method(p["method"])
    learned = {} if before is None else before.values
    started = time.perf_counter()
    worlds = open_worlds(p["world"], p["count"], steps=p["steps"])
    try:
        found = drive(
            worlds,
            _team(p),
            make=lambda seat: method.make(seat, p["setting"], learned),
            seed=p["seed"],
            judge_every=p["judge_every"],
        )
    finally:
        worlds.close()
    rows = [{name: None if math.isnan(value) else value for name, value in row.items()} for row in found.rows()]
    return Result({"rows": rows}, timing={"seconds": time.perf_counter() - started})


@unit_kind(version=1)
def train(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Train the offline switch: log drives from `seed` on, and fit."""
    p, setting = parameters, parameters["setting"]
    team = _team(p)
    started = time.perf_counter()
    steps = p["steps"] or find_task(p["world"]).max_episode_steps
    worlds = open_worlds(p["world"], setting["episodes"], steps=steps)
    try:
        log = log_drives(
            worlds, team, seed=p["seed"], every=setting["every"], discount=setting["discount"], steps=steps
        )
    finally:
        worlds.close()
    model = fit(
        log,
        arms=len(team),
        every=setting["every"],
        cost_weight=setting["cost_weight"],
        ridge=setting["ridge"],
    )
    return Result(model.to_dict(), timing={"seconds": time.perf_counter() - started})


def _team(parameters: Mapping[str, Any]) -> list[Controller]:
    return [open_controller(spec, world=parameters["world"]) for spec in parameters["controllers"]]
