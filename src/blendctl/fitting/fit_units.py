"""The unit functions of a fit: episodes of a switch, look-ahead networks, episodes of a candidate."""

from __future__ import annotations

import functools
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
from gymnasium.vector import VectorEnv

from blendctl.arrays import FloatArray
from blendctl.controllers import Controller, LookAheadNetwork, open_controller, read_lookahead, write_lookahead
from blendctl.controllers.base import Stateful
from blendctl.envs.environment import EnvironmentSpec
from blendctl.episodes import drive_blend, run_episodes
from blendctl.experiments.file_text import file_text, read_file_text
from blendctl.experiments.units import Result, unit_kind
from blendctl.features.flattening import flat_controllers
from blendctl.fitting.contexts import Candidate, ContextTask, EnvSource, learn_network
from blendctl.fitting.outcomes import Outcomes
from blendctl.fitting.plan import FitPlan
from blendctl.fitting.unit_progress import reporting
from blendctl.rollout import StepBatch
from blendctl.switches.methods import find_method

DRIVE, LEARN, BLEND_DRIVE = (f"{__name__}:{name}" for name in ("drive", "learn", "drive_candidate"))
WATCHED_ROWS = 500  # most observations that a unit keeps


@dataclass(frozen=True)
class Place:
    """An environment with its controllers, as a unit needs them."""

    source: EnvSource
    controllers: Sequence[Controller]

    @functools.cached_property
    def env(self) -> gymnasium.Env[Any, Any]:
        """One environment."""
        return self.source.make()

    @functools.cached_property
    def flat(self) -> list[Controller]:
        """The controllers, for vector observations."""
        return flat_controllers(self.controllers, self.env)

    @functools.cached_property
    def stateful(self) -> bool:
        """Whether a controller has memory: it drives one environment at a time, from the start of an episode."""
        return any(isinstance(controller, Stateful) for controller in self.controllers)

    @functools.cached_property
    def worlds(self) -> Callable[[int], VectorEnv[Any, Any, Any]]:
        """Function from a number to as many environments in lock-step, opened once."""
        return functools.cache(self.source.open)

    def task(self, parameters: Mapping[str, Any]) -> ContextTask:
        """Return the task of the candidates."""
        p = parameters
        return ContextTask(self.source, self.controllers, p["weight"], p["length"], p["seed"])


_passed: dict[str, Place] = {}  # unnamed objects of the user; they exist in this process only


def pass_place(place: Place) -> dict[str, Any]:
    """Register objects of this process; return the parameters of units that use them."""
    token = uuid.uuid4().hex
    _passed[token] = place
    return {"passed": token}


def drop_place(parameters: Mapping[str, Any]) -> None:
    """Forget the objects of this process."""
    _passed.pop(parameters.get("passed", ""), None)


def open_place(parameters: Mapping[str, Any]) -> Place:
    """Return the environment and the controllers of a unit."""
    if "passed" in parameters:
        return _passed[parameters["passed"]]
    return _open(json.dumps([parameters["environment"], parameters["controllers"]]))


@functools.lru_cache(maxsize=1)
def _open(text: str) -> Place:
    environment, controllers = json.loads(text)
    spec = EnvironmentSpec(**environment)
    return Place(EnvSource(spec.make, spec), [open_controller(one, world=spec.world) for one in controllers])


@unit_kind(version=2)
def drive(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run `count` episodes from `first_seed` on with a method of `compare`; a row per episode.

    Parameters: method, setting, learned (of its training), order (of the controllers), at_once, watch (keep
    observations).
    """
    p = parameters
    place, method = open_place(p), find_method(p["method"])
    seen: list[FloatArray] = []
    steps = 0

    def watch(batch: StepBatch) -> None:
        nonlocal steps
        steps += len(batch.input.observations)
        if p["watch"]:
            seen.append(batch.input.observations.copy())

    started = time.perf_counter()
    tables = []
    for done in range(0, p["count"], p["at_once"]):
        episodes = run_episodes(
            place.worlds(min(p["at_once"], p["count"] - done)),
            [place.flat[arm] for arm in p["order"]],
            make=lambda context: method.make(context, p["setting"], p["learned"]),
            seed=p["first_seed"] + done,
            components=True,
            on_step=watch,
        )
        tables.append(episodes.table(with_choices=False))
    rows = np.concatenate(seen) if seen else np.zeros((0, 0))
    kept = rows[np.linspace(0, len(rows) - 1, min(len(rows), WATCHED_ROWS)).astype(int)]
    values = {"steps": steps, "observations": kept.tolist()}
    return Result(values, Outcomes.of(tables).table(), {"seconds": time.perf_counter() - started})


@unit_kind(version=1)
def learn(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Train look-ahead networks for one hold. Parameters: hold, plan, weight, length, seed."""
    p = parameters
    started = time.perf_counter()
    plan = FitPlan(**p["plan"] | {"holds": tuple(p["plan"]["holds"])})
    with reporting() as report:
        network = learn_network(open_place(p).task(p), p["hold"], plan=plan, on_progress=report)
    card = {key: value for key, value in network.card.items() if key != "seconds"}  # equal runs make equal files
    data = file_text(functools.partial(write_lookahead, replace(network, card=card)))
    return Result({"network": data}, timing={"seconds": time.perf_counter() - started})


def read_learned(result: Result | None) -> LookAheadNetwork | None:
    """Return the networks of a `learn` unit."""
    return None if result is None else read_file_text(result.values["network"], read_lookahead)


@unit_kind(version=2)
def drive_candidate(parameters: Mapping[str, Any], before: Result | None) -> Result:
    """Run `count` episodes from `first_seed` on with a candidate, and the networks of the unit before.

    Parameters: candidate, names, objectives, fallback, weight, length, seed.
    """
    p = parameters
    place = open_place(p)
    started = time.perf_counter()
    blender = Candidate(**p["candidate"]).blender(place.task(p), read_learned(before), p)
    rows = drive_blend(place.env, blender, seed=p["first_seed"], episodes=p["count"])
    outcomes = Outcomes.of([pa.Table.from_pylist([row]) for row in rows])
    return Result({}, outcomes.table(), {"seconds": time.perf_counter() - started})
