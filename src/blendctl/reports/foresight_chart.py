"""Compare the predictions of a look-ahead run at each decision with the observed values."""

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

CUT_OFF = 0.05  # largest weight of the unknown part after the end of an episode; decisions with more are not compared
BINS = 10  # equally many decisions each
QUANTITIES = (("return", 1.0), ("cost", -1.0))  # with the sign of their objective


@dataclass(frozen=True)
class _PredictedAndObserved:
    """One quantity at n stages; unknown values are NaN."""

    name: str  # "return" or "cost"
    by_arm: FloatArray  # (n, arms) predicted if an arm drives
    predicted: FloatArray  # (n,) predicted for the arm that drove
    calibrated: FloatArray  # (n,) the learner's estimate of it
    observed: FloatArray  # (n,) observed over the rest of the episode


def foresight_charts(run: BlendRun) -> ForesightCharts | None:
    """Chart predicted and observed return and cost to go; None if the run does not look ahead."""
    stages = run.stages
    if stages is None or not stages.header.get("lookahead"):
        return None
    discount, horizon = stages.header["lookahead"]["discount"], stages.header["lookahead"].get("horizon")
    compared = _compare(stages, discount, horizon)
    known: NDArray[np.bool_] = np.isfinite(compared[0].observed) & np.isfinite(compared[0].predicted)
    if not known.any():
        return None
    limit = f"to the end of the episode, at least {math.ceil(math.log(CUT_OFF) / math.log(discount))}"
    note = (
        f"Values to go at each decision, discounted by {discount:g} per control step. Observed is the discounted sum "
        f"over the control steps that followed ({limit if horizon is None else horizon}); "
        f"{int((~known).sum())} of {len(known)} decisions are too near the end of an episode to be compared. It "
        "results from the choices of the blend, so it is compared with the prediction for the controller that drove."
    )
    charts = [_calibration(values, known) for values in compared]
    charts += [_by_episode(values, known, stages.column("episode")) for values in compared]
    shown = [] if run.recording is None else [episode.number for episode in run.recording.episodes]
    return ForesightCharts(note, charts, [_episode(stages, compared, number) for number in shown])


def _compare(stages: StageTable, discount: float, horizon: int | None) -> list[_PredictedAndObserved]:
    arms = stages.column("arm").astype(np.int64)
    driver = np.clip(arms, 0, None)[:, None]
    foreseen = stages.by_arm_and_objective("foreseen")  # (n, arms, 2): reward and -cost
    estimate = stages.by_arm_and_objective("estimate") * stages.units
    compared = []
    for goal, (name, sign) in enumerate(QUANTITIES):
        observed = values_to_go(
            stages.floats("reward" if name == "return" else name),
            stages.column("steps"),
            stages.column("episode"),
            discount=discount,
            horizon=horizon,
        )
        by_arm = sign * foreseen[..., goal]
        mine, learned = (np.take_along_axis(v, driver, axis=1)[:, 0] for v in (by_arm, sign * estimate[..., goal]))
        compared.append(_PredictedAndObserved(name, by_arm, np.where(arms < 0, np.nan, mine), learned, observed))
    return compared


def values_to_go(
    sums: FloatArray,
    steps: NDArray[np.integer],
    episodes: NDArray[np.integer],
    *,
    discount: float,
    horizon: int | None = None,
) -> FloatArray:
    """Return the discounted sum from each stage on, (n,); NaN if the episode ends too soon to know it.

    sums, steps, episodes: sum over each stage, its control steps and its episode, (n,) each. The sum of a stage is
    spread evenly over its steps. horizon: number of control steps; None: all until the end of the episode, known if
    the part after the end would weigh less than 5%.

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


def _calibration(values: _PredictedAndObserved, known: NDArray[np.bool_]) -> Chart:
    """Chart observed against predicted values, in bins of equally many decisions."""
    order = np.flatnonzero(known)[np.argsort(values.predicted[known], kind="stable")]
    bins = np.array_split(order, min(BINS, len(order)))
    predicted = np.array([values.predicted[rows].mean() for rows in bins])
    observed = np.array([values.observed[rows].mean() for rows in bins])
    band = [np.array([np.quantile(values.observed[rows], share) for rows in bins]) for share in (0.25, 0.75)]
    ends = predicted[[0, -1]]
    lines = [
        series("ideal", ends, ends, color="ink", dashed=True),
        series("observed", predicted, observed, color="blend", band=band),
    ]
    note = f"observed mean in {len(bins)} groups of decisions; band: the middle half"
    return Chart(f"Calibration of {values.name} to go", lines, f"predicted {values.name} to go", note=note)


def _by_episode(values: _PredictedAndObserved, known: NDArray[np.bool_], episodes: NDArray[np.integer]) -> Chart:
    """Chart the means over the decisions of each episode."""
    numbers = np.unique(episodes[known])
    means = {
        name: np.array([column[known & (episodes == number)].mean() for number in numbers])
        for name, column in (
            ("predicted", values.predicted),
            ("learner", values.calibrated),
            ("observed", values.observed),
        )
    }
    lines = [
        series("predicted", numbers + 1, means["predicted"], color="ink", dashed=True),
        series("calibrated by the learner", numbers + 1, means["learner"], color="c1"),
        series("observed", numbers + 1, means["observed"], color="blend"),
    ]
    overall = [float(column[known].mean()) for column in (values.predicted, values.calibrated, values.observed)]
    means_note = "{:.3g} predicted, {:.3g} calibrated, {:.3g} observed".format(*overall)
    note = f"over all {int(known.sum())} decisions: {means_note}"
    return Chart(f"{values.name.capitalize()} to go over the run", lines, "episode", "dots", note=note)


def _episode(stages: StageTable, compared: list[_PredictedAndObserved], number: int) -> EpisodeCharts:
    """Chart predicted and observed values over one episode, and the differences that decide."""
    rows = np.flatnonzero(stages.column("episode") == number)
    lengths = stages.column("steps")[rows]
    start = np.cumsum(lengths) - lengths + 1
    charts = []
    for values in compared:
        lines: list[Series] = [
            series(f"predicted with {name}", start, values.by_arm[rows, arm], color=arm)
            for arm, name in enumerate(stages.names)
        ]
        lines.append(series("observed", start, values.observed[rows], color="blend"))
        charts.append(Chart(f"{values.name.capitalize()} to go", lines, "step"))
    for values in compared:
        apart = values.by_arm[rows] - values.by_arm[rows].mean(axis=1, keepdims=True)
        lines = [series(name, start, apart[:, arm], color=arm) for arm, name in enumerate(stages.names)]
        note = "predicted, minus the mean over the controllers: the differences that decide"
        charts.append(Chart(f"{values.name.capitalize()} to go, difference", lines, "step", note=note))
    return EpisodeCharts(number, charts)
