"""State a claim about the episodes of a driver, and judge it by a sample of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from blendctl.certificates.betting import episodes_needed, log_wealth, mean_bound
from blendctl.errors import InputError
from blendctl.statistics import proportion_interval

Outcome = Literal["proven", "hopeless", "open"]


@dataclass(frozen=True)
class Claim:
    """The mean cost of an episode is at most `budget`; with `share`, also at most that share of episodes cost more.

    cost_ceiling: cost that no episode exceeds. return_range: a return below it counts as its low end, one above it as
    its high end; None: returns have no bound. confidence: lower bound of the probability that a wrong claim does not
    pass, and that each bound holds.
    """

    budget: float
    cost_ceiling: float
    share: float | None = None
    return_range: tuple[float, float] | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("budget", self.budget, 0.0, math.inf),
            ("cost_ceiling", self.cost_ceiling, 0.0, math.inf),
            ("share", 0.5 if self.share is None else self.share, 0.0, 1.0),
            ("confidence", self.confidence, 0.5, 1.0),
        ):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not low < value < high:
                raise InputError(f"{name} must be a number between {low:g} and {high:g}, actually: {value!r}")
        if self.budget >= self.cost_ceiling:
            raise InputError(
                f"no episode costs more than {self.cost_ceiling:g}, so a budget of {self.budget:g} needs no certificate"
            )
        if self.return_range is not None and not self.return_range[0] < self.return_range[1]:
            raise InputError(f"return_range must be (low, high), actually: {self.return_range}")

    @property
    def error(self) -> float:
        """Probability of error, 1 - confidence."""
        return 1.0 - self.confidence

    @property
    def words(self) -> str:
        """The claim as a sentence."""
        share = "" if self.share is None else f", and at most {self.share:.1%} of the episodes cost more than that"
        return f"The mean cost of an episode is at most {self.budget:g}{share}."

    def episodes_needed(self, *, sequential: bool = False) -> int:
        """Return the least number of episodes that can prove the claim, if none of them costs anything."""
        counts = [episodes_needed(self.budget, best=0.0, limit=self.cost_ceiling, error=self.error)]
        if self.share is not None and sequential:
            counts.append(episodes_needed(self.share, best=0.0, limit=1.0, error=self.error))
        elif self.share is not None:
            counts.append(math.ceil(math.log(self.error) / math.log1p(-self.share)))
        return max(count for count in counts if count is not None)

    def p_value(self, costs: ArrayLike, *, sequential: bool = False) -> float:
        """Return an upper bound of the probability of such costs (episodes,) if the claim is wrong.

        The claim is wrong if one of its parts is: the part with the weakest evidence counts.
        """
        x = np.asarray(costs, np.float64)
        evidence = [log_wealth(x, self.budget, limit=self.cost_ceiling)]
        over = (x > self.budget).astype(np.float64)
        if self.share is not None and sequential:
            evidence.append(log_wealth(over, self.share, limit=1.0))
        p = math.exp(-max(min(evidence), 0.0))
        if self.share is not None and not sequential:
            p = max(p, _binomial_tail(int(over.sum()), len(x), self.share))
        return p

    def outcome(self, costs: ArrayLike, *, planned: int) -> Outcome:
        """Return whether the costs so far (episodes,) prove the claim, or show that `planned` episodes will not.

        Call it after any episode: evidence by betting is valid at every stopping time.
        """
        x = np.asarray(costs, np.float64)
        if not len(x):
            return "open"
        if self.p_value(x, sequential=True) <= self.error:
            return "proven"
        parts = [(x, self.budget, self.cost_ceiling)]
        if self.share is not None:
            parts.append(((x > self.budget).astype(np.float64), self.share, 1.0))
        left = np.zeros(max(planned - len(x), 0))
        for values, mean, limit in parts:
            refuted = log_wealth(values, mean, limit=0.0) >= -math.log(self.error)
            if refuted or log_wealth(np.concatenate([values, left]), mean, limit=limit) < -math.log(self.error):
                return "hopeless"
        return "open"


@dataclass(frozen=True)
class Bounds:
    """Statistics of a sample of episodes, with bounds of the true values."""

    episodes: int
    share_over: float  # share of the episodes that cost more than the budget
    share_over_upper: float
    cost_mean: float
    cost_mean_upper: float
    return_mean: float
    return_mean_lower: float | None  # None without a range of returns
    returns_outside: int  # returns beyond the range, which count as its ends
    p_value: float  # of the claim being wrong


def bounds(
    claim: Claim, returns: ArrayLike, costs: ArrayLike, *, sequential: bool = False, settings: int = 1
) -> Bounds:
    """Bound share, mean cost and mean return from independent episodes: returns (episodes,) and costs (episodes,).

    The share has the exact binomial bound (Clopper and Pearson). The means have bounds by betting, and so has the
    share of a test that could have stopped earlier (`sequential`). With several `settings` from which one is chosen by
    its result, all bounds of all settings hold together.
    """
    r, x = (np.asarray(values, np.float64) for values in (returns, costs))
    if x.ndim != 1 or r.shape != x.shape or not len(x):
        raise InputError(f"expected a return and a cost per episode, actually: shapes {r.shape} and {x.shape}")
    if not (np.isfinite(r).all() and np.isfinite(x).all()) or (x < 0.0).any() or (x > claim.cost_ceiling).any():
        raise InputError(
            f"expected finite returns, and costs from 0 to {claim.cost_ceiling:g}; actually: costs from {x.min():g} to "
            f"{x.max():g}, returns from {r.min():g} to {r.max():g}"
        )
    if settings < 1:
        raise InputError(f"settings must be a whole number >= 1, actually: {settings}")
    error = claim.error / settings
    over = x > claim.budget
    if sequential:
        share_upper = mean_bound(over.astype(np.float64), limit=1.0, error=error)
    else:
        share_upper = proportion_interval(int(over.sum()), len(x), level=1.0 - 2.0 * error)[1]
    lower, outside = None, 0
    if claim.return_range is not None:
        low, high = claim.return_range
        outside = int(((r < low) | (r > high)).sum())
        lower = mean_bound(np.clip(r, low, high), limit=low, error=error)
    return Bounds(
        episodes=len(x),
        share_over=float(over.mean()),
        share_over_upper=share_upper,
        cost_mean=float(x.mean()),
        cost_mean_upper=mean_bound(x, limit=claim.cost_ceiling, error=error),
        return_mean=float(r.mean()),
        return_mean_lower=lower,
        returns_outside=outside,
        p_value=claim.p_value(x, sequential=sequential),
    )


def boldest_proven(p_values: Sequence[float], *, error: float) -> int | None:
    """Return the last of the settings, ordered from safest to boldest, that passes; None if the first does not.

    This is Learn then Test with a fixed sequence: a setting is tested only if all safer ones have passed, each with the
    whole probability of error. All passed settings are right with probability 1 - error (Angelopoulos et al., 2021).

    >>> boldest_proven([0.001, 0.04, 0.3, 0.01], error=0.05)
    1
    """
    passed = next((index for index, p in enumerate(p_values) if p > error), len(p_values))
    return passed - 1 if passed else None


def _binomial_tail(over: int, episodes: int, share: float) -> float:
    """Return P(at most `over` of `episodes` exceed) if each does with probability `share`."""
    from scipy.special import bdtr

    return float(bdtr(over, episodes, share))
