"""Collect what a replay shows of each episode: every stage, every pose, and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.reports.binary_columns import Packer
from blendctl.reports.run_data import PoseTable, StageTable

__all__ = ["pack_replay", "costliest_moments", "episode_sums"]

BITS = 12  # of mantissa: four digits, which is what the page shows
GAP = 10  # steps without cost that end a moment
MOMENTS = 12
RAW = ("episode", "step", "reward", "cost")  # of a track, that are packed otherwise or not at all

IntArray = NDArray[np.int64]


def episode_sums(drive: StageTable) -> list[dict[str, Any]]:
    """Give number, steps, return and cost of every episode of a drive."""
    episodes = drive.column("episode")
    rewards, costs, steps = drive.floats("reward"), drive.floats("cost"), drive.column("steps")
    ended = drive.column("ended")
    sums = []
    for episode in np.unique(episodes):
        rows = np.flatnonzero(episodes == episode)
        sums.append(
            {
                "number": int(episode),
                "steps": int(steps[rows].sum()),
                "return": float(rewards[rows].sum()),
                "cost": float(costs[rows].sum()),
                "complete": bool(ended[rows].any()),
            }
        )
    return sums


def pack_replay(
    drive: StageTable, places: PoseTable | None, packer: Packer, *, sums: list[dict[str, Any]], seed: int | None
) -> list[dict[str, Any]]:
    """Pack the episodes of `sums`; give what the page must know of each, in their order."""
    described: list[dict[str, Any]] = []
    episodes = drive.column("episode")
    kept_rows: list[IntArray] = []
    kept_places: list[IntArray] = []
    starts: list[IntArray] = []
    rewards, costs = [], []
    stages = steps_so_far = poses = 0
    for told in sums:
        rows = np.flatnonzero(episodes == told["number"])
        lengths = drive.column("steps")[rows]
        begins = np.cumsum(lengths) - lengths + 1  # step of the episode at which a stage begins
        total = int(lengths.sum())
        seen = _rows_of(places, told["number"])
        has_map = len(seen) > 1 and places is not None and places.scenery is not None
        if len(seen) > 1:
            total = min(total, len(seen) - 1)
            assert places is not None
            seen = seen[: total + 1]
            rewards.append(places.columns["reward"][seen[1:]])
            costs.append(places.columns["cost"][seen[1:]])
        else:
            rewards.append(_at_the_end(drive.floats("reward")[rows], lengths))
            costs.append(_at_the_end(drive.floats("cost")[rows], lengths))
        within = begins <= total
        rows, begins = rows[within], begins[within]
        described.append(
            told
            | {
                "seed": None if seed is None else seed + told["number"],
                "steps": total,
                "stages": len(rows),
                "stage_at": stages,
                "step_at": steps_so_far,
                "pose_at": poses if has_map else None,
                "layout": places.layouts.get(told["number"], []) if places is not None and has_map else [],
            }
        )
        kept_rows.append(rows)
        starts.append(begins)
        if has_map:
            kept_places.append(seen)
            poses += len(seen)
        stages, steps_so_far = stages + len(rows), steps_so_far + total
    if described:
        _pack_stages(drive, np.concatenate(kept_rows), np.concatenate(starts), packer)
        packer.add("reward", np.concatenate(rewards), "f")
        packer.add("cost", np.concatenate(costs), "f")
    if kept_places and places is not None:
        _pack_places(places, np.concatenate(kept_places), packer)
    return described


def _rows_of(places: PoseTable | None, episode: int) -> IntArray:
    if places is None:
        return np.zeros(0, np.int64)
    rows = np.flatnonzero(places.columns["episode"] == episode)
    in_order = places.columns["step"][rows] == np.arange(len(rows))  # a damaged file leaves a hole
    return rows if in_order.all() else rows[: int(in_order.argmin())]


def _at_the_end(values: NDArray[np.float64], lengths: NDArray[Any]) -> NDArray[np.float64]:
    """Put the sum of each stage at its last step."""
    out = np.zeros(int(lengths.sum()))
    out[np.cumsum(lengths) - 1] = values
    return out


def _pack_stages(drive: StageTable, rows: IntArray, starts: IntArray, packer: Packer) -> None:
    packer.add("start", starts, "i")
    packer.add("arm", drive.column("arm")[rows], "b")
    correct = [-1 if value is None else int(value) for value in drive.table["correct"].to_pylist()]
    packer.add("correct", np.array(correct)[rows], "b")
    packer.add("bound", drive.floats("loss_bound")[rows], "f", bits=BITS)
    loss = drive.by_arm("loss")[rows]
    estimate = (drive.by_arm_and_objective("estimate") * drive.scales)[rows]
    best = (drive.by_arm_and_objective("ucb") * drive.scales)[rows]
    for arm in range(len(drive.names)):
        packer.add(f"loss_{arm}", loss[:, arm], "f", bits=BITS)
        for goal in range(len(drive.objectives)):
            packer.add(f"estimate_{arm}_{goal}", estimate[:, arm, goal], "f", bits=BITS)
            packer.add(f"ucb_{arm}_{goal}", best[:, arm, goal], "f", bits=BITS)
    packer.add_texts("reason", drive.reasons(rows))
    packer.add_texts("event", ["" if event is None else event for event in drive.table["event"].take(rows).to_pylist()])


def _pack_places(places: PoseTable, rows: IntArray, packer: Packer) -> None:
    for name, values in places.columns.items():
        if name in RAW or name.startswith("theta_"):
            continue
        if name == "button":
            packer.add(name, values[rows], "b")
        else:  # to the millimetre, and a thousandth of a radian
            packer.add(name, np.round(values[rows].astype(np.float64) * 1024.0) / 1024.0, "f")


def costliest_moments(drive: StageTable, sums: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Find stretches that cost, with no more than ten free steps inside; the costliest first."""
    found: list[dict[str, Any]] = []
    episodes, costs, lengths = drive.column("episode"), drive.floats("cost"), drive.column("steps")
    arms = drive.column("arm")
    for told in sums:
        rows = np.flatnonzero(episodes == told["number"])
        last = np.cumsum(lengths[rows])  # step at which a stage ends
        costly = np.flatnonzero(costs[rows] > 0)
        if not len(costly):
            continue
        for part in np.split(costly, np.flatnonzero(np.diff(last[costly]) > GAP) + 1):
            driven = arms[rows[part]]
            arm = int(np.bincount(driven[driven >= 0], minlength=1).argmax()) if (driven >= 0).any() else -1
            found.append(
                {
                    "episode": told["number"],
                    "step": int(last[part[0]] - lengths[rows[part[0]]] + 1),
                    "until": int(last[part[-1]]),
                    "cost": float(costs[rows[part]].sum()),
                    "arm": arm,
                    "share": float((driven == arm).mean()),
                }
            )
    found.sort(key=lambda moment: -moment["cost"])
    return found[:MOMENTS]
