"""Record all poses of every step, or the observations, for a replay; a few microseconds per step.

A track is a directory of Parquet files. A file holds rows of one episode and is written atomically; at most `GROUP`
steps are in memory, so a crash loses no more. Row 0 of an episode is its initial state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.directory_lock import DirectoryLock
from blendctl.envs import SingleWorld
from blendctl.envs.observation_entries import ObservationEntries
from blendctl.envs.scene_spec import Item, describe_world, items_of
from blendctl.table_parts import list_parts, write_part

TRACK_FORMAT = "blendctl-track"
TRACK_VERSION = 2
ENTRY = "observation_"  # and a number: the column of an entry of the observation
GROUP = 512  # steps per file
THETA_EVERY = 10  # steps between two samples of theta
WIDEST_THETA = 64  # most entries of theta to record: a chart of more is unreadable


@dataclass(frozen=True)
class PoseRows:
    """Consecutive rows of one episode."""

    episode: int
    columns: dict[str, NDArray[Any]]  # (rows,) each
    layout: list[list[float]]  # fixed objects: kind, x, y, rotation


class PoseRecorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Environment wrapper that records rewards, costs, and poses in a world of blendctl, elsewhere observations.

    path: directory of the track, None to write nothing.
    theta: returns the learner's present parameters (objectives, features), which are sampled during the run.
    live: keep rows for `fresh`.
    """

    only_watches = True  # observations, rewards and infos pass through unchanged

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        path: Path | None = None,
        *,
        theta: Callable[[], FloatArray] | None = None,
        live: bool = False,
    ) -> None:
        super().__init__(env)
        self.path = path
        self.episode = -1
        self._parts = 0
        self._live = live
        self._unseen: list[PoseRows] = []
        self._seen = 0  # rows of the current group that `fresh` has returned
        self._first = 0  # step of the current group's first row
        self._count = 0  # rows in the current group
        self._layout: list[list[float]] = []
        world = env.unwrapped
        self._world = world if isinstance(world, SingleWorld) else None
        self.scenery: dict[str, Any] | None = None
        self._items: list[Item] = []
        poses = 0
        if self._world is not None:
            task, plan = self._world.task, self._world.batch.compiled_task
            self.scenery, self._items = describe_world(task, plan), items_of(task, plan)
            self._goal = plan.goal
            poses = self._world.batch.worlds.qpos.shape[1] + 3 + 9 + 2 + 1
        self._entries = ObservationEntries(env.observation_space if self._world is None else None)
        self._theta = theta if theta is not None and theta().size <= WIDEST_THETA else None
        self._thetas: dict[int, FloatArray] = {}
        self._rows = np.zeros((GROUP, 2 + poses + len(self._entries.names)))
        if path is not None:
            self._lock = DirectoryLock(path)
            for part in list_parts(path):
                part.unlink()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Start an episode."""
        self.flush()
        result = self.env.reset(seed=seed, options=options)
        self.episode += 1
        self._first = 0
        if self._world is not None:
            worlds = self._world.batch.worlds
            self._layout = [
                [float(item.kind), *worlds.xy[0, item.number].tolist(), float(worlds.rot[0, item.number])]
                for item in self._items
                if item.qpos_at < 0 and item.number != self._goal
            ]
        self._record(0.0, 0.0, result[0])
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and record the result."""
        if self._count == GROUP:
            self.flush()
        if self._theta is not None and (self._first + self._count) % THETA_EVERY == 1:
            self._thetas[self._count] = np.array(self._theta(), np.float64)
        result = self.env.step(action)
        self._record(float(result[1]), float(result[4].get("cost", 0.0)), result[0])
        return result

    def _record(self, reward: float, cost: float, observation: Any) -> None:
        row = self._rows[self._count]
        self._count += 1
        row[0], row[1] = reward, cost
        if self._world is not None:
            worlds = self._world.batch.worlds
            row[2] = worlds.button[0]
            row[3:6] = worlds.position[0]
            row[6:15] = worlds.rotation[0]
            row[15:17] = worlds.xy[0, self._goal]
            row[17:] = worlds.qpos[0]
        else:
            row[2:] = self._entries.values(observation)

    def fresh(self) -> list[PoseRows]:
        """Return the rows since the last call, for a live view."""
        batches, self._unseen = self._unseen, []
        if self._count > self._seen:
            batches.append(self._pose_rows(self._seen, self._count))
            self._seen = self._count
        return batches

    def flush(self) -> None:
        """Write the rows of the current group to a file."""
        if self._count and self.path is not None:
            import pyarrow

            rows = self._pose_rows(0, self._count)
            header: dict[str, Any] = {"version": TRACK_VERSION, "scenery": self.scenery, "layout": rows.layout}
            header["entries"] = self._entries.names
            self._parts += 1
            write_part(self.path, self._parts, pyarrow.table(rows.columns), format_name=TRACK_FORMAT, header=header)
        if self._live and self._count > self._seen:
            self._unseen.append(self._pose_rows(self._seen, self._count))
        self._first += self._count
        self._count = self._seen = 0
        self._thetas.clear()

    def close(self) -> None:
        """Write the remaining rows and close the environment."""
        self.flush()
        if self.path is not None:
            self._lock.close()
        super().close()

    def _pose_rows(self, start: int, stop: int) -> PoseRows:
        rows = self._rows[start:stop].copy()
        columns: dict[str, NDArray[Any]] = {
            "episode": np.full(len(rows), self.episode, np.int32),
            "step": np.arange(self._first + start, self._first + stop, dtype=np.int32),
            "reward": rows[:, 0],
            "cost": rows[:, 1],
        }
        if self._world is not None:
            columns |= self._poses(rows)
        else:
            columns |= {f"{ENTRY}{at}": row.astype(np.float32) for at, row in enumerate(rows[:, 2:].T)}
        return PoseRows(self.episode, columns | self._theta_columns(start, stop), self._layout)

    def _poses(self, rows: FloatArray) -> dict[str, NDArray[Any]]:
        assert self._world is not None
        rotation = rows[:, 6:15].reshape(-1, 3, 3)
        forward = rotation[:, :, :2] @ np.array(self._world.task.robot_spec.forward)
        poses = {
            "x": rows[:, 3],
            "y": rows[:, 4],
            "heading": np.arctan2(forward[:, 1], forward[:, 0]),
            "goal_x": rows[:, 15],
            "goal_y": rows[:, 16],
            "button": rows[:, 2],
        }
        for item in self._items:
            if item.qpos_at >= 0:
                x, y, _, w, i, j, k = rows[:, 17 + item.qpos_at : 24 + item.qpos_at].T
                turn = np.arctan2(2.0 * (w * k + i * j), 1.0 - 2.0 * (j * j + k * k))
                poses |= {f"{item.label}_x": x, f"{item.label}_y": y, f"{item.label}_turn": turn}
        return {name: values.astype(np.float32) for name, values in poses.items()}

    def _theta_columns(self, start: int, stop: int) -> dict[str, NDArray[Any]]:
        """Return theta as columns "theta_OBJECTIVE_FEATURE", NaN between two samples."""
        if self._theta is None:
            return {}
        objectives, features = np.shape(self._theta())
        table = np.full((stop - start, objectives, features), np.nan, np.float32)
        for row, theta in self._thetas.items():
            if start <= row < stop:
                table[row - start] = theta
        return {
            f"theta_{k}_{i}": np.ascontiguousarray(table[:, k, i]) for k in range(objectives) for i in range(features)
        }
