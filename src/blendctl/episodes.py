"""Sum up episodes: the one set of columns that evaluation, comparison, reproduction, fits and certificates share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from blendctl import pareto
from blendctl.arrays import FloatArray
from blendctl.blender import Blender, run
from blendctl.blender.counterfactual import correct_choices
from blendctl.blender.episode_stats import EpisodeStats
from blendctl.controllers import Controller
from blendctl.rollout import Rng, StepBatch, rollout
from blendctl.switches.base import RolloutContext, Switch, switch_seed

if TYPE_CHECKING:
    import pyarrow as pa

# Columns of a table of episodes, with their Arrow types.
COLUMNS = {
    "return": "float64",
    "cost": "float64",
    "length": "int64",  # control steps
    "correct_ratio": "float64",  # of the evaluated choices; null if there are none
    "pareto_regret": "float64",  # sum of the evaluated choices' Pareto gaps
    "max_loss": "float64",  # mean of the evaluated choices' maximal losses
    "switches": "int64",  # changes of the controller that drives
    "share_performant": "float64",  # first controller's share, by steps or by weight
}

SUMS = ("return", "cost", "length")  # the columns that every table of episodes has


class Scores(NamedTuple):
    """Per-choice metrics, each of shape (n,)."""

    correct: NDArray[np.bool_]  # no arm is as good in all objectives and clearly better in one
    gap: FloatArray  # Pareto suboptimality gap
    loss: FloatArray  # maximal loss


def score(truth: FloatArray, arm: NDArray[np.intp]) -> Scores:
    """Score chosen arms (n,) against counterfactual feedback (n, arms, objectives).

    >>> score(np.array([[[0.1, 0.0], [0.2, 0.0]]]), np.array([0]))
    Scores(correct=array([False]), gap=array([0.]), loss=array([0.1]))
    """
    rows = np.arange(len(arm))
    return Scores(
        correct=correct_choices(truth, arm),
        gap=np.asarray(pareto.suboptimality_gap(truth)[rows, arm]),
        loss=np.asarray(pareto.maximal_loss(truth)[rows, arm]),
    )


@dataclass(frozen=True)
class Episodes:
    """Sums over the steps of whole episodes, one entry per episode."""

    returns: FloatArray  # (episodes,)
    costs: FloatArray  # (episodes,)
    lengths: FloatArray  # (episodes,) control steps
    driven: FloatArray  # (episodes,) steps of the first controller, or its weight
    switches: FloatArray  # (episodes,) changes of the controller that drives
    judged: FloatArray  # (episodes,) choices that were evaluated against the other arms
    correct: FloatArray  # (episodes,) correct choices among them
    gaps: FloatArray  # (episodes,) sum of their Pareto gaps
    losses: FloatArray  # (episodes,) sum of their maximal losses
    moved: FloatArray  # (episodes,) summed lengths of the action changes between control steps
    components: Mapping[str, FloatArray] = field(default_factory=dict)  # "cost_NAME" -> (episodes,), if asked for

    @property
    def shares(self) -> FloatArray:
        """First controller's share, (episodes,), by steps or by weight."""
        return np.asarray(self.driven / self.lengths)

    @property
    def correct_ratio(self) -> FloatArray:
        """Share of correct choices, (episodes,); NaN where none was evaluated."""
        unknown = np.full(len(self.judged), np.nan)
        return np.asarray(np.divide(self.correct, self.judged, out=unknown, where=self.judged > 0))

    def table(self, *, with_choices: bool = True) -> pa.Table:
        """Return the sums as a table, a row per episode; without choices only return, cost, length and components."""
        import pyarrow as pa

        columns = dict(zip(SUMS, (self.returns, self.costs, self.lengths.astype(np.int64)), strict=True))
        if with_choices:
            counts = {"correct": self.correct, "judged": self.judged, "switches": self.switches}
            columns |= {"moved": self.moved, "gap": self.gaps, "loss": self.losses, "driven_0": self.driven}
            columns |= {name: values.astype(np.int64) for name, values in counts.items()}
        return pa.table(columns | dict(self.components))


