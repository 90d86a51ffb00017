"""The kinds of unit of a comparison: a block of episodes with one method, and the training of a method."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from blendctl.controllers import Controller, open_controller
from blendctl.envs import find_task
from blendctl.episodes import run_episodes
from blendctl.experiments.units import Result, unit_kind
from blendctl.switches.base import open_worlds
from blendctl.switches.log_collection import log_drives
from blendctl.switches.methods import find_method
from blendctl.switches.offline import fit

EPISODES = f"{__name__}:episodes"
TRAIN = f"{__name__}:train"


@unit_kind(version=2)
def episodes(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run `count` episodes from `seed` on with a method and its setting; a row per episode."""
    p = parameters
    method = find_method(p["method"])
    learned = {} if before is None else before.values
    started = time.perf_counter()
    with closing(open_worlds(p["world"], p["count"], steps=p["steps"])) as worlds:
        sums = run_episodes(
            worlds,
            _controllers(p),
            make=lambda context: method.make(replace(context, lookahead=p.get("lookahead")), p["setting"], learned),
            seed=p["seed"],
            judge_every=p["judge_every"],
        )
    return Result({}, sums.table(), {"seconds": time.perf_counter() - started})


@unit_kind(version=1)
def train(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Train the offline switch: log rollouts from `seed` on, and fit."""
    p, setting = parameters, parameters["setting"]
    controllers = _controllers(p)
    started = time.perf_counter()
    steps = p["steps"] or find_task(p["world"]).max_episode_steps
    with closing(open_worlds(p["world"], setting["episodes"], steps=steps)) as worlds:
        log = log_drives(
            worlds, controllers, seed=p["seed"], every=setting["every"], discount=setting["discount"], steps=steps
        )
    model = fit(
        log, arms=len(controllers), every=setting["every"], cost_weight=setting["cost_weight"], ridge=setting["ridge"]
    )
    return Result(model.to_dict(), timing={"seconds": time.perf_counter() - started})


def _controllers(parameters: Mapping[str, Any]) -> list[Controller]:
    return [open_controller(spec, world=parameters["world"]) for spec in parameters["controllers"]]
