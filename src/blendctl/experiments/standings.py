"""The standings of a comparison: means, intervals and corner scores, with fairly chosen settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray
from blendctl.errors import InputError
from blendctl.experiments.compare import ALONE, Compared
from blendctl.experiments.corner import Corner, score_episodes
from blendctl.statistics import bootstrap_interval, mean_columns, proportion_interval
from blendctl.switches.methods import Method

BOOTSTRAP_SEED = 20
COST_BUDGET = 25.0  # per episode, the cost limit of Safety Gym: `over_budget` is the share of episodes above it
# Name in the summary -> column of the table.
SHOWN_MEANS = {"share_mean": "share_performant", "switches_mean": "switches", "correct_ratio": "correct_ratio"}
SHOWN_MEANS["jerk_mean"] = "jerk"
MEASURES = ("return", "cost", "length", *SHOWN_MEANS.values())


@dataclass(frozen=True)
class Sample:
    """The episodes of one method: of every setting, with the setting that represents it.

    A method that was compared with several look-ahead networks has the same episodes with each of them.
    """

    settings: list[dict[str, Any]]
    measures: dict[str, FloatArray]  # each (networks, settings, episodes)
    chosen: NDArray[np.intp]  # (episodes,) setting that represents the method in each episode
    choice: str  # how it was chosen: "fixed", "on other episodes", "on the same episodes", "no corner: ..."

    def shown(self, measure: str) -> FloatArray:
        """Return a measure (networks, episodes) of the episodes that represent the method."""
        values = self.measures[measure]
        return np.asarray(values[:, self.chosen, np.arange(values.shape[2])])

    def points(self) -> FloatArray:
        """Return (networks, episodes, 2): return and cost of the episodes that represent the method."""
        return np.stack([self.shown("return"), self.shown("cost")], axis=-1)

    def sweep(self) -> FloatArray:
        """Return (settings, networks, episodes, 2): return and cost of all episodes."""
        return np.stack([self.measures["return"], self.measures["cost"]], axis=-1).swapaxes(0, 1)


def standings(comparison: Compared, table: pa.Table) -> dict[str, Any]:
    """Sum up a comparison's table as JSON data: `{"methods": {name: {"return_mean", ..., "corner_score"}}}`."""
    methods = comparison.methods
    samples = _samples(methods, table, block=comparison.block)
    performant, safe = (samples[name].points()[0] for name in ALONE)
    line = [performant.mean(axis=0).tolist(), safe.mean(axis=0).tolist()]
    period = _control_period(comparison.world)
    corner = {"return": float(performant[:, 0].mean()), "cost": float(safe[:, 1].mean())}
    return {
        "world": comparison.world,
        "controllers": list(comparison.controllers),
        "episodes": comparison.episodes,
        "seed": comparison.seed,
        "steps": comparison.steps,
        "corner": corner | {"reason": Corner(*line).reason()},
        "mixing_line": line,
        "methods": {
            name: _summary(sample, performant, safe, help=methods[name].help)
            | {"controllers": list(comparison.controllers_of(methods[name]))}
            | {"switches_per_second": _per_second(sample, period)}
            for name, sample in samples.items()
        },
    }


def _per_second(sample: Sample, period: float | None) -> float | None:
    """Return switches per second of driving, None if the control period is not known."""
    switches, steps = sample.shown("switches"), sample.shown("length").sum()
    return None if period is None or not np.isfinite(switches).all() else float(switches.sum() / (steps * period))


def _control_period(world: str) -> float | None:
    """Return the seconds of a control step in a world of blendctl, None elsewhere."""
    from blendctl.envs.interface import describe_interface

    try:
        return float(describe_interface(world)["control_period"])
    except InputError:
        return None


def mark_shown(comparison: Compared, table: pa.Table) -> pa.Table:
    """Add the column `shown`: whether an episode represents its method."""
    samples = _samples(comparison.methods, table, block=comparison.block)
    marks = [
        bool(samples[row["method"]].chosen[row["seed"] - comparison.seed] == row["setting"])
        for row in table.select(["method", "setting", "seed"]).to_pylist()
    ]
    return table.append_column("shown", pa.array(marks))


def _samples(methods: Mapping[str, Method], table: pa.Table, *, block: int) -> dict[str, Sample]:
    """Read the table; choose a setting for methods that were swept."""
    columns = {name: _column(table, name) for name in MEASURES}
    names, numbers = np.array(table["method"].to_pylist()), _column(table, "networks")
    samples: dict[str, Sample] = {}
    for name, method in methods.items():
        rows, count = names == name, len(method.settings)
        networks = len(np.unique(numbers[rows]))
        measures = {key: columns[key][rows].reshape(networks, count, -1) for key in MEASURES}
        episodes = measures["return"].shape[2]
        sample = Sample(method.settings, measures, np.full(episodes, method.shown or 0), "fixed")
        if method.shown is None and count > 1:
            performant, safe = (samples[key].points()[0] for key in ALONE)
            chosen, choice = _choose(sample.sweep().mean(axis=1), performant, safe, block=block)
            sample = replace(sample, chosen=chosen, choice=choice)
        samples[name] = sample
    return samples


