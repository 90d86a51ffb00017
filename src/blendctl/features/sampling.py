"""Collect simulated futures round by round: means, standard errors, and whether the best controller is clear."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from blendctl.arrays import FloatArray, IndexArray

CLEAR = 0.95  # confidence of the one-sided paired test that ends the sampling


@dataclass(frozen=True)
class Estimate:
    """Return-to-go and cost-to-go of every controller in n worlds, with standard errors of their differences."""

    returns: FloatArray  # (n, controllers)
    costs: FloatArray  # (n, controllers)
    return_errors: FloatArray  # (n, controllers) of the difference from the mean over the controllers
    cost_errors: FloatArray  # (n, controllers)

    def best(self, weight: FloatArray) -> IndexArray:
        """Return the controller of the highest return - weight * cost, the first of equals, (n,)."""
        return np.asarray((self.returns - weight[:, None] * self.costs).argmax(axis=1), np.intp)


class SampleTable:
    """Futures of every controller and continuation in n worlds; worlds may have different numbers of them."""

    def __init__(self, worlds: int) -> None:
        self.worlds = worlds
        self._returns: list[FloatArray] = []  # (n, controllers, continuations, samples) per round, NaN where not run
        self._costs: list[FloatArray] = []

    def add(self, rows: IndexArray, returns: FloatArray, costs: FloatArray) -> None:
        """Add futures (rows, controllers, continuations, samples) of some worlds."""
        for kept, values in ((self._returns, returns), (self._costs, costs)):
            whole = np.full((self.worlds, *values.shape[1:]), np.nan)
            whole[rows] = values
            kept.append(whole)

    def estimate(self, weight: FloatArray) -> Estimate:
        """Return means and standard errors with the best continuation of each controller, for weights (n,)."""
        returns, costs = self._continued(weight)
        errors = [_standard_error(values - values.mean(axis=1, keepdims=True)) for values in (returns, costs)]
        return Estimate(np.nanmean(returns, axis=2), np.nanmean(costs, axis=2), *errors)

    def unclear(self, weight: FloatArray) -> IndexArray:
        """Return the worlds in which a paired test does not decide which controller is best."""
        returns, costs = self._continued(weight)
        score = returns - weight[:, None, None] * costs  # (n, controllers, samples)
        best = np.nanmean(score, axis=2).argmax(axis=1)
        ahead = score[np.arange(len(score)), best][:, None] - score
        samples = np.isfinite(ahead[:, 0]).sum(axis=1)
        margin = _quantile(int(samples.max()) - 1) * _standard_error(ahead)
        others = np.arange(score.shape[1]) != best[:, None]
        doubtful = others & ~(np.nanmean(ahead, axis=2) > margin) & (_spread(ahead) > 0)
        return np.flatnonzero(doubtful.any(axis=1))

    def _continued(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return returns and costs (n, controllers, samples) with the best continuation."""
        returns, costs = (np.concatenate(kept, axis=3) for kept in (self._returns, self._costs))
        if returns.shape[2] == 1:
            return returns[:, :, 0], costs[:, :, 0]
        mean = np.nanmean(returns - weight[:, None, None, None] * costs, axis=3)
        chosen = mean.argmax(axis=2)[:, :, None, None]
        return tuple(np.take_along_axis(values, chosen, axis=2)[:, :, 0] for values in (returns, costs))  # type: ignore[return-value]  # a pair


def _standard_error(values: FloatArray) -> FloatArray:
    """Return the standard error of means over the last axis without NaN; 0 for a single value, which shows none."""
    samples = np.isfinite(values).sum(axis=-1)
    return np.asarray(_spread(values) / np.sqrt(np.maximum(samples * (samples - 1), 1)))


def _spread(values: FloatArray) -> FloatArray:
    """Return the root of the sum of squared deviations from the mean over the last axis."""
    return np.asarray(np.sqrt(np.nansum((values - np.nanmean(values, axis=-1, keepdims=True)) ** 2, axis=-1)))


@functools.cache
def _quantile(freedom: int) -> float:
    """Return the quantile of Student's t distribution with at least one degree of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(max(freedom, 1), CLEAR))
