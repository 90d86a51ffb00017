"""Turn records and poses into messages for a live page."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.blender import Record
from blendctl.envs.pose_recorder import PoseRows
from blendctl.reports.replay import NOT_POSES


class LiveRows:
    """Collect records of one run until the next message, by episode."""

    def __init__(self, objectives: list[str], title: str) -> None:
        self.objectives, self.title = objectives, title
        self._records: dict[int, list[Record]] = {}
        self._first: dict[int, int] = {}  # by episode: steps of the run before it

    def add(self, record: Record) -> None:
        """Add a final record."""
        self._first.setdefault(record.episode, record.step - 1)
        self._records.setdefault(record.episode, []).append(record)

    def take(self, poses: list[PoseRows]) -> list[dict[str, Any]]:
        """Return a message per episode with new records or poses, the earliest first."""
        records, self._records = self._records, {}
        episodes = sorted({rows.episode for rows in poses} | set(records))
        return [
            self._message(episode, records.get(episode, []), [rows for rows in poses if rows.episode == episode])
            for episode in episodes
        ]

    def _message(self, episode: int, records: list[Record], poses: list[PoseRows]) -> dict[str, Any]:
        columns: dict[str, list[float]] = {}
        for rows in poses:
            for name, values in rows.columns.items():
                if name not in NOT_POSES and not name.startswith("theta_"):
                    columns.setdefault(name, []).extend(round(float(value), 4) for value in values)
        rewards, costs = [], []
        for record in records:  # the sum of a stage counts at its last step
            rewards += [0.0] * (record.steps - 1) + [record.reward]
            costs += [0.0] * (record.steps - 1) + [record.cost]
        return {
            "drive": self.title,
            "episode": episode,
            "layout": poses[0].layout if poses else [],
            "poses": columns,
            "rewards": rewards,
            "costs": costs,
            "stages": self._stages(records, self._first.get(episode, 0)),
            "reasons": [record.reason for record in records],
            "events": [record.event or "" for record in records],
            "ended": any(record.ended for record in records),
        }

    def _stages(self, records: list[Record], before: int) -> dict[str, list[float]]:
        if not records:
            return {}
        arms, goals = len(records[0].run_info.names), len(self.objectives)
        stages: dict[str, list[float]] = {
            "start": [record.step - before for record in records],
            "arm": [record.arm for record in records],
            "correct": [-1 if record.correct is None else int(record.correct) for record in records],
            "bound": [record.loss_bound * record.loss_unit for record in records],
        }
        numbers = np.full((len(records), arms, 1 + 2 * goals), np.nan)
        for row, record in enumerate(records):
            decision, units = record.decision, record.units
            if decision is not None:
                asked = list(record.asked)
                numbers[row, asked, 0] = decision.loss * record.loss_unit
                numbers[row, asked, 1 : 1 + goals] = decision.estimate * units
                numbers[row, asked, 1 + goals :] = decision.ucb * units
        for arm in range(arms):
            stages[f"loss_{arm}"] = numbers[:, arm, 0].tolist()
            for goal in range(goals):
                stages[f"estimate_{arm}_{goal}"] = numbers[:, arm, 1 + goal].tolist()
                stages[f"ucb_{arm}_{goal}"] = numbers[:, arm, 1 + goals + goal].tolist()
        return stages
