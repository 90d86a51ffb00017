"""The unit function of a certificate: independent episodes of one driver, each from the same initial state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import gymnasium
import pyarrow as pa

from blendctl.bandit.rules import Fixed
from blendctl.blender import Blender
from blendctl.blender.blend_dir import read_blend_dir
from blendctl.blender.run_warnings import FEATURE
from blendctl.controllers import open_controller
from blendctl.envs import SingleWorld
from blendctl.envs.environment import EnvironmentSpec
from blendctl.episodes import SUMS, drive_blend
from blendctl.experiments.units import Result, unit_kind
from blendctl.features import SimulatedLookAhead

CERTIFIED = f"{__name__}:certified_episodes"


@unit_kind(version=2)
def certified_episodes(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run `count` episodes from `seed` on, each with a blender as it was saved; a row per episode.

    Parameters: world, or environment (the arguments of `EnvironmentSpec`); blend (a directory, None for a
    controller alone), controllers, names, changes (arguments of `Blender`), steps (None: the world's limit).
    """
    p = parameters
    make = blender_maker(p)
    started = time.perf_counter()
    with closing(open_environment(p)) as env:
        seeds = range(int(p["seed"]), int(p["seed"]) + int(p["count"]))
        rows = [row for seed in seeds for row in drive_blend(env, make(seed), seed=seed, watch=False)]
    table = pa.Table.from_pylist(rows).select(SUMS)
    return Result({}, table, {"seconds": time.perf_counter() - started})


def blender_maker(parameters: Mapping[str, Any]) -> Callable[[int], Blender]:
    """Return a function that makes the driver of an episode from its seed: frozen, and as it was saved."""
    p = parameters
    changes = dict(p["changes"]) | {"frozen": True}
    if p["blend"] is None:
        alone = [open_controller(spec, world=p["world"] or None) for spec in p["controllers"]]
        return lambda seed: Blender(alone, list(p["names"]), features="one-hot", rule=Fixed(0), seed=seed, **changes)
    blend = read_blend_dir(p["blend"])
    drivers = blend.open_controllers(p["controllers"])
    settings: dict[str, Any] = {"names": list(blend.names)} | blend.settings | changes

    def make(seed: int) -> Blender:
        # Without new seeds every episode would draw the same random numbers.
        features = settings["features"]
        if isinstance(features, SimulatedLookAhead):
            features = replace(features, seed=seed)
        blender = Blender(drivers, bandit=blend.file, seed=seed, **settings | {"features": features})
        blender.bandit.reseed(seed)
        if blender.feature.warning is not None:  # once per episode would be too often
            blender.warnings.say(blender.feature.warning, key=FEATURE, logged=True)
        return blender

    return make


def open_environment(parameters: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Make the environment: a world of blendctl, or any other with a wrapper that records costs."""
    if parameters["world"]:
        return SingleWorld(parameters["world"], max_episode_steps=parameters["steps"])
    return EnvironmentSpec(**parameters["environment"]).make()
