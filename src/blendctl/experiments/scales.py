"""Units of return and cost: the differences between the controllers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blendctl.arrays import FloatArray

SMALL_RANGE = 0.05  # ranges of means below this share of the episodes' spread are noise


@dataclass(frozen=True)
class Scales:
    """One unit of return and of cost.

    >>> Scales(50.0, 40.0).utility(np.array([[100.0, 50.0], [50.0, 10.0]])).tolist()
    [0.75, 0.75]
    """

    returns: float
    costs: float

    @property
    def weight(self) -> float:
        """Return that a unit of cost is worth."""
        return self.returns / self.costs

    def utility(self, points: FloatArray) -> FloatArray:
        """Return the utility (n,) of returns and costs (n, 2): equal for two controllers that trade return for cost."""
        return np.asarray(points[:, 0] / self.returns - points[:, 1] / self.costs)


def measure_scales(alone: Sequence[FloatArray]) -> Scales:
    """Return the ranges of mean return and cost over the controllers, each with (episodes, 2).

    If the controllers are equal, use the spread of the episodes.
    """
    points = np.stack(alone)  # (controllers, episodes, 2)
    ranges = np.ptp(points.mean(axis=1), axis=0)
    spread = points.reshape(-1, 2).std(axis=0)
    scales = np.where(ranges > SMALL_RANGE * spread, ranges, spread)
    returns, costs = np.where(scales > 0, scales, 1.0).tolist()
    return Scales(returns, costs)