def _column(table: pa.Table, name: str) -> FloatArray:
    """Return a column, NaN where it is null or an older table lacks it."""
    if name not in table.column_names:
        return np.full(len(table), np.nan)
    return np.array(table[name].to_pylist(), np.float64)


def _choose(
    points: FloatArray, performant: FloatArray, safe: FloatArray, *, block: int
) -> tuple[NDArray[np.intp], str]:
    """Choose a setting for each episode by the corner score on the other half of the episodes.

    points: (settings, episodes, 2). A setting is never scored on the episodes that chose it, nor, with two or more
    blocks, with their learner. A single episode serves for both.
    """
    episodes = points.shape[1]
    half = np.arange(episodes) // (block if episodes >= 2 * block else 1) % 2
    chosen, scored = np.zeros(episodes, np.intp), False
    for fold in (0, 1):
        scored_on = half != fold if episodes > 1 else np.ones(1, np.bool_)
        corner = Corner(_mean(performant[scored_on]), _mean(safe[scored_on]))
        means = points[:, scored_on].mean(axis=1)
        scores = corner.score(means[:, 0], means[:, 1])
        known = bool(np.isfinite(scores).any())
        chosen[half == fold] = np.nanargmax(scores) if known else len(points) // 2
        scored |= known
    if not scored:
        return chosen, "no corner: the middle setting"
    return chosen, "on other episodes" if episodes > 1 else "on the same episodes"


def _mean(points: FloatArray) -> tuple[float, float]:
    return float(points[:, 0].mean()), float(points[:, 1].mean())


def _summary(sample: Sample, performant: FloatArray, safe: FloatArray, *, help: str) -> dict[str, Any]:
    summary = point_means(sample.points(), performant, safe) | {"help": help, "choice": sample.choice}
    for name, measure in SHOWN_MEANS.items():
        values = sample.shown(measure)
        known = values[np.isfinite(values)]
        summary[name] = float(known.mean()) if len(known) else None
    summary["parameters"] = [sample.settings[index] for index in np.unique(sample.chosen)]
    if len(sample.settings) > 1:
        summary["sweep"] = [
            {"parameters": setting} | point_means(points, performant, safe)
            for setting, points in zip(sample.settings, sample.sweep(), strict=True)
        ]
    if len(sample.points()) > 1:
        summary["networks"] = [point_means(points[np.newaxis], performant, safe) for points in sample.points()]
    return summary


def point_means(points: FloatArray, performant: FloatArray, safe: FloatArray) -> dict[str, Any]:
    """Sum up the episodes of a method, points (networks, episodes, 2), with intervals over episodes and networks."""
    score = score_episodes(points, performant, safe, rng=np.random.default_rng(BOOTSTRAP_SEED))
    over = points[..., 1] > COST_BUDGET
    if len(points) == 1:
        columns = mean_columns({"return": points[0, :, 0], "cost": points[0, :, 1]})
        over_interval: list[float] | None = proportion_interval(int(over.sum()), over.size)
    else:
        columns = {}
        for name, values in (("return", points[..., 0]), ("cost", points[..., 1])):
            columns |= {f"{name}_mean": float(values.mean()), f"{name}_ci95": _interval(values)}
        over_interval = _share_interval(over)
    return {
        "episodes": points.shape[1],
        **columns,
        "over_budget": float(over.mean()),
        "over_budget_ci95": over_interval,
        "corner_score": score.value,
        "corner_score_ci95": score.interval,
        "corner_score_reason": score.reason,
    }


def _interval(values: FloatArray) -> list[float] | None:
    """Return the interval of the mean of values (networks, episodes), over both; None of a single episode."""
    if values.shape[1] < 2:
        return None
    # The same resamples for every method.
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    ends = bootstrap_interval(lambda means: means[0], [values[..., np.newaxis]], rng=rng)
    # Few networks are drawn with weights that may be negative; a mean lies between the values.
    return None if ends is None else [min(max(end, float(values.min())), float(values.max())) for end in ends]


def _share_interval(over: BoolArray) -> list[float]:
    """Return the interval of the share of episodes over (networks, episodes).

    Over networks and episodes, and at least the exact one of the mean share among so many episodes, because a bootstrap
    knows nothing of what was never seen.
    """
    low, high = proportion_interval(round(over.mean() * over.shape[1]), over.shape[1])
    drawn = _interval(over.astype(np.float64))
    return [low, high] if drawn is None else [min(low, drawn[0]), max(high, drawn[1])]
