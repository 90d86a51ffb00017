"""Prepare the charts of a drive: short series of points, as JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.reports.run_data import PoseTable, StageTable

__all__ = ["charts_of_drive", "true_loss", "thin", "chart", "series"]

POINTS = 300  # per series; more than a chart has pixels to tell apart
BLOCKS = 60  # of the chart of shares

FloatArray = NDArray[np.float64]


def charts_of_drive(drive: StageTable, told: dict[str, Any], places: PoseTable | None) -> list[dict[str, Any]]:
    """Give return, cost, correct ratio, average loss under its bound, shares and theta; what is known of them."""
    made = [_per_episode(told, drive.names, quantity) for quantity in ("return", "cost")]
    stages = np.arange(1, len(drive) + 1)
    correct = np.array([np.nan if c is None else float(c) for c in drive.table["correct"].to_pylist()])
    if np.isfinite(correct).any():
        line = series("blended", stages, _running_mean(correct), color="blend")
        made.append(chart("Correct choices", [line], x="stage", unit="%", factor=100, low=0.0, high=100.0))
    made += _loss(drive, stages)
    made.append(_shares(drive))
    if places is not None:
        made += _theta(drive, places)
    return [entry for entry in made if entry["series"]]


def chart(
    title: str,
    lines: list[dict[str, Any]],
    *,
    x: str,
    kind: str = "line",
    unit: str = "",
    factor: float = 1.0,
    low: float | None = None,
    high: float | None = None,
    log: bool = False,
    note: str = "",
) -> dict[str, Any]:
    """Describe a chart; kind is line, dots (a line with its points marked) or stack."""
    for line in lines:
        line["y"] = [None if value is None else factor * value for value in line["y"]]
    return {
        "title": title, "kind": kind, "x": x, "unit": unit, "low": low, "high": high, "log": log, "note": note,
        "series": lines,
    }  # fmt: skip


def series(
    name: str, x: Sequence[float] | NDArray[Any], y: FloatArray, *, color: str | int, dashed: bool = False
) -> dict[str, Any]:
    """Describe a line: `color` is an arm's number, "blend", "ink" or "cost"; it is thinned to what can be seen."""
    xs, ys = thin(np.asarray(x, np.float64), np.asarray(y, np.float64))
    return {
        "name": name,
        "color": color,
        "dashed": dashed,
        "x": [round(float(value), 6) for value in xs],
        "y": [_short(value) for value in ys],
    }


def thin(x: FloatArray, y: FloatArray, points: int = POINTS) -> tuple[FloatArray, FloatArray]:
    """Keep at most so many points, the first and the last among them.

    >>> thin(np.arange(10.0), np.arange(10.0), 4)[0]
    array([0., 3., 6., 9.])
    """
    if len(x) <= points:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, points).round().astype(np.int64))
    return x[kept], y[kept]


def true_loss(drive: StageTable) -> FloatArray:
    """Give the true maximal loss of each stage (n,) in scaled units, NaN where the truth is not known."""
    truth = drive.by_arm_and_objective("truth") / drive.scales  # (n, arms, objectives)
    arms = drive.column("arm")
    mine = np.take_along_axis(truth, np.clip(arms, 0, None)[:, None, None].astype(np.int64), axis=1)[:, 0]
    best = np.where(np.isnan(truth), -np.inf, truth).max(axis=1)  # of the arms of which something is known
    loss: FloatArray = np.maximum(0.0, (best - mine).max(axis=1))
    loss[(arms < 0) | ~np.isfinite(loss)] = np.nan
    return loss


def _per_episode(told: dict[str, Any], names: list[str], quantity: str) -> dict[str, Any]:
    lines = []
    alone = told.get("alone") or {}
    for arm, name in enumerate(names):
        values = (alone.get(name) or {}).get(f"{quantity}s") or []
        if values:
            lines.append(series(f"{name} alone", np.arange(1, len(values) + 1), np.array(values), color=arm))
    values = told.get(f"{quantity}s") or []
    if values:
        lines.append(series("blended", np.arange(1, len(values) + 1), np.array(values), color="blend"))
    return chart(quantity.capitalize(), lines, x="episode", kind="dots", low=0.0 if quantity == "cost" else None)


def _running_mean(values: FloatArray) -> FloatArray:
    known = np.isfinite(values)
    count = np.cumsum(known)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.cumsum(np.where(known, values, 0.0)) / np.where(count > 0, count, np.nan))


def _loss(drive: StageTable, stages: NDArray[np.int64]) -> list[dict[str, Any]]:
    lines = []
    loss, bound = true_loss(drive), drive.floats("loss_bound")
    if np.isfinite(bound).any():
        lines.append(series("its bound", stages, _running_mean(bound), color="ink", dashed=True))
    if np.isfinite(loss).any():
        lines.append(series("average loss", stages, _running_mean(loss), color="blend"))
    note = "true maximal loss per stage, and what it cannot exceed, both averaged since the start; scaled units"
    return [chart("Average loss under its bound", lines, x="stage", log=True, note=note)]


def _shares(drive: StageTable) -> dict[str, Any]:
    arms, lengths = drive.column("arm"), drive.column("steps")
    edges = np.unique(np.linspace(0, len(drive), BLOCKS + 1).round().astype(np.int64))
    middle = 0.5 * (edges[1:] + edges[:-1])
    total = np.add.reduceat(lengths, edges[:-1])
    lines = [
        series(name, middle, np.add.reduceat(lengths * (arms == arm), edges[:-1]) / total, color=arm)
        for arm, name in enumerate(drive.names)
    ]
    return chart("Who drove", lines, x="stage", kind="stack", unit="%", factor=100, low=0.0, high=100.0)


def _theta(drive: StageTable, places: PoseTable) -> list[dict[str, Any]]:
    names = [name for name in places.columns if name.startswith("theta_")]
    if not names:
        return []
    looked = np.isfinite(places.columns[names[0]])
    # rows of how an episode began are no steps
    steps = np.cumsum(places.columns["step"] > 0)[looked]
    lines: list[dict[str, Any]] = []
    for name in sorted(names):
        objective, feature = (int(word) for word in name.split("_")[1:])
        word = f"{drive.objectives[objective]} · feature {feature + 1}"
        lines.append(series(word, steps, places.columns[name][looked].astype(np.float64), color=f"c{len(lines)}"))
    return [chart("What it learned, theta", lines, x="step", note="weight of each feature in each objective")]


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
