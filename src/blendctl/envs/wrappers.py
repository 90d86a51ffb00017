"""Serve code that was written for safety-gymnasium: the cost as the third of six values."""

from __future__ import annotations

from typing import Any

import gymnasium
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray


class CostInStep(gymnasium.Wrapper[FloatArray, FloatArray, FloatArray, FloatArray]):
    """Make `step` return (observation, reward, cost, terminated, truncated, info).

    As there, `info` has `cost_sum`, and `goal_met` only in a step that meets the goal. Put it outermost:
    Gymnasium's own wrappers expect five values.
    """

    def step(  # type: ignore[override]  # six values are what this wrapper is for
        self, action: ArrayLike
    ) -> tuple[FloatArray, float, float, bool, bool, dict[str, Any]]:
        """Advance by one action."""
        observation, reward, terminated, truncated, info = self.env.step(action)  # type: ignore[arg-type]  # anything array-like
        cost = float(info["cost"])
        info = {key: value for key, value in info.items() if key != "cost"} | {"cost_sum": cost}
        if not info["goal_met"]:
            del info["goal_met"]
        return observation, float(reward), cost, terminated, truncated, info
