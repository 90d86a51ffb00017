"""The corner score: the distance of a method from the mixing line, towards the best of both controllers.

Return and cost are scaled by the difference between the two controllers, so that the performant one is at (0, 1), the
safe one at (1, 0) and the corner (performant return, safe cost) at (0, 0):

    x = (performant return - return) / (performant return - safe return)
    y = (cost - safe cost) / (performant cost - safe cost)
    score = 1 - (distance to the corner) / (distance of the mixing line to the corner) = 1 - (x + y)

The distance of the mixing line is measured in the direction of the method: the line is x + y = 1. So every point of
the line has score 0, the corner 1. A point worse than mixing has a negative score, one beyond the corner more than 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.statistics import RESAMPLES, bootstrap_interval

__all__ = ["Corner", "Score", "score_episodes"]


@dataclass(frozen=True)
class Corner:
    """The two controllers alone, which define the score. Values may be arrays of one shape, for many scores at once.

    >>> corner = Corner(performant=(26.0, 59.4), safe=(20.9, 29.2))
    >>> round(float(corner.score(25.1, 35.4)), 2), float(corner.score(26.0, 59.4)), float(corner.score(26.0, 29.2))
    (0.62, 0.0, 1.0)
    """

    performant: tuple[ArrayLike, ArrayLike]  # return, cost
    safe: tuple[ArrayLike, ArrayLike]

    def differences(self) -> tuple[FloatArray, FloatArray]:
        """Return by how much the performant controller exceeds the safe one in return and cost."""
        gain = np.subtract(self.performant[0], self.safe[0], dtype=np.float64)
        price = np.subtract(self.performant[1], self.safe[1], dtype=np.float64)
        return np.asarray(gain), np.asarray(price)

    def reason(self) -> str | None:
        """Explain why there is no score; None if there is one."""
        gain, price = self.differences()
        if gain > 0 and price > 0:
            return None
        reasons = []
        if not gain > 0:
            returns = f"{self.performant[0]:.4g} against {self.safe[0]:.4g}"
            reasons.append(f"the performant controller returns no more than the safe one ({returns})")
        if not price > 0:
            costs = f"{self.safe[1]:.4g} against {self.performant[1]:.4g}"
            reasons.append(f"the safe controller costs no less than the performant one ({costs})")
        return f"no corner: {' and '.join(reasons)}"

    def score(self, returns: ArrayLike, costs: ArrayLike) -> FloatArray:
        """Return the scores; NaN if the controllers do not differ as performant and safe should."""
        gain, price = self.differences()
        defined = (gain > 0) & (price > 0)
        x = np.subtract(self.performant[0], returns) / np.where(defined, gain, 1.0)
        y = np.subtract(costs, self.safe[1]) / np.where(defined, price, 1.0)
        return np.asarray(np.where(defined, 1.0 - (x + y), np.nan))


@dataclass(frozen=True)
class Score:
    """A corner score with its 95% interval by the bootstrap."""

    value: float | None
    interval: list[float] | None
    reason: str | None  # why there is no value, or no interval


def score_episodes(
    method: FloatArray,
    performant: FloatArray,
    safe: FloatArray,
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
) -> Score:
    """Score the episodes of a method, each (episodes, 2) of return and cost, row i of all on the same seed.

    The bootstrap draws the same episodes for all three: shared layout difficulty cancels, and does not widen the
    interval. method may be (networks, episodes, 2), of several trainings: the bootstrap draws these too.
    """
    corner = Corner(_point(performant), _point(safe))
    reason = corner.reason()
    if reason is not None:
        return Score(None, None, reason)
    value = float(corner.score(*_point(method)))
    if method.shape[-2] < 2:
        return Score(value, None, "an interval needs two episodes or more")
    interval = bootstrap_interval(_score_of_means, (method, performant, safe), rng=rng, resamples=resamples)
    if interval is None:
        return Score(value, None, "too few episodes: in many resamples the controllers do not differ")
    return Score(value, interval, None)


def _score_of_means(method: FloatArray, performant: FloatArray, safe: FloatArray) -> FloatArray:
    """Compute the scores (resamples,) from means of return and cost, each (2, resamples)."""
    return Corner((performant[0], performant[1]), (safe[0], safe[1])).score(method[0], method[1])


def _point(sample: FloatArray) -> tuple[float, float]:
    mean = sample.mean(axis=tuple(range(sample.ndim - 1)))
    return float(mean[0]), float(mean[1])
