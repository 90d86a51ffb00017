"""The dial of a look-ahead blend: how much return a unit of cost is worth at every decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.errors import InputError
from blendctl.statistics import gamma_quantile

PREFER = 0.5  # setting of the dial unless the user chooses another
RATE = 0.1  # step size: share of an episode's relative excess by which the aim falls
LOWEST_AIM = 0.25
LARGEST_EXCESS = 3.0  # relative excess of one episode that counts; a smaller limit would ignore what rare bursts cost
# Share of the validation episodes within the budget, by a gamma distribution, at the setting that an episode starts
# with. Costs have heavier tails: on the cards that ship, it misses about 4% of the episodes over 25 where 10 to 45%
# are. So about 80% really stay within.
WITHIN = 0.85
# Share of the budget that the latch reserves: costs come in bursts, and the safest setting cannot stop one at once.
RESERVE = 0.3
EPISODE_STEPS = 1000  # control steps of an episode where nothing says otherwise, as in Safety Gym
LARGEST_BUDGET = 1e9


@dataclass(frozen=True)
class DialPoint:
    """Mean return and cost per episode of one cost weight, as measured on validation episodes."""

    weight: float
    return_mean: float
    cost_mean: float
    cost_std: float | None = None  # over the episodes; None, if it is not known, takes it to be the mean
    episodes: int = 100  # that were measured

    @property
    def cost_within(self) -> float:
        """Cost that a share WITHIN of the episodes does not exceed, at least the mean.

        By a gamma distribution with the measured mean and spread: a few hundred episodes are too few for a quantile.
        """
        if self.cost_mean <= 0.0 or self._spread <= 0.0:
            return self.cost_mean
        shape = (self.cost_mean / self._spread) ** 2
        return max(gamma_quantile(shape, WITHIN) / shape, 1.0) * self.cost_mean

    def scaled(self, length: float) -> DialPoint:
        """Return the setting for episodes that are `length` times as long.

        The spread of the cost grows with its mean if episodes differ, with the root of the length if costs come at
        random; the larger one is taken. The mean is as well known as before.
        """
        wider = max(1.0, 1.0 / math.sqrt(length))  # than in proportion to the length
        point = replace(self, return_mean=length * self.return_mean, cost_mean=length * self.cost_mean)
        if point.cost_std is None:
            return point
        return replace(point, cost_std=wider * length * point.cost_std, episodes=round(wider**2 * point.episodes))

    @property
    def cost_error(self) -> float:
        """Standard error of the mean cost."""
        return self._spread / math.sqrt(max(self.episodes, 1))

    @property
    def _spread(self) -> float:
        return abs(self.cost_mean) if self.cost_std is None else self.cost_std


def card_steps(card: Mapping[str, Any]) -> int:
    """Return the control steps of the episodes that the card of look-ahead networks measured."""
    return int(card.get("episode_steps", EPISODE_STEPS))


def card_points(card: Mapping[str, Any], *, episode_steps: int | None = None) -> list[DialPoint]:
    """Return the settings that the card of look-ahead networks lists, for episodes of `episode_steps`.

    None: as long as they were measured. Older cards have no spread of the cost.
    """
    points = [
        DialPoint(p["weight"], p["return_mean"], p["cost_mean"], p.get("cost_std"), p["episodes"])
        for p in card.get("dial", [])
    ]
    return points if episode_steps is None else [point.scaled(episode_steps / card_steps(card)) for point in points]


class Dial:
    """Choose the cost weight of each decision, from a preference or from a cost budget per episode.

    prefer: 0 is the safest setting (`weight_range[1]`), 1 the most performant (`weight_range[0]`); the weight lies
    between them on a logarithmic scale, the same at every decision.
    cost_budget: cost that an episode of `episode_steps` steps may have. An episode starts with the smallest weight at
    which a share WITHIN of them cost no more than the budget, as measured, and becomes more careful when it spends
    faster than that. Once the cost spent, the expected cost of the safest setting until the end and a reserve
    exceed the budget, the safest setting drives (the latch): the smallest weight whose cost is within a standard
    error of the lowest. If episodes exceed the budget on average, the dial aims lower.

    >>> points = [DialPoint(0.1, 28.0, 50.0), DialPoint(1.0, 20.0, 10.0)]
    >>> Dial((0.1, 1.0), points, prefer=0.5).weights(np.zeros(1), np.zeros(1)).round(3)
    array([0.316])
    >>> round(points[0].cost_within, 1), round(points[1].cost_within, 1)
    (94.9, 19.0)
    >>> budget = Dial((0.1, 1.0), points, cost_budget=30.0, episode_steps=100)
    >>> budget.weights(np.array([0.0, 25.0]), np.array([0, 10])).round(3)
    array([0.716, 1.   ])
    """

    def __init__(
        self,
        weight_range: tuple[float, float],
        points: Sequence[DialPoint] = (),
        *,
        prefer: float | None = None,
        cost_budget: float | None = None,
        episode_steps: int = EPISODE_STEPS,
    ) -> None:
        if prefer is not None and cost_budget is not None:
            raise InputError("prefer and cost_budget set the same dial; use one of them")
        self.low, self.high = weight_range
        self.prefer = None if cost_budget is not None else _number("prefer", PREFER if prefer is None else prefer, 1.0)
        self.cost_budget = None if cost_budget is None else _number("cost_budget", cost_budget, LARGEST_BUDGET)
        self.episode_steps = check_steps(episode_steps)
        self.aim = 1.0  # share of the budget that an episode starts with
        ordered = sorted(points, key=lambda point: point.weight)
        if self.cost_budget is not None and len(ordered) < 2:
            raise InputError(
                "a cost budget needs look-ahead networks whose card has the cost of two settings of the dial or more; "
                "use prefer=..., or train the networks again"
            )
        self._log_weights = np.log([point.weight for point in ordered])
        # A larger weight never costs more; a sample of episodes that shows otherwise is noise.
        self._costs = np.minimum.accumulate(np.array([point.cost_mean for point in ordered]))
        # A larger weight whose cost is hardly lower would lose return for nothing.
        lowest = min(ordered, key=lambda point: point.cost_mean, default=DialPoint(self.high, 0.0, 0.0))
        safe = int(np.argmax(self._costs <= lowest.cost_mean + lowest.cost_error)) if ordered else 0
        self.safest_weight = (
            self.high if self.cost_budget is None else min(max(ordered[safe].weight, self.low), self.high)
        )
        within = [point.cost_within for point in ordered] if self.cost_budget is not None else self._costs
        self._costs_within = np.minimum.accumulate(np.array(within))
        self._returns = np.array([point.return_mean for point in ordered])
        # Mean cost per episode of the safest setting, and what a share WITHIN of its episodes cost at most.
        self.safest_cost = float(self._costs[safe]) if ordered else math.nan
        self.safest_within = float(self._costs_within[safe]) if ordered else math.nan

    @property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Costs that most episodes do not exceed, ascending, and the logarithms of the weights that have them."""
        return self._costs_within[::-1], self._log_weights[::-1]

    @property
    def warning(self) -> str | None:
        """Warning about the budget; None if most episodes should stay within it."""
        if self.cost_budget is None:
            return None
        budget, safest, within = self.cost_budget, self.safest_cost, self.safest_within
        if budget < safest:
            return (
                f"a cost budget of {budget:g} per episode is below what the safest setting costs on average, "
                f"{safest:.1f}; the safest setting drives, with a return of about "
                f"{self.expected_return(budget):.1f}"
            )
        # Up to `within` the curve ends at the safest setting; the latch may be closed at the start of an episode only.
        stays, reserved = budget < within, safest / (1.0 - RESERVE)
        if stays or budget < reserved:
            return (
                f"a cost budget of {budget:g} per episode leaves {'no' if stays else 'little'} choice: the blend "
                f"{'stays at' if stays else 'starts at'} its safest setting, as with every budget up to "
                f"{within if stays else reserved:.1f}. It costs {safest:.1f} on average, about {WITHIN:.0%} of its "
                f"episodes cost at most {within:.1f}, and its return is about {self.expected_return(budget):.1f}"
            )
        return None

    def expected_return(self, budget: float) -> float:
        """Mean return per episode of the setting that a budget starts with, as measured."""
        log_weight = min(np.interp(budget, *self.curve), math.log(self.safest_weight))
        return float(np.interp(log_weight, self._log_weights, self._returns))

    def weights(self, spent: ArrayLike, episode_step: ArrayLike) -> FloatArray:
        """Return the cost weight (B,) for the cost spent (B,) until control step episode_step (B,) of the episode."""
        spent, step = np.asarray(spent, np.float64), np.asarray(episode_step, np.float64)
        spent = np.where(np.isfinite(spent), spent, np.inf)  # a cost that is not known may be any
        if self.cost_budget is None:
            assert self.prefer is not None
            weight = self.high * (self.low / self.high) ** self.prefer
            return np.full(spent.shape, weight)
        left = np.maximum(1.0 - step / self.episode_steps, 1.0 / self.episode_steps)
        rest = self.cost_budget * self.aim - spent
        # Costs come in bursts: early savings are kept as a reserve, not spent on a bolder setting.
        affordable = np.minimum(rest / left, self.cost_budget * self.aim)
        log_weight = np.interp(affordable, *self.curve)
        latched = rest <= self.safest_cost * left + RESERVE * self.cost_budget
        return np.clip(np.where(latched, self.safest_weight, np.exp(log_weight)), self.low, self.safest_weight)

    def end_episodes(self, costs: FloatArray) -> None:
        """Aim lower after episodes that exceeded the budget, higher after those below it; costs (episodes,)."""
        if self.cost_budget:
            for cost in costs[np.isfinite(costs)].tolist():
                excess = min(cost / self.cost_budget - 1.0, LARGEST_EXCESS)
                self.aim = min(max(self.aim * math.exp(-RATE * excess), LOWEST_AIM), 1.0)


def check_steps(episode_steps: Any) -> int:
    """Return the control steps of an episode, checked."""
    if isinstance(episode_steps, bool) or not isinstance(episode_steps, int | np.integer) or episode_steps < 1:
        raise InputError(f"episode_steps must be a whole number >= 1, actually: {episode_steps!r}")
    return int(episode_steps)


def _number(name: str, value: float, most: float) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float | np.integer | np.floating)
        or not 0 <= value <= most
    ):
        allowed = "0 (safest) to 1 (most performant)" if most == 1.0 else f"a number from 0 to {most:g}"
        raise InputError(f"{name} must be {allowed}, actually: {value!r}")
    return float(value)
