"""The dial of a look-ahead blend: how much return a unit of cost is worth at every decision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.errors import InputError

PREFER = 0.5  # setting of the dial unless the user chooses another
RATE = 0.1  # step size: share of an episode's relative excess by which the aim falls
LOWEST_AIM = 0.25
LARGEST_EXCESS = 3.0  # relative excess of one episode that counts; a smaller limit would ignore what rare bursts cost
CAUTION = 1.645  # standard errors added to a measured cost: 95% of such bounds are above the true mean
# Share of the budget that the latch reserves: costs come in bursts, and the safest setting cannot stop one at once.
RESERVE = 0.3


@dataclass(frozen=True)
class DialPoint:
    """Mean return and cost per episode of one cost weight, as measured on validation episodes."""

    weight: float
    return_mean: float
    cost_mean: float
    cost_error: float = 0.0  # standard error of the mean cost; 0 if it is not known


def card_points(card: Mapping[str, Any]) -> list[DialPoint]:
    """Return the settings that the card of look-ahead networks lists; older cards have no spread of the cost."""
    return [
        DialPoint(
            point["weight"],
            point["return_mean"],
            point["cost_mean"],
            point.get("cost_std", 0.0) / math.sqrt(max(point["episodes"], 1)),
        )
        for point in card.get("dial", [])
    ]


class Dial:
    """Choose the cost weight of each decision, from a preference or from a cost budget per episode.

    prefer: 0 is the safest setting (`weight_range[1]`), 1 the most performant (`weight_range[0]`); the weight lies
    between them on a logarithmic scale, the same at every decision.
    cost_budget: cost that an episode of `episode_steps` steps may have. An episode starts with the smallest weight that
    costs no more than the budget, by the upper confidence bound of what was measured, and becomes more careful when it
    spends faster than that. Once the cost spent, the expected cost of the safest setting until the end and a reserve
    exceed the budget, the safest setting drives (the latch). If episodes exceed the budget on average, the dial aims
    lower.

    >>> points = [DialPoint(0.1, 28.0, 50.0), DialPoint(1.0, 20.0, 10.0)]
    >>> Dial((0.1, 1.0), points, prefer=0.5).weights(np.zeros(1), np.zeros(1)).round(3)
    array([0.316])
    >>> budget = Dial((0.1, 1.0), points, cost_budget=30.0, episode_steps=100)
    >>> budget.weights(np.array([0.0, 25.0]), np.array([0, 10])).round(3)
    array([0.316, 1.   ])
    """

    def __init__(
        self,
        weight_range: tuple[float, float],
        points: Sequence[DialPoint] = (),
        *,
        prefer: float | None = None,
        cost_budget: float | None = None,
        episode_steps: int = 1000,
    ) -> None:
        if prefer is not None and cost_budget is not None:
            raise InputError("prefer and cost_budget set the same dial; use one of them")
        self.low, self.high = weight_range
        self.prefer = None if cost_budget is not None else _number("prefer", PREFER if prefer is None else prefer, 1.0)
        self.cost_budget = None if cost_budget is None else _number("cost_budget", cost_budget, math.inf)
        if isinstance(episode_steps, bool) or not isinstance(episode_steps, int) or episode_steps < 1:
            raise InputError(f"episode_steps must be a whole number >= 1, actually: {episode_steps!r}")
        self.episode_steps = episode_steps
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
        upper = np.array([point.cost_mean + CAUTION * point.cost_error for point in ordered])
        self._upper_costs = np.minimum.accumulate(upper)
        self._returns = np.array([point.return_mean for point in ordered])

    @property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of mean costs per episode, ascending, and the logarithms of the weights that have them."""
        return self._upper_costs[::-1], self._log_weights[::-1]

    @property
    def safest_cost(self) -> float:
        """Mean cost per episode of the safest setting, as measured; NaN if it is not known."""
        return float(self._costs[-1]) if len(self._costs) else math.nan

    @property
    def warning(self) -> str | None:
        """Warning about the budget; None if it can be met on average."""
        if self.cost_budget is None or self.cost_budget >= self.safest_cost:
            return None
        return (
            f"a cost budget of {self.cost_budget:g} per episode is below what the safest setting costs on average, "
            f"{self.safest_cost:.1f}; the safest setting drives"
        )

    def expected_return(self, cost: float) -> float:
        """Return per episode of the setting with a mean cost, as measured."""
        return float(np.interp(cost, self._upper_costs[::-1], self._returns[::-1]))

    def weights(self, spent: ArrayLike, episode_step: ArrayLike) -> FloatArray:
        """Return the cost weight (B,) for the cost spent (B,) until control step episode_step (B,) of the episode."""
        spent, step = np.asarray(spent, np.float64), np.asarray(episode_step, np.float64)
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
        return np.clip(np.where(latched, self.high, np.exp(log_weight)), self.low, self.high)

    def end_episodes(self, costs: FloatArray) -> None:
        """Aim lower after episodes that exceeded the budget, higher after those below it; costs (episodes,)."""
        if self.cost_budget:
            for cost in costs.tolist():
                excess = min(cost / self.cost_budget - 1.0, LARGEST_EXCESS)
                self.aim = min(max(self.aim * math.exp(-RATE * excess), LOWEST_AIM), 1.0)


def _number(name: str, value: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= most:
        allowed = "0 (safest) to 1 (most performant)" if most == 1.0 else "a number >= 0"
        raise InputError(f"{name} must be {allowed}, actually: {value!r}")
    return float(value)
