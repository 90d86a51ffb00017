"""Prepare charts as short series of points; chart a blend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.reports.blend_run import BlendRun, true_loss
from blendctl.reports.page_data import Chart, Color, Series
from blendctl.reports.run_data import StageTable

POINTS = 300  # per series; a chart has no pixels for more
BLOCKS = 60  # in the chart of shares


def series(
    name: str, x: ArrayLike, y: ArrayLike, *, color: Color, dashed: bool = False, band: Sequence[ArrayLike] = ()
) -> Series:
    """Return a line of at most `POINTS` points; `band` are its lower and upper ends, if any."""
    xs, *rows = thin(np.asarray(x, np.float64), *(np.asarray(values, np.float64) for values in (y, *band)))
    ys, *ends = ([_short(value) for value in row] for row in rows)
    low, high = ends or (None, None)
    return Series(name, color, [round(float(value), 6) for value in xs], ys, dashed, low, high)


def thin(*columns: FloatArray, points: int = POINTS) -> list[FloatArray]:
    """Keep at most `points` rows of equally long columns, including the first and the last.

    >>> thin(np.arange(10.0), points=4)
    [array([0., 3., 6., 9.])]
    """
    count = len(columns[0])
    kept = np.unique(np.linspace(0, count - 1, min(points, count)).round().astype(np.int64))
    return [column[kept] for column in columns]


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def loss_chart(title: str, lines: Sequence[tuple[ArrayLike, ArrayLike]], *, x: str, note: str) -> Chart:
    """Chart the bound and the average loss, each as x and y; they may be orders of magnitude apart."""
    (bound_x, bound), (loss_x, loss) = lines
    both = [
        series("its bound", bound_x, bound, color="ink", dashed=True),
        series("average loss", loss_x, loss, color="blend"),
    ]
    return Chart(title, _known(both), x, log=True, note=note)


def share_chart(prefix: str, x: ArrayLike, shares: dict[str, FloatArray], *, axis: str) -> Chart:
    """Chart the share (n,) of the control steps of every controller."""
    lines = [series(name, x, 100.0 * share, color=arm) for arm, (name, share) in enumerate(shares.items())]
    return Chart(f"{prefix}Who drove", _known(lines), axis, "stack", unit="%", low=0.0, high=100.0)


def theta_chart(prefix: str, x: ArrayLike, theta: FloatArray, *, objectives: Sequence[str], axis: str) -> Chart:
    """Chart the learned weights (n, objectives, features)."""
    lines = [
        series(f"{name} · feature {i + 1}", x, theta[:, k, i], color=f"c{(k * theta.shape[2] + i) % 8}")
        for k, name in enumerate(objectives)
        for i in range(theta.shape[2])
    ]
    note = "weight of each feature in each objective"
    return Chart(f"{prefix}Learned weights (theta)", _known(lines), axis, note=note)


def _known(lines: Sequence[Series]) -> list[Series]:
    return [line for line in lines if any(value is not None for value in line.y)]


def blend_charts(run: BlendRun) -> list[Chart] | None:
    """Chart return, cost, correct choices, loss and its bound, shares and theta; leave out unknown ones."""
    stages = run.stages
    if stages is None:
        return None
    number = np.arange(1, len(stages) + 1)
    correct = 100.0 * _running_mean(stages.floats("correct"))
    line = series("blended", number, correct, color="blend")
    losses = [(number, _running_mean(values)) for values in (stages.floats("loss_bound"), true_loss(stages))]
    title = f"Average loss in {run.judged}, and its bound"
    note = "true maximal loss and its upper bound, both averaged since the start; scaled units"
    charts = [
        *(_per_episode(run, quantity) for quantity in (("return", "cost") if run.has_cost else ("return",))),
        Chart(
            f"Correct choices, judged by {run.judged}",
            _known([line]),
            "stage",
            unit="%",
            low=0.0,
            high=100.0,
            note=f"no other controller is better in {run.judged}; this does not cover the episode",
        ),
        # The bound of a look-ahead run covers values to go, which counterfactual steps do not measure.
        *([] if stages.header.get("lookahead") else [loss_chart(title, losses, x="stage", note=note)]),
        _shares(stages),
        *_theta(run),
    ]
    return [chart for chart in charts if chart.series] or None


def _per_episode(run: BlendRun, quantity: str) -> Chart:
    alone = run.summary.get("alone") or {}
    values: list[tuple[str, Color, list[float]]] = [
        (f"{name} alone", arm, (alone.get(name) or {}).get(f"{quantity}s") or []) for arm, name in enumerate(run.names)
    ]
    values.append(("blended", "blend", run.summary.get(f"{quantity}s") or []))
    lines = [series(name, np.arange(1, len(y) + 1), y, color=color) for name, color, y in values if y]
    positive = quantity == "cost" and all(value >= 0 for _, _, y in values for value in y)
    return Chart(quantity.capitalize(), lines, "episode", "dots", low=0.0 if positive else None)


def _running_mean(values: FloatArray) -> FloatArray:
    """Return the mean of the known values so far; NaN before the first one."""
    known = np.isfinite(values)
    count = np.cumsum(known)
    return np.asarray(np.cumsum(np.where(known, values, 0.0)) / np.where(count > 0, count, np.nan))


def _shares(stages: StageTable) -> Chart:
    arms, lengths = stages.column("arm"), stages.column("steps")
    edges = np.unique(np.linspace(0, len(stages), BLOCKS + 1).round().astype(np.int64))
    total = np.add.reduceat(lengths, edges[:-1])
    shares = {
        name: np.add.reduceat(lengths * (arms == arm), edges[:-1]) / total for arm, name in enumerate(stages.names)
    }
    return share_chart("", 0.5 * (edges[1:] + edges[:-1]), shares, axis="stage")


def _theta(run: BlendRun) -> list[Chart]:
    if run.poses is None or "theta_0_0" not in run.poses.columns:
        return []
    columns = run.poses.columns
    sampled: NDArray[np.bool_] = np.isfinite(columns["theta_0_0"])
    objectives = range(len(run.objectives))
    features = range(sum(name.startswith("theta_0_") for name in columns))
    theta = np.array([[columns[f"theta_{k}_{i}"][sampled] for i in features] for k in objectives], np.float64)
    # the initial state of an episode is not a step
    steps = np.cumsum(columns["step"] > 0)[sampled]
    return [theta_chart("", steps, np.moveaxis(theta, 2, 0), objectives=run.objectives, axis="step")]
