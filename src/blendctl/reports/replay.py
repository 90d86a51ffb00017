"""Collect the data of a replay: stages, poses and reasons of each episode, and the costliest moments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray, IntArray
from blendctl.envs.pose_recorder import ENTRY
from blendctl.reports.binary_columns import Packer
from blendctl.reports.page import PageRun
from blendctl.reports.page_data import Episode, Moment, Pictures, Replay
from blendctl.reports.run_data import PoseTable, StageTable

BITS = 12  # of the mantissa: four digits, as shown on the page
GAP = 10  # steps without cost that end a moment
MOMENTS = 12
NOT_POSES = ("episode", "step", "reward", "cost")  # columns of a track that are packed differently or not at all


@dataclass(frozen=True)
class ReplayedEpisode:
    """One episode of a record in numbers."""

    number: int
    steps: int
    total_return: float
    cost: float
    complete: bool


@dataclass(frozen=True)
class ReplayData:
    """Recorded episodes to replay."""

    stages: StageTable
    poses: PoseTable | None
    episodes: list[ReplayedEpisode]  # those that are shown
    seed: int | None  # of episode 0
    note: str = ""
    entries: list[tuple[str, str]] = field(default_factory=list)  # label and column of each plotted entry
    pictures: dict[int, Pictures] = field(default_factory=dict)  # by episode
    control_period: float | None = None  # s
    no_picture: str = "This world cannot be drawn from above."


class RecordedRun(PageRun, Protocol):
    """A run with episodes to replay."""

    @property
    def recording(self) -> ReplayData | None:
        """Return the episodes; None if nothing was recorded."""


def episode_sums(stages: StageTable) -> list[ReplayedEpisode]:
    """Add up every episode of a record."""
    episodes = stages.column("episode")
    rewards, costs, steps = stages.floats("reward"), stages.floats("cost"), stages.column("steps")
    ended = stages.column("ended")
    sums = []
    for episode in np.unique(episodes):
        rows = episodes == episode
        totals = int(steps[rows].sum()), float(rewards[rows].sum()), float(costs[rows].sum())
        sums.append(ReplayedEpisode(int(episode), *totals, complete=bool(ended[rows].any())))
    return sums


def replay(run: RecordedRun) -> Replay | None:
    """Pack the episodes of the recording."""
    recording = run.recording
    if recording is None or not recording.episodes:
        return None
    stages, poses, packer = recording.stages, recording.poses, Packer()
    cuts = [_cut(stages, poses, episode.number) for episode in recording.episodes]
    rows = np.concatenate([cut.rows for cut in cuts])
    _pack_stages(stages, rows, np.concatenate([cut.starts for cut in cuts]), packer)
    packer.add("reward", np.concatenate([cut.rewards for cut in cuts]), "f")
    packer.add("cost", np.concatenate([cut.costs for cut in cuts]), "f")
    if poses is not None and any(len(cut.pose_rows) for cut in cuts):
        _pack_poses(poses, np.concatenate([cut.pose_rows for cut in cuts]), packer)
    for at, (_, column) in enumerate(recording.entries):
        assert poses is not None
        packer.add(
            f"entry_{at}", poses.columns[column][np.concatenate([cut.entry_rows for cut in cuts])], "f", bits=BITS
        )
    stage_at, step_at, pose_at, entry_at = (
        np.cumsum([0, *counts]).tolist()
        for counts in zip(
            *((len(cut.rows), len(cut.rewards), len(cut.pose_rows), len(cut.entry_rows)) for cut in cuts), strict=True
        )
    )
    episodes = [
        Episode(
            number=sums.number,
            seed=None if recording.seed is None else recording.seed + sums.number,
            steps=len(cut.rewards),
            stages=len(cut.rows),
            complete=sums.complete,
            stage_at=stage_at[i],
            step_at=step_at[i],
            pose_at=pose_at[i] if len(cut.pose_rows) else None,
            layout=poses.layouts.get(sums.number, []) if poses is not None and len(cut.pose_rows) else [],
            entry_at=entry_at[i] if recording.entries and len(cut.entry_rows) else None,
            pictures=recording.pictures.get(sums.number),
        )
        for i, (sums, cut) in enumerate(zip(recording.episodes, cuts, strict=True))
    ]
    scenery = None if poses is None else poses.scenery
    return Replay(
        scenery, episodes, packer.directory, packer.text(), recording.note,
        entries=[label for label, _ in recording.entries],
        step_seconds=recording.control_period if scenery is None else scenery["step_seconds"],
        no_picture=recording.no_picture,
    )  # fmt: skip


@dataclass(frozen=True)
class _Cut:
    """The rows of one episode."""

    rows: IntArray  # (stages,) of the record
    starts: IntArray  # (stages,) step at which each begins, from 1
    rewards: FloatArray  # (steps,)
    costs: FloatArray  # (steps,)
    pose_rows: IntArray  # (steps + 1,) of the track, empty if the world cannot be drawn
    entry_rows: IntArray  # (steps + 1,) of the track, empty without entries of the observation


def _cut(stages: StageTable, poses: PoseTable | None, episode: int) -> _Cut:
    rows = np.flatnonzero(stages.column("episode") == episode)
    lengths = stages.column("steps")[rows]
    starts = np.cumsum(lengths) - lengths + 1
    total = int(lengths.sum())
    pose_rows = _pose_rows(poses, episode)[: total + 1]
    if poses is None or len(pose_rows) < 2:
        rewards, costs = (_at_last_step(stages.floats(name)[rows], lengths) for name in ("reward", "cost"))
        return _Cut(rows, starts, rewards, costs, pose_rows[:0], pose_rows[:0])
    rewards, costs = (poses.columns[name][pose_rows[1:]] for name in ("reward", "cost"))
    within = starts < len(pose_rows)
    shown = pose_rows if poses.scenery is not None else pose_rows[:0]
    return _Cut(rows[within], starts[within], rewards, costs, shown, pose_rows if poses.entries else pose_rows[:0])


def _pose_rows(poses: PoseTable | None, episode: int) -> IntArray:
    """Return the rows of an episode up to the first gap, which comes from a damaged file."""
    if poses is None:
        return np.zeros(0, np.int64)
    rows = np.flatnonzero(poses.columns["episode"] == episode)
    in_order = poses.columns["step"][rows] == np.arange(len(rows))
    return rows if in_order.all() else rows[: int(in_order.argmin())]


def _at_last_step(values: FloatArray, lengths: NDArray[Any]) -> FloatArray:
    """Put the sum of each stage at its last step."""
    out = np.zeros(int(lengths.sum()))
    out[np.cumsum(lengths) - 1] = values
    return out


def _pack_stages(stages: StageTable, rows: IntArray, starts: IntArray, packer: Packer) -> None:
    packer.add("start", starts, "i")
    packer.add("arm", stages.column("arm")[rows], "b")
    correct = [-1 if value is None else int(value) for value in stages.table["correct"].to_pylist()]
    packer.add("correct", np.array(correct)[rows], "b")
    packer.add("bound", (stages.floats("loss_bound")[:, None] * stages.loss_unit)[rows, 0], "f", bits=BITS)
    loss = (stages.by_arm("loss") * stages.loss_unit)[rows]
    estimate = (stages.by_arm_and_objective("estimate") * stages.units)[rows]
    ucb = (stages.by_arm_and_objective("ucb") * stages.units)[rows]
    for arm in range(len(stages.names)):
        packer.add(f"loss_{arm}", loss[:, arm], "f", bits=BITS)
        for goal in range(len(stages.objectives)):
            packer.add(f"estimate_{arm}_{goal}", estimate[:, arm, goal], "f", bits=BITS)
            packer.add(f"ucb_{arm}_{goal}", ucb[:, arm, goal], "f", bits=BITS)
    packer.add_texts("reason", stages.reasons(rows))
    packer.add_texts("event", [event or "" for event in stages.table["event"].take(rows).to_pylist()])


def _pack_poses(poses: PoseTable, rows: IntArray, packer: Packer) -> None:
    for name, values in poses.columns.items():
        if name in NOT_POSES or name.startswith(("theta_", ENTRY)):
            continue
        if name == "button":
            packer.add(name, values[rows], "b")
        else:  # to a millimetre and a milliradian
            packer.add(name, np.round(values[rows].astype(np.float64) * 1024.0) / 1024.0, "f")


def moments(run: RecordedRun) -> list[Moment] | None:
    """Find stretches with costs, interrupted by at most ten steps without cost; the costliest first."""
    recording = run.recording
    if recording is None:
        return None
    stages = recording.stages
    episodes, costs, lengths = stages.column("episode"), stages.floats("cost"), stages.column("steps")
    arms = stages.column("arm")
    moments = []
    for sums in recording.episodes:
        rows = np.flatnonzero(episodes == sums.number)
        last = np.cumsum(lengths[rows])  # step at which a stage ends
        costly = np.flatnonzero(costs[rows] > 0)
        for part in np.split(costly, np.flatnonzero(np.diff(last[costly]) > GAP) + 1) if len(costly) else ():
            drivers = arms[rows[part]]
            arm = int(np.bincount(drivers[drivers >= 0], minlength=1).argmax()) if (drivers >= 0).any() else -1
            moments.append(
                Moment(
                    episode=sums.number,
                    step=int(last[part[0]] - lengths[rows[part[0]]] + 1),
                    until=int(last[part[-1]]),
                    cost=float(costs[rows[part]].sum()),
                    arm=arm,
                    share=float((drivers == arm).mean()),
                )
            )
    moments.sort(key=lambda moment: -moment.cost)
    return moments[:MOMENTS] or None
