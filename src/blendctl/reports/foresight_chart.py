"""Compare what was foreseen at each decision of a look-ahead run with what came."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.reports.blend_run import BlendRun
from blendctl.reports.charts import series
from blendctl.reports.page_data import Chart, EpisodeCharts, ForesightCharts, Series
from blendctl.reports.run_data import StageTable

CUT_OFF = 0.05  # largest weight of what follows the end of an episode; decisions with more are not compared
BINS = 10  # equally many decisions each
QUANTITIES = (("return", 1.0), ("cost", -1.0))  # with the sign of their objective


@dataclass(frozen=True)
class _Compared:
    """One quantity at n stages; unknown values are NaN."""

    name: str  # "return" or "cost"
    by_arm: FloatArray  # (n, arms) foreseen if an arm drives
    foreseen: FloatArray  # (n,) of the arm that drove
    calibrated: FloatArray  # (n,) the learner's estimate of it
    came: FloatArray  # (n,) over the rest of the episode


def foresight_charts(run: BlendRun) -> ForesightCharts | None:
    """Chart return and cost to go as foreseen and as they came; None if the run does not look ahead."""
    stages = run.stages
    if stages is None or not stages.header.get("lookahead"):
        return None
    discount, horizon = stages.header["lookahead"]["discount"], stages.header["lookahead"].get("horizon")
    compared = _compare(stages, discount, horizon)
    known: NDArray[np.bool_] = np.isfinite(compared[0].came) & np.isfinite(compared[0].foreseen)
    if not known.any():
        return None
    limit = f"to the end of the episode, at least {math.ceil(math.log(CUT_OFF) / math.log(discount))}"
    note = (
        f"Values to go at each decision, discounted by {discount:g} per control step. What came is the discounted sum "
        f"over the control steps that followed ({limit if horizon is None else horizon}); "
        f"{int((~known).sum())} of {len(known)} decisions are too near the end of an episode to be compared. What came "
        "followed from the choices of the blend, so it is compared with the controller that drove."
    )
    charts = [_calibration(values, known) for values in compared]
    charts += [_by_episode(values, known, stages.column("episode")) for values in compared]
    shown = [] if run.recording is None else [episode.number for episode in run.recording.episodes]
    return ForesightCharts(note, charts, [_episode(stages, compared, number) for number in shown])


def _compare(stages: StageTable, discount: float, horizon: int | None) -> list[_Compared]:
    arms = stages.column("arm").astype(np.int64)
    driver = np.clip(arms, 0, None)[:, None]
    foreseen = stages.by_arm_and_objective("foreseen")  # (n, arms, 2): reward and -cost
    estimate = stages.by_arm_and_objective("estimate") * stages.units
    compared = []
    for goal, (name, sign) in enumerate(QUANTITIES):
        came = values_to_go(
            stages.floats("reward" if name == "return" else name),
            stages.column("steps"),
            stages.column("episode"),
            discount=discount,
            horizon=horizon,
        )
        by_arm = sign * foreseen[..., goal]
        mine, learned = (np.take_along_axis(v, driver, axis=1)[:, 0] for v in (by_arm, sign * estimate[..., goal]))
        compared.append(_Compared(name, by_arm, np.where(arms < 0, np.nan, mine), learned, came))
    return compared


def values_to_go(
    sums: FloatArray,
    steps: NDArray[np.integer],
    episodes: NDArray[np.integer],
    *,
    discount: float,
    horizon: int | None = None,
) -> FloatArray:
    """Return the discounted sum from each stage on, (n,); NaN where the episode ends too soon to know it.

    sums, steps, episodes: sum over each stage, its control steps and its episode, (n,) each. The sum of a stage counts
    as if it were spread evenly over its steps. horizon: control steps that count; None: all until the end of the
    episode, known where what would follow the end counts less than 5%.

    >>> values_to_go(np.ones(4), np.ones(4, int), np.zeros(4, int), discount=0.1).round(3)
    array([1.111, 1.11 , 1.1  ,   nan])
    """
    out = np.full(len(sums), np.nan)
    for episode in np.unique(episodes):
        rows = np.flatnonzero(episodes == episode)
        per_step = np.repeat(sums[rows] / steps[rows], steps[rows])
        total, starts = len(per_step), np.cumsum(steps[rows]) - steps[rows]
        value = np.zeros(total + 1)  # from each step to the end of the episode
        for step in range(total - 1, -1, -1):
            value[step] = per_step[step] + discount * value[step + 1]
        if horizon is None:
            out[rows] = np.where(discount ** (total - starts) <= CUT_OFF, value[starts], np.nan)
        else:
            ends = starts + horizon
            window = value[starts] - discount**horizon * value[np.minimum(ends, total)]
            out[rows] = np.where(ends <= total, window, np.nan)
    return out


def _calibration(values: _Compared, known: NDArray[np.bool_]) -> Chart:
    """Chart what came against what was foreseen, in bins of equally many decisions."""
    order = np.flatnonzero(known)[np.argsort(values.foreseen[known], kind="stable")]
    bins = np.array_split(order, min(BINS, len(order)))
    foreseen = np.array([values.foreseen[rows].mean() for rows in bins])
    came = np.array([values.came[rows].mean() for rows in bins])
    band = [np.array([np.quantile(values.came[rows], share) for rows in bins]) for share in (0.25, 0.75)]
    ends = foreseen[[0, -1]]
    lines = [
        series("as foreseen", ends, ends, color="ink", dashed=True),
        series("came", foreseen, came, color="blend", band=band),
    ]
    note = f"mean of what came in {len(bins)} groups of decisions; band: the middle half"
    return Chart(f"Calibration of {values.name} to go", lines, f"foreseen {values.name} to go", note=note)


def _by_episode(values: _Compared, known: NDArray[np.bool_], episodes: NDArray[np.integer]) -> Chart:
    """Chart the means over the decisions of each episode."""
    numbers = np.unique(episodes[known])
    means = {
        name: np.array([column[known & (episodes == number)].mean() for number in numbers])
        for name, column in (("foreseen", values.foreseen), ("learner", values.calibrated), ("came", values.came))
    }
    lines = [
        series("foreseen", numbers + 1, means["foreseen"], color="ink", dashed=True),
        series("calibrated by the learner", numbers + 1, means["learner"], color="c1"),
        series("came", numbers + 1, means["came"], color="blend"),
    ]
    overall = [float(column[known].mean()) for column in (values.foreseen, values.calibrated, values.came)]
    note = "over all {} decisions: {:.3g} foreseen, {:.3g} calibrated, {:.3g} came".format(int(known.sum()), *overall)
    return Chart(f"{values.name.capitalize()} to go over the run", lines, "episode", "dots", note=note)


def _episode(stages: StageTable, compared: list[_Compared], number: int) -> EpisodeCharts:
    """Chart what each controller was foreseen to bring through one episode, what came, and what decides."""
    rows = np.flatnonzero(stages.column("episode") == number)
    lengths = stages.column("steps")[rows]
    start = np.cumsum(lengths) - lengths + 1
    charts = []
    for values in compared:
        lines: list[Series] = [
            series(f"foreseen with {name}", start, values.by_arm[rows, arm], color=arm)
            for arm, name in enumerate(stages.names)
        ]
        lines.append(series("came", start, values.came[rows], color="blend"))
        charts.append(Chart(f"{values.name.capitalize()} to go", lines, "step"))
    for values in compared:
        apart = values.by_arm[rows] - values.by_arm[rows].mean(axis=1, keepdims=True)
        lines = [series(name, start, apart[:, arm], color=arm) for arm, name in enumerate(stages.names)]
        note = "foreseen, minus the mean over the controllers: what decides"
        charts.append(Chart(f"{values.name.capitalize()} to go, difference", lines, "step", note=note))
    return EpisodeCharts(number, charts)
