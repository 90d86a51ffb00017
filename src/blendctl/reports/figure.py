"""Draw the paper's figure: return, cost, correct choices and loss with its bound, one column per world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from blendctl.arrays import FloatArray
from blendctl.statistics import mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Of each curve: Okabe and Ito's colours; dashes and markers distinguish the curves in greyscale.
_STYLES: dict[str, dict[str, Any]] = {
    "performant": {"color": "#D55E00", "ls": (0, (5.0, 1.6)), "marker": "s", "lw": 1.3},
    "safe": {"color": "#0072B2", "ls": (0, (5.0, 1.4, 1.0, 1.4)), "marker": "D", "lw": 1.3},
    "blended": {"color": "#111111", "ls": "-", "marker": "o", "lw": 1.7},
    "random": {"color": "#767676", "ls": (0, (1.2, 1.3)), "marker": "x", "lw": 1.3},
    "bound": {"color": "#009E73", "ls": (0, (3.0, 1.2, 1.0, 1.2, 1.0, 1.2)), "marker": "^", "lw": 1.4},
}
_LABELS = {"random": "random switching", "bound": "bound of Theorem 2"}  # the others have their own names
_ROWS = (
    ("return", "average return", ("performant", "safe", "blended")),
    ("cost", "average cost", ("performant", "safe", "blended")),
    ("correct_ratio", "correct choices", ("random", "blended")),
)
MARKS = 10  # approximate number of markers along a curve, where dashes do not distinguish the roles


class Curve(NamedTuple):
    """A quantity of one role by data point."""

    point: FloatArray  # (points,) 0, 1, ...
    x: FloatArray  # (points,) interactions
    mean: FloatArray  # (points,) over traces
    deviation: FloatArray  # (points,) of the data point's episodes, all traces together; NaN if unknown
    low: FloatArray  # (points,) 95% interval of the mean
    high: FloatArray


def draw_reproduction(points: pa.Table, *, titles: Mapping[str, str] | None = None) -> Figure:
    """Draw the table of data points that `blendctl reproduce` writes; `titles` are put above the columns."""
    from matplotlib.figure import Figure

    worlds = list(dict.fromkeys(points["world"].to_pylist()))
    figure = Figure(figsize=(1.0 + 3.1 * max(len(worlds), 1.35), 8.2), layout="constrained")
    axes = figure.subplots(4, len(worlds), sharex="col", squeeze=False)
    for column, world in enumerate(worlds):
        table = points.filter(pc.field("world") == world)
        unit, word = _unit(table)
        for row, (name, _, roles) in enumerate(_ROWS):
            for role in roles:
                _draw(axes[row, column], curve(table, role, name), role, unit)
        _draw_loss(axes[3, column], table, unit)
        axes[1, column].set_ylim(bottom=0.0)  # costs are not negative, although mean - sd may be
        axes[2, column].axhline(0.5, color="#B0B0B0", linewidth=0.8, zorder=1)
        axes[0, column].set_title((titles or {}).get(world, world), fontsize=10)
        axes[3, column].set_xlabel(f"environment interactions{word}", fontsize=9)
    for row, label in enumerate([row[1] for row in _ROWS] + ["average maximal loss"]):
        axes[row, 0].set_ylabel(label, fontsize=9)
    for panel in axes.flat:
        panel.grid(alpha=0.25, linewidth=0.5)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8)
        for side in ("top", "right"):
            panel.spines[side].set_visible(False)
    figure.align_ylabels(axes[:, 0])
    _legend(figure)
    return figure


def _unit(table: pa.Table) -> tuple[float, str]:
    """Choose the unit of the horizontal axis."""
    return (1e6, " (millions)") if pc.max(table["interactions"]).as_py() >= 1_000_000 else (1e3, " (thousands)")


def curve(table: pa.Table, role: str, name: str) -> Curve:
    """Collect the data points of a role over all traces."""
    rows = table.filter(pc.field("role") == role)
    mean_column = name if name in rows.column_names else f"{name}_mean"
    point, x = rows["data_point"].to_numpy(), rows["interactions"].to_numpy()
    mean = _floats(rows, mean_column)
    spread = {how: _floats(rows, f"{name}_{how}") if f"{name}_{how}" in rows.column_names else np.full(len(x), np.nan)
              for how in ("sd", "low", "high")}  # fmt: skip
    rows_by_point = []
    for number in np.unique(point):
        here = (point == number) & np.isfinite(mean)
        if not here.any():
            continue
        values, deviations = mean[here], spread["sd"][here]
        low, high = spread["low"][here][0], spread["high"][here][0]
        if len(values) > 1:
            low, high = mean_interval(values) or (np.nan, np.nan)
        deviation = np.sqrt(np.mean(deviations**2) + values.var())
        rows_by_point.append((number, x[here].mean(), values.mean(), deviation, low, high))
    return Curve(*np.array(rows_by_point, np.float64).reshape(-1, 6).T)


def _floats(table: pa.Table, name: str) -> FloatArray:
    return np.array([np.nan if v is None else v for v in table[name].to_pylist()], np.float64)


def _draw(axes: Axes, line: Curve, role: str, unit: float) -> None:
    if not len(line.x):
        return
    x, color = line.x / unit, _STYLES[role]["color"]
    axes.fill_between(x, line.mean - line.deviation, line.mean + line.deviation, color=color, alpha=0.10, linewidth=0)
    axes.fill_between(x, line.low, line.high, color=color, alpha=0.22, linewidth=0)
    if len(x) == 1:  # a band has no width
        axes.errorbar(x, line.mean, yerr=line.deviation, color=color, alpha=0.35, capsize=3)
    _line(axes, x, line.mean, role)


def _line(axes: Axes, x: FloatArray, y: FloatArray, role: str) -> None:
    every = max(1, len(x) // MARKS)
    axes.plot(x, y, **_STYLES[role], solid_capstyle="round", zorder=3, markersize=3.4, markevery=every)


def _draw_loss(axes: Axes, table: pa.Table, unit: float) -> None:
    """Draw the average loss so far and its bound on a logarithmic axis: they may be orders of magnitude apart."""
    for role, column, style in (
        ("random", "max_loss_mean", "random"),
        ("blended", "max_loss_mean", "blended"),
        ("blended", "max_loss_bound_mean", "bound"),
    ):
        line = curve(table, role, column)
        shown = line.mean > 0
        if shown.any():
            _line(axes, line.x[shown] / unit, line.mean[shown], style)
            axes.set_yscale("log")


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Line2D | Patch] = [
        Line2D([], [], **style, markersize=3.4, label=_LABELS.get(name, name)) for name, style in _STYLES.items()
    ]
    handles.append(Patch(color="#111111", alpha=0.10, linewidth=0, label="standard deviation"))
    handles.append(Patch(color="#111111", alpha=0.28, linewidth=0, label="95% interval"))
    columns = 3 if figure.get_figwidth() < 6 else 4 if figure.get_figwidth() < 9 else len(handles)
    figure.legend(
        handles=handles, loc="outside upper center", ncols=columns, fontsize=8, frameon=False, handlelength=3.2
    )
