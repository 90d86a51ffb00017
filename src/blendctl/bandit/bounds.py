"""Radii of the confidence sets and the bounds that follow from them: formulas on plain numbers.

Numba compiles them as they are: the learner's kernels and its public properties share one copy of each formula.

Symbols, as in the paper: d features, t updates seen, sigma (noise), lambda (regularization),
S (theta_bound), L (feature_bound), delta (the failure probability of *one* objective's set:
with a union bound over m objectives the caller passes delta / m).
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Values = TypeVar("Values", float, NDArray[np.float64])


def paper_radius(
    d: int, t: float, noise: float, regularization: float, theta_bound: float, feature_bound: float, delta: float
) -> float:
    """Compute the printed radius, Eq. (8): sigma sqrt(d log((1 + t L^2 / lambda) / delta)) + sqrt(lambda) S."""
    growth = (1.0 + t * feature_bound * feature_bound / regularization) / delta
    return noise * math.sqrt(d * math.log(growth)) + math.sqrt(regularization) * theta_bound


def determinant_radius(
    log_determinant: float, noise: float, regularization: float, theta_bound: float, delta: float
) -> float:
    """Compute the tighter radius: sigma sqrt(2 log(det(V_t / lambda)^(1/2) / delta)) + sqrt(lambda) S.

    log_determinant is log det(V_t) - log det(V_0). Abbasi-Yadkori, Pal, Szepesvari (2011), Theorem 2.
    """
    return noise * math.sqrt(log_determinant - 2.0 * math.log(delta)) + math.sqrt(regularization) * theta_bound


def largest_determinant(d: int, t: float, regularization: float, feature_bound: float) -> float:
    """Bound log det(V_t) - log det(V_0) after t features no longer than L: d log(1 + t L^2 / (lambda d))."""
    return d * math.log(1.0 + t * feature_bound * feature_bound / (regularization * d))


def discounted_radius(
    d: int,
    t: float,
    noise: float,
    regularization: float,
    theta_bound: float,
    feature_bound: float,
    delta: float,
    discount: float,
) -> float:
    """Compute the radius that matches forgetting: the discounted weights see a bounded past.

    sigma sqrt(2 log(1 / delta) + d log(1 + L^2 (1 - g^2t) / (lambda' d (1 - g^2)))) + sqrt(lambda) S
    with g the discount and lambda' = g^(d-1) lambda, the prior's lowest level between two top-ups
    (one coordinate is topped up per update). Russac, Vernade, Cappe (2019), Theorem 1.

    It holds with probability 1 - delta at each stage, if the world does not change within the memory of the
    discount. No bounded radius can hold at all stages at once, because the noise never averages out.
    """
    square = discount * discount
    weight = (1.0 - square**t) / (1.0 - square)
    floor = regularization * discount ** (d - 1)
    growth = d * math.log(1.0 + feature_bound * feature_bound * weight / (floor * d))
    return noise * math.sqrt(growth - 2.0 * math.log(delta)) + math.sqrt(regularization) * theta_bound


def regret_bound(d: int, t: float, radius: float, regularization: float, feature_bound: float) -> float:
    """Bound the Pareto regret of t stages (Theorem 1 with its constants corrected).

    PR <= beta_T sqrt(8 T 2 d log(1 + T L^2 / (lambda d))): the radius is not squared, and the logarithm
    is that of the determinant's bound.
    """
    return radius * math.sqrt(16.0 * t * largest_determinant(d, t, regularization, feature_bound))


def loss_bound(loss: Values, radius: Values, width: Values) -> Values:
    """Bound the true maximal loss of an arm with estimated loss eps and width w: eps + 2 beta w (Theorem 2)."""
    return loss + 2.0 * radius * width
