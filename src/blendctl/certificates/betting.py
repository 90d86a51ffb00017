"""Bound a mean by betting against it: valid for any distribution, any sample size and any stopping time.

A gambler starts with wealth 1 and bets that the true mean lies on the other side of a number m. Values x never pass a
known `limit`. A bet of the fraction f multiplies the wealth by 1 + f (m - x) / (limit - m), which is never negative.
If the claim is wrong, this is at most 1 on average, so the wealth ever reaches 1/a with probability at most a (Ville's
inequality). The gambler splits the wealth over several fractions and keeps them: the sum is again a test martingale,
does not depend on the order of the values, and comes near the best fraction (Waudby-Smith and Ramdas, "Estimating means
of bounded random variables by betting", 2024).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.errors import InputError

# Costs are mostly rare values far from the mean. Then betting all is nearly best: that fraction gets half the wealth.
FRACTIONS = 2.0 ** (-0.75 * np.arange(10))
SHARES = np.array([0.5] + [0.5 / 9] * 9)
HALVINGS = 40  # of the interval in which a bound is searched


def log_factors(values: ArrayLike, *, mean: float, limit: float) -> FloatArray:
    """Return the log factors (fractions, n) by which each fraction's bet changes the wealth at each value (n,)."""
    if not (math.isfinite(mean) and math.isfinite(limit)) or mean == limit:
        raise InputError(f"expected a mean and another limit, both finite, actually: {mean} and {limit}")
    x = np.atleast_1d(np.asarray(values, np.float64))
    check_limit(x, mean=mean, limit=limit)
    factors = 1.0 + np.multiply.outer(FRACTIONS, (mean - x) / (limit - mean))
    with np.errstate(divide="ignore"):  # all wealth can be lost
        return np.asarray(np.log(np.maximum(factors, 0.0)))


def check_limit(values: FloatArray, *, mean: float, limit: float) -> None:
    """Raise InputError if a value is not finite or passes the limit."""
    passed = values > limit if limit > mean else values < limit
    if not np.isfinite(values).all() or passed.any():
        wrong = values[passed | ~np.isfinite(values)][0]
        relation = "<=" if limit > mean else ">="
        raise InputError(f"expected finite values {relation} {limit:g}, actually: {wrong:g}; declare a wider range")


def log_wealth(values: ArrayLike, mean: float, *, limit: float) -> float:
    """Return the log evidence of values (n,) that their mean lies on the other side of `mean` than `limit`.

    >>> round(log_wealth([0.0, 0.1, 0.0, 0.2, 0.1, 0.0], 0.5, limit=1.0), 2)  # log(20) = 3.0 proves it with 95%
    3.1
    """
    logs = log_factors(values, mean=mean, limit=limit).sum(axis=1)
    return float(np.logaddexp.reduce(np.log(SHARES) + logs))


def mean_bound(values: ArrayLike, *, limit: float, error: float) -> float:
    """Return a bound of the true mean, between the mean of values (n,) and `limit`, which no value passes.

    It is wrong with probability at most `error`: an upper bound if the limit is above the values, else a lower one.
    The evidence grows as m approaches the limit, so the bound is found by halving.

    >>> round(mean_bound(np.zeros(100), limit=1.0, error=0.05), 4)
    0.0356
    """
    x = np.asarray(values, np.float64)
    if x.ndim != 1 or not len(x):
        raise InputError(f"expected one value or more in a row, actually: shape {x.shape}")
    if not 0.0 < error < 1.0:
        raise InputError(f"expected a probability of error between 0 and 1, actually: {error}")
    near, far = float(x.mean()), float(limit)
    check_limit(x, mean=(far - 1.0) if (x <= far).all() else far + 1.0, limit=far)
    enough = -math.log(error)
    for _ in range(HALVINGS):
        middle = 0.5 * (near + far)
        if middle in (near, far):
            break
        if log_wealth(x, middle, limit=limit) >= enough:
            far = middle
        else:
            near = middle
    return far


def episodes_needed(mean: float, *, best: float, limit: float, error: float) -> int | None:
    """Return how many values prove a claim about the mean if all are `best`; None if no number does.

    >>> episodes_needed(25.0, best=0.0, limit=1000.0, error=0.05)
    144
    """
    gain = (mean - best) / (limit - mean)
    if gain <= 0.0:
        return None
    growth, enough = np.log1p(FRACTIONS * gain), -math.log(error)

    def proves(count: int) -> bool:
        return float(np.logaddexp.reduce(np.log(SHARES) + count * growth)) >= enough

    high = 1
    while not proves(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high