def episode_columns(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a row of sums into the columns of `COLUMNS`; leave out columns without data."""
    row = {name: sums[name] for name in SUMS}
    if "switches" in sums:
        row["switches"] = sums["switches"]
    if "driven_0" in sums:
        row["share_performant"] = sums["driven_0"] / sums["length"]
    if sums.get("judged"):
        row |= {
            "correct_ratio": sums["correct"] / sums["judged"],
            "pareto_regret": sums["gap"],
            "max_loss": sums["loss"] / sums["judged"],
        }
    return row


def jerk_columns(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Return `jerk`, the mean change of the action between two control steps; nothing if it was not measured."""
    if sums.get("moved") is None:
        return {}
    return {"jerk": sums["moved"] / max(sums["length"] - 1, 1)}


class EpisodeSums:
    """Sum up every counted episode of a rollout of B worlds."""

    def __init__(self, worlds: int, *, components: bool = False) -> None:
        self._now = np.zeros((len(fields(Episodes)) - 1, worlds))  # episodes that have not ended, without components
        self._components: dict[str, FloatArray] | None = {} if components else None  # by name, (worlds,)
        self._last: FloatArray | None = None  # (B, action_size) actions of the step before, NaN at a start
        self._done: list[tuple[int, FloatArray, dict[str, float]]] = []  # world, sums of its episode, components

    def add(self, batch: StepBatch) -> None:
        """Add a step."""
        counted, last = batch.counted, batch.input.last_arm
        switched = (batch.arm != last) & (last >= 0)
        self._now[:5] += np.stack([batch.reward, batch.cost, np.ones(len(last)), batch.share, switched]) * counted
        if batch.counterfactual is not None:
            feedback = np.stack([batch.counterfactual["reward"].T, -batch.counterfactual["cost"].T], axis=-1)
            scores = score(feedback, batch.arm)
            self._now[5:9] += np.stack([np.ones(len(last)), *scores]) * counted
        if self._last is not None:
            change = np.linalg.norm(batch.actions - self._last, axis=1)
            self._now[9] += np.where(np.isfinite(change), change, 0.0) * counted
        self._last = batch.actions.astype(np.float64)
        self._last[batch.ended] = np.nan
        parts = self._components
        if parts is not None:
            for name in (name for name in batch.infos if name.startswith("cost_")):
                parts[name] = parts.get(name, 0.0) + np.asarray(batch.infos[name]) * counted
        if batch.ended.any():
            for world in np.flatnonzero(batch.ended & counted):
                components = {name: float(values[world]) for name, values in (parts or {}).items()}
                self._done.append((int(world), self._now[:, world].copy(), components))
            for values in (*self._now, *(parts or {}).values()):
                values[batch.ended] = 0.0

    def episodes(self) -> Episodes:
        """Return the episodes that have ended, those of the first world first."""
        ordered = sorted(self._done, key=lambda item: item[0])
        sums = np.array([values for _, values, _ in ordered]).reshape(-1, len(self._now)).T
        parts = {name: np.array([row.get(name, 0.0) for *_, row in ordered]) for name in self._components or ()}
        return replace(Episodes(*sums), components=parts)


def run_episodes(
    worlds: Any,
    controllers: Sequence[Controller],
    *,
    make: Callable[[RolloutContext], Switch],
    seed: int,
    rngs: Sequence[Rng] | None = None,
    judge_every: int = 0,
    components: bool = False,
    on_step: Callable[[StepBatch], None] | None = None,
) -> Episodes:
    """Run one episode in each world, world i with seed + i, and return their sums.

    Unless `rngs` are passed, the controllers' action noise depends on `seed` alone, and every controller is asked in
    every step: all switches get the same layouts and the same noise. With judge_every = n, every n-th step evaluates
    all controllers from the same state, and scores the choice. `components` adds up the parts of the cost, too.
    """
    switch = make(RolloutContext(controllers, worlds, switch_seed(seed)))
    sums = EpisodeSums(worlds.num_envs, components=components)
    for batch in rollout(
        worlds, switch, controllers=controllers, seed=seed, rngs=rngs, counterfactual_every=judge_every
    ):
        sums.add(batch)
        if on_step is not None:
            on_step(batch)
    return sums.episodes()


def drive_blend(
    env: gymnasium.Env[Any, Any], blender: Blender, *, seed: int, episodes: int = 1, watch: bool = True
) -> list[dict[str, Any]]:
    """Drive episodes with a blender, seeds seed, seed + 1, ..., and close it; return the sums of each.

    `watch` adds up how far the actions move, and the components of the cost.
    """
    watched = _EpisodeWatcher(env) if watch else None
    rows, stats = [], EpisodeStats(blender.names)
    with blender:
        for record in run(env if watched is None else watched, blender, episodes=episodes, seed=seed):
            stats.add(record)
            if record.ended:
                row = {"return": stats.returns[0], "cost": stats.costs[0], "length": stats.steps}
                row |= {"driven_0": float(stats.driven[blender.names[0]]), "switches": stats.switches}
                rows.append(row if watched is None else row | watched.take())
                stats = EpisodeStats(blender.names)
    return rows


class _EpisodeWatcher(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Add up how far the actions of an episode move, and the components of its cost; it changes nothing."""

    only_watches = True  # a copy of the environment need not have it

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._sums = {"moved": 0.0}
        self._last: FloatArray | None = None

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step, and add."""
        now = np.asarray(action, np.float64).reshape(-1)
        if self._last is not None:
            self._sums["moved"] += float(np.linalg.norm(now - self._last))
        self._last = now
        result = self.env.step(action)
        for name, value in result[4].items():
            if name.startswith("cost_") and np.ndim(value) == 0:
                self._sums[name] = self._sums.get(name, 0.0) + float(value)
        return result

    def take(self) -> dict[str, float]:
        """Return the sums of the episode, and begin anew."""
        sums, self._sums, self._last = self._sums, {"moved": 0.0}, None
        return sums
