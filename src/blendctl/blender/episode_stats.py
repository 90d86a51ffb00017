"""Statistics of a drive by episode, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blendctl import pareto
from blendctl.blender.record import Record
from blendctl.statistics import mean_columns, proportion_interval

__all__ = ["EpisodeStats", "over_budget"]


def over_budget(costs: Sequence[float], budget: float | None) -> dict[str, Any]:
    """Return the share of episodes whose cost exceeds a budget, with its exact 95% interval, as JSON data.

    Empty without a budget or episodes.

    >>> over_budget([10.0, 30.0, 25.0, 0.0], 25.0)["over_budget"]
    0.25
    """
    if budget is None or not costs:
        return {}
    over = sum(cost > budget for cost in costs)
    interval = proportion_interval(over, len(costs))
    return {"cost_budget": budget, "over_budget": over / len(costs), "over_budget_ci95": interval}


class EpisodeStats:
    """Returns, costs, shares, switches and losses so far; add every record that `run` yields."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.returns: list[float] = [0.0]  # per episode; the last one is running
        self.costs: list[float] = [0.0]
        self.steps = 0
        self.stages = 0
        self.switches = 0
        self.driven = dict.fromkeys(names, 0)  # control steps of each controller
        self.judged = 0  # stages with counterfactual feedback
        self.correct = 0
        self.loss = 0.0  # sum of true maximal losses, in scaled units
        self.ended = 0  # episodes

    def add(self, record: Record) -> None:
        """Add a record."""
        if self.ended == len(self.returns):
            self.returns.append(0.0)
            self.costs.append(0.0)
        self.returns[-1] += record.reward
        self.costs[-1] += record.cost
        self.steps += record.steps
        self.stages += 1
        self.switches += record.switched
        if record.arm >= 0:
            self.driven[record.name] += record.steps
        if record.correct is not None and record.truth is not None:
            known = np.asarray(np.isfinite(record.truth).all(axis=1))
            scaled = record.truth[known] / record.run_info.scales
            self.judged += 1
            self.correct += record.correct
            self.loss += float(pareto.maximal_loss(scaled)[int(known[: record.arm].sum())])
        self.ended += record.ended

    @property
    def correct_ratio(self) -> float | None:
        """Share of correct choices among those with counterfactual feedback."""
        return self.correct / self.judged if self.judged else None

    @property
    def average_loss(self) -> float | None:
        """Average true maximal loss per stage, in scaled units."""
        return self.loss / self.judged if self.judged else None

    def summary(self) -> dict[str, Any]:
        """Return the means with 95% intervals, as JSON data."""
        whole = max(self.ended, 1)
        return {
            "episodes": self.ended,
            "steps": self.steps,
            "stages": self.stages,
            **mean_columns({"return": np.array(self.returns[:whole]), "cost": np.array(self.costs[:whole])}),
            "arm_share": {name: driven / max(self.steps, 1) for name, driven in self.driven.items()},
            "switches": self.switches,
            "average_loss": self.average_loss,
            "correct_ratio": self.correct_ratio,
        }
