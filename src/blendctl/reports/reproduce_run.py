"""Read a run of `blendctl reproduce`, finished or not, for its page."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from blendctl.experiments.rerun import rerun_episodes
from blendctl.experiments.tables import EPISODES, POINTS
from blendctl.experiments.verdict import verdict
from blendctl.reports.replay import ReplayData, episode_sums
from blendctl.reports.run_data import read_poses, read_stages
from blendctl.reports.run_dir import RunDir
from blendctl.table_parts import read_table

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class ReproduceRun:
    """Data for the sections of an experiment's page."""

    folder: RunDir
    points: pa.Table  # a row per data point, as in `experiments.tables.POINTS`
    verdicts: dict[str, Any]  # by world
    recording: ReplayData | None  # None if the episodes cannot be repeated
    names: ClassVar[list[str]] = ["performant", "safe"]
    objectives: ClassVar[list[str]] = ["reward", "-cost"]

    def rows(self, world: str, role: str) -> Rows:
        """Return the data points of a role in a world, in order."""
        rows: Rows = self.points.to_pylist()
        return [row for row in rows if row["world"] == world and row["role"] == role]


def read_reproduce_run(folder: RunDir, *, replays: int) -> ReproduceRun:
    """Read a run, and repeat the first `replays` episodes of its last data point."""
    points, episodes = (
        read_table(file) if (file := folder.path / name).is_file() else schema.empty_table()
        for name, schema in (("points.parquet", POINTS), ("episodes.parquet", EPISODES))
    )
    stored = {world: summary for world, summary in folder.summary.items() if "claims" in summary}
    recording = _repeat(folder, points.to_pylist(), replays) if replays else None
    return ReproduceRun(folder, points, verdict(episodes, points) or stored, recording)


def _repeat(folder: RunDir, points: Rows, replays: int) -> ReplayData | None:
    """Repeat episodes in the first world that allows it."""
    last = {row["world"]: row["data_point"] for row in points if row["role"] == "blended" and row["trace"] == 0}
    for world, point in last.items():
        with tempfile.TemporaryDirectory() as place:
            again = rerun_episodes(
                folder.path, folder.about, world=world, data_point=point, episodes=replays, into=Path(place)
            )
            stages = None if again is None else read_stages(again.record)
            poses = None if again is None else read_poses(again.track)
        if again is not None and stages is not None:
            note = f"{world}, data point {point + 1}: a rerun of its first episodes, identical to the experiment."
            return ReplayData(stages, poses, episode_sums(stages), again.seed, note)
    return None
