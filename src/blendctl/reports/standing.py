"""Compare a blend with random mixing of its first and last controller: the mixing line and the corner score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.experiments.corner import Score, score_episodes
from blendctl.experiments.standings import BOOTSTRAP_SEED
from blendctl.reports.blend_run import BlendRun
from blendctl.reports.page_data import Chart, Color, Interval, Series
from blendctl.statistics import mean_interval


@dataclass(frozen=True)
class Standing:
    """A blend against the mixing line; all on the same episodes."""

    performant: str
    safe: str
    score: Score
    share: float  # of episodes with the performant controller, in the mixture that is nearest to the blend's return
    mixture: FloatArray  # (episodes, 2) mean return and cost of that mixture


def standing_of(summary: dict[str, Any], names: Sequence[str]) -> Standing | None:
    """Return the blend's standing; None unless the first and the last controller drove the same episodes alone."""
    alone = summary.get("alone") or {}
    if len(names) < 2 or names[0] not in alone or names[-1] not in alone:
        return None
    blend, performant, safe = (_points(row) for row in (summary, alone[names[0]], alone[names[-1]]))
    if not len(blend) == len(performant) == len(safe) > 0:
        return None
    score = score_episodes(blend, performant, safe, rng=np.random.default_rng(BOOTSTRAP_SEED))
    gain = float((performant - safe)[:, 0].mean())
    if gain > 0:
        share = min(max(float((blend - safe)[:, 0].mean()) / gain, 0.0), 1.0)
    else:  # the returns define no share: use that of the performant controller in the blend
        share = (summary.get("arm_share") or {}).get(names[0], 0.5)
    return Standing(names[0], names[-1], score, share, share * performant + (1.0 - share) * safe)


def mean_and_interval(values: FloatArray) -> Interval:
    """Return the mean of values (episodes,) and the ends of its 95% interval."""
    return (float(values.mean()), *(mean_interval(values) or (None, None)))


def standing_chart(run: BlendRun) -> Chart | None:
    """Chart return against cost: the blend, each controller alone, the mixing line and its corner."""
    standing = standing_of(run.summary, run.names)
    if standing is None or not run.has_cost:
        return None
    alone = run.summary["alone"]
    first, last = alone[standing.performant], alone[standing.safe]
    line = Series(
        "mixing line", "ink", [first["cost_mean"], last["cost_mean"]], [first["return_mean"], last["return_mean"]],
        dashed=True,
    )  # fmt: skip
    points = [_point(f"{name} alone", arm, alone[name]) for arm, name in enumerate(run.names) if name in alone]
    points.append(_point("blended", "blend", run.summary))
    if standing.score.value is not None:
        points.append(Series("corner", "faint", [last["cost_mean"]], [first["return_mean"]]))
    note = (
        f"Means per episode with 95% intervals. Mixing line: {standing.performant} drives random episodes, "
        f"{standing.safe} the others. A blend above and left of the line is better than mixing."
    )
    if standing.score.value is None:
        reason = (standing.score.reason or "").removeprefix("no corner: ")
        note += f" There is no corner score: {reason}."
    else:
        note += f" Corner: the return of {standing.performant} at the cost of {standing.safe}."
    return Chart("", [line, *points], "cost", "scatter", y="return", note=note)


def _point(name: str, color: Color, row: dict[str, Any]) -> Series:
    (low, high), (left, right) = (row.get(f"{what}_ci95") or (None, None) for what in ("return", "cost"))
    return Series(
        name, color, [row["cost_mean"]], [row["return_mean"]], low=[low], high=[high], left=[left], right=[right]
    )


def _points(row: dict[str, Any]) -> FloatArray:
    return np.array([row.get("returns") or [], row.get("costs") or []], np.float64).T
