"""Train the methods of a comparison that need training, on separate episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.controllers import Controller
from blendctl.episodes import EpisodeSums
from blendctl.errors import InputError
from blendctl.experiments.scales import measure_scales
from blendctl.rollout import StepBatch, Switch, rollout
from blendctl.switches.base import RolloutContext, switch_seed
from blendctl.switches.log_collection import log_drives
from blendctl.switches.offline import fit
from blendctl.switches.single_controller import SingleController
from blendctl.switches.threshold import Threshold, ThresholdSwitch, best_threshold, flatten_rows, list_thresholds

OpenWorlds = Callable[[int], Any]  # opens a number of worlds in lock-step


def train_method(
    name: str, setting: Mapping[str, Any], *, open_worlds: OpenWorlds, controllers: Sequence[Controller], seed: int
) -> dict[str, Any]:
    """Train a method on episodes from `seed` on; return the data for its switch, as JSON data."""
    if name == "threshold":
        return _sweep(setting, open_worlds, controllers, seed).to_dict()
    with closing(open_worlds(setting["episodes"])) as worlds:
        log = log_drives(
            worlds,
            controllers,
            seed=seed,
            every=setting["every"],
            discount=setting["discount"],
            episodes=_each(worlds, setting["episodes"]),
        )
    model = fit(
        log, arms=len(controllers), every=setting["every"], cost_weight=setting["cost_weight"], ridge=setting["ridge"]
    )
    return model.to_dict()


def _sweep(
    setting: Mapping[str, Any], open_worlds: OpenWorlds, controllers: Sequence[Controller], seed: int
) -> Threshold:
    """Return the best threshold on an entry of the observation; utility is in units of the controllers' difference."""
    episodes = setting["episodes"]
    alone, seen = [], []
    with closing(open_worlds(episodes)) as worlds:
        flat = flatten_rows(worlds)
        for arm in range(len(controllers)):
            sums = EpisodeSums(worlds.num_envs)
            for batch in _drive(worlds, SingleController(arm), controllers, seed, episodes):
                sums.add(batch)
                seen.append(flat(batch.input.observations))
            alone.append(_points(sums))
    scales = measure_scales(alone)
    thresholds = list_thresholds(np.concatenate(seen), len(controllers), most=setting["tried"], seed=seed)
    if not thresholds:
        raise InputError("no entry of the observation varies: there is no threshold to switch at")

    def utilities(tried: Sequence[Threshold], count: int) -> list[float]:
        found = []
        with closing(open_worlds(count)) as worlds:
            for one in tried:
                switch = ThresholdSwitch(RolloutContext(controllers, worlds, switch_seed(seed)), one)
                sums = EpisodeSums(worlds.num_envs)
                for batch in _drive(worlds, switch, controllers, seed + episodes, count):
                    sums.add(batch)
                found.append(float(scales.utility(_points(sums)).mean()))
        return found

    return best_threshold(thresholds, utilities, episodes=episodes)


def _drive(
    worlds: Any, switch: Switch, controllers: Sequence[Controller], seed: int, episodes: int
) -> Iterator[StepBatch]:
    """Run at least `episodes` episodes in total, equally many in each world; yield the steps."""
    return rollout(worlds, switch, controllers=controllers, seed=seed, episodes=_each(worlds, episodes))


def _each(worlds: Any, episodes: int) -> int:
    """Return the episodes of each world that make at least `episodes` in all."""
    return int(-(-episodes // worlds.num_envs))


def _points(sums: EpisodeSums) -> FloatArray:
    episodes = sums.episodes()
    return np.stack([episodes.returns, episodes.costs], axis=1)
