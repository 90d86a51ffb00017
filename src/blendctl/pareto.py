"""Pareto mathematics: dominance, the front, the suboptimality gap, the maximal loss.

Every function takes one matrix of expected feedback `mu` (arms, objectives) or a batch of them
(..., arms, objectives), and all objectives are maximised. The closed forms are those of
Definition 1 of the paper:

    gap   Delta(x) = max(0, max_x' min_k (mu[x', k] - mu[x, k]))
    loss  eps(x)   = max(0, max_x' max_k (mu[x', k] - mu[x, k]))

>>> mu = [[0.0, 1.0], [2.0, 0.0]]  # the paper's example: neither arm dominates the other
>>> suboptimality_gap(mu)
array([0., 0.])
>>> maximal_loss(mu)
array([2., 1.])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import BoolArray, FloatArray
from blendctl.errors import InputError

__all__ = ["dominates", "front", "suboptimality_gap", "maximal_loss"]


def dominates(u: ArrayLike, v: ArrayLike) -> BoolArray:
    """Return whether u is at least as good as v in every objective and better in one.

    u, v: (..., objectives), broadcast against each other. Returns (...).

    >>> bool(dominates([1, 2], [1, 1])), bool(dominates([1, 1], [1, 1])), bool(dominates([2, 0], [1, 1]))
    (True, False, False)
    """
    a, b = _finite(u, "u", minimum_ndim=1), _finite(v, "v", minimum_ndim=1)
    if a.shape[-1] != b.shape[-1]:
        raise InputError(
            f"u and v must have the same number of objectives (last axis), actually: {a.shape} and {b.shape}"
        )
    try:
        np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        raise InputError(f"u and v must broadcast together, actually: {a.shape} and {b.shape}") from None
    return np.asarray(np.all(a >= b, axis=-1) & np.any(a > b, axis=-1))


def front(mu: ArrayLike) -> BoolArray:
    """Mark the arms that no other arm dominates.

    mu: (..., arms, objectives). Returns a mask (..., arms); equal arms are all on the front.

    >>> front([[0, 5], [0, 4], [5, 0]])
    array([ True, False,  True])
    """
    values = _feedback(mu)
    other, this = values[..., None, :, :], values[..., :, None, :]
    return np.asarray(~np.any(dominates(other, this), axis=-1))


def suboptimality_gap(mu: ArrayLike) -> FloatArray:
    """Compute the least gain in all objectives at once that moves each arm to the front.

    mu: (..., arms, objectives). Returns (..., arms); zero where no arm is better in every objective.

    >>> suboptimality_gap([[1.0, 1.0], [3.0, 2.0]])
    array([1., 0.])
    """
    values = _feedback(mu)
    shortfall = values[..., None, :, :] - values[..., :, None, :]  # (..., arm, other arm, objective)
    return np.asarray(shortfall.min(axis=-1).max(axis=-1))  # 0 comes from the arm itself


def maximal_loss(mu: ArrayLike) -> FloatArray:
    """Compute how much each arm loses in its worst objective against the best arm there.

    mu: (..., arms, objectives). Returns (..., arms).

    >>> maximal_loss([[0, 5], [0, 4], [5, 0]])
    array([5., 5., 5.])
    """
    values = _feedback(mu)
    return np.asarray((values.max(axis=-2, keepdims=True) - values).max(axis=-1))


def _feedback(mu: ArrayLike) -> FloatArray:
    values = _finite(mu, "mu", minimum_ndim=2)
    if 0 in values.shape[-2:]:
        raise InputError(
            f"mu must have at least one arm and one objective: (..., arms, objectives), actually: {values.shape}"
        )
    return values


def _finite(values: ArrayLike, name: str, *, minimum_ndim: int) -> FloatArray:
    try:
        raw = np.asarray(values)
        if raw.dtype.kind not in "fiub":
            raise TypeError(f"type {raw.dtype}")
        array = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be an array of numbers: {error}") from None
    if array.ndim < minimum_ndim:
        allowed = "(..., arms, objectives)" if minimum_ndim == 2 else "(..., objectives)"
        raise InputError(f"{name} must have shape {allowed}, actually: {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} must be finite, actually: {np.count_nonzero(~np.isfinite(array))} NaN or inf")
    return array
