"""Run whole episodes with a switch or a blend, and keep return, cost and cost components of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import pyarrow as pa
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from blendctl.blender import Blender, run
from blendctl.controllers.base import Controller
from blendctl.rollout import Switch, rollout
from blendctl.switches.base import RolloutContext, switch_seed

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Outcomes:
    """Whole episodes, in order of their seeds."""

    returns: FloatArray  # (episodes,)
    costs: FloatArray  # (episodes,)
    lengths: FloatArray  # (episodes,) control steps
    components: Mapping[str, FloatArray] = field(default_factory=dict)  # "cost_NAME" -> (episodes,)

    @property
    def points(self) -> FloatArray:
        """Return and cost, (episodes, 2)."""
        return np.stack([self.returns, self.costs], axis=1)

    def table(self) -> pa.Table:
        """Return a table with a row per episode."""
        columns = {"return": self.returns, "cost": self.costs, "length": self.lengths}
        return pa.table(columns | dict(self.components))

    @classmethod
    def of(cls, tables: Sequence[pa.Table]) -> Outcomes:
        """Join tables, in order; a missing cost component counts as 0."""
        names = dict.fromkeys(name for table in tables for name in table.column_names)
        columns = {
            name: np.concatenate(
                [
                    table.column(name).to_numpy() if name in table.column_names else np.zeros(table.num_rows)
                    for table in tables
                ]
            )
            for name in names
        }
        return cls(columns.pop("return"), columns.pop("cost"), columns.pop("length"), columns)


def drive_switch(
    open_worlds: Callable[[int], VectorEnv[Any, Any, Any]],
    make: Callable[[RolloutContext], Switch],
    controllers: Sequence[Controller],
    *,
    seed: int,
    episodes: int,
    at_once: int,
    watch: Callable[[FloatArray], None] | None = None,
) -> Outcomes:
    """Run episodes with seeds seed, seed + 1, ..., `at_once` of them in lock-step in open_worlds(count).

    `watch` is called with the observations (B, size) of every step.
    """
    rows: dict[int, dict[str, float]] = {}  # episode -> sums
    done = 0
    while done < episodes:
        count = min(at_once, episodes - done)
        worlds = open_worlds(count)
        sums: dict[str, FloatArray] = {}
        switch = make(RolloutContext(controllers, worlds, switch_seed(seed + done)))
        for batch in rollout(worlds, switch, controllers=controllers, seed=seed + done):
            values = {"return": batch.reward, "cost": batch.cost, "length": np.ones(len(batch.reward))}
            values |= {name: np.asarray(v) for name, v in batch.infos.items() if name.startswith("cost_")}
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value * batch.counted
            if watch is not None:
                watch(batch.input.observations)
        for row in range(count):
            rows[done + row] = {name: float(value[row]) for name, value in sums.items()}
        done += count
    columns = {name: np.array([rows[at].get(name, 0.0) for at in range(episodes)]) for name in rows[0]}
    return Outcomes(columns.pop("return"), columns.pop("cost"), columns.pop("length"), columns)


def drive_blend(env: gymnasium.Env[Any, Any], blender: Blender, *, seed: int, episodes: int) -> Outcomes:
    """Run episodes with a blender, as `run` drives it, with seeds seed, seed + 1, ..."""
    sums = np.zeros((3, episodes))
    components: dict[str, FloatArray] = {}
    watched = _CostWatcher(env)
    with blender:
        for record in run(watched, blender, episodes=episodes, seed=seed):
            cost = 0.0 if record.cost is None else record.cost
            sums[:, record.episode] += record.reward, cost, record.steps
            if record.ended:
                for name, value in watched.take().items():
                    components.setdefault(name, np.zeros(episodes))[record.episode] = value
    returns, costs, lengths = sums
    return Outcomes(returns, costs, lengths, components)


class _CostWatcher(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Add up the components of the cost of an episode."""

    only_watches = True  # copies of the environment leave it out

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._sums: dict[str, float] = {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and add the cost components."""
        result = self.env.step(action)
        for name, value in result[4].items():
            if name.startswith("cost_") and np.ndim(value) == 0:
                self._sums[name] = self._sums.get(name, 0.0) + float(value)
        return result

    def take(self) -> dict[str, float]:
        """Return and clear the sums of the episode."""
        sums, self._sums = self._sums, {}
        return sums
