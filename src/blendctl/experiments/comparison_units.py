"""The unit functions of a comparison: a block of episodes with one method, and the training of a method."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa

from blendctl.blender.blend_dir import read_blend_dir
from blendctl.controllers import Controller, open_controller
from blendctl.envs.environment import EnvironmentSpec
from blendctl.episodes import SUMS, drive_blend, run_episodes
from blendctl.experiments.certify_units import blender_maker
from blendctl.experiments.method_training import train_method
from blendctl.experiments.units import Result, unit_kind
from blendctl.switches.base import open_worlds
from blendctl.switches.methods import find_method

EPISODES = f"{__name__}:episodes"
TRAIN = f"{__name__}:train"
BLEND_EPISODES = f"{__name__}:blend_episodes"


@unit_kind(version=3)
def episodes(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run `count` episodes from `seed` on with a method and its setting; a row per episode."""
    p = parameters
    method = find_method(p["method"])
    learned = {} if before is None else before.values
    started = time.perf_counter()
    with closing(open_worlds(_place(p), p["count"], steps=p["steps"])) as worlds:
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
    """Train a method on episodes from `seed` on."""
    p = parameters
    started = time.perf_counter()
    learned = train_method(
        p["method"],
        p["setting"],
        open_worlds=lambda count: open_worlds(_place(p), count, steps=p["steps"]),
        controllers=_controllers(p),
        seed=p["seed"],
    )
    return Result(learned, timing={"seconds": time.perf_counter() - started})


@unit_kind(version=2)
def blend_episodes(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run `count` episodes from `seed` on with a saved blend; every episode starts with it as it was saved."""
    p = parameters
    place = _place(p)
    spec = place if isinstance(place, EnvironmentSpec) else EnvironmentSpec(place, episode_steps=p["steps"])
    make = blender_maker({"blend": p["blend"], "controllers": p["controllers"], "changes": {}})
    started = time.perf_counter()
    with closing(spec.make()) as env:
        seeds = range(p["seed"], p["seed"] + p["count"])
        rows = [row for seed in seeds for row in drive_blend(env, make(seed), seed=seed)]
    table = pa.Table.from_pylist(rows).select([*SUMS, "driven_0", "switches", "moved"])
    return Result({}, table, {"seconds": time.perf_counter() - started})


def describe_blend(directory: str) -> dict[str, Any]:
    """Return the parameters of a unit that name a saved blend, with a digest of its files."""
    blend = read_blend_dir(directory)
    files = [blend.file.read_bytes(), (blend.path / "run.json").read_bytes()]
    return {"blend": str(blend.path.resolve()), "digest": hashlib.sha256(b"".join(files)).hexdigest()}


def _place(parameters: Mapping[str, Any]) -> str | EnvironmentSpec:
    environment = parameters.get("environment")
    return str(parameters["world"]) if environment is None else EnvironmentSpec(**environment)


def _controllers(parameters: Mapping[str, Any]) -> list[Controller]:
    world = parameters["world"] if "environment" not in parameters else None
    return [open_controller(spec, world=world) for spec in parameters["controllers"]]
