"""Compute confidence intervals and confidences, on SciPy.

The functions use `scipy.special`, which holds the distributions behind `scipy.stats` and imports four times as fast.
It is imported at the first call: importing blendctl or starting a command loads no SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray as FloatArray
from blendctl.arrays import IntArray
from blendctl.errors import InputError

LEVEL = 0.95  # probability that an interval covers the true value
RESAMPLES = 2000
UNDEFINED_SHARE = 0.05  # largest share of resamples without a value for which there is an interval


def mean_interval(sample: FloatArray, *, level: float = LEVEL) -> list[float] | None:
    """Return Student's interval of the mean of a sample (n,); None for fewer than two values.

    For paired samples pass their differences.

    >>> [round(end, 3) for end in mean_interval(np.array([1.0, 2.0, 3.0, 4.0]))]
    [0.446, 4.554]
    """
    from scipy.special import stdtrit

    n = len(sample)
    if n < 2:
        return None
    half = float(stdtrit(n - 1, (1.0 + level) / 2.0)) * float(sample.std(ddof=1)) / math.sqrt(n)
    mean = float(sample.mean())
    return [mean - half, mean + half]


def gamma_quantile(shape: float, probability: float) -> float:
    """Return a quantile of the gamma distribution with scale 1.

    >>> round(gamma_quantile(1.0, 0.8), 4)
    1.6094
    """
    from scipy.special import gammaincinv

    return float(gammaincinv(shape, probability))


def mean_columns(samples: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Return the mean of every sample and its 95% interval, by the names that all summaries have, as JSON data.

    >>> mean_columns({"cost": np.array([2.0])})
    {'cost_mean': 2.0, 'cost_ci95': None}
    """
    columns: dict[str, Any] = {}
    for name, sample in samples.items():
        columns |= {f"{name}_mean": float(sample.mean()), f"{name}_ci95": mean_interval(sample)}
    return columns


def mean_sign_confidence(sample: FloatArray) -> float | None:
    """Return Student's probability that the true mean has the sign of the sample's mean.

    None if it is unknown: for fewer than two values, or if all are equal.

    >>> round(mean_sign_confidence(np.array([1.0, 2.0, 3.0, 4.0])), 6)
    0.984767
    """
    from scipy.special import stdtr

    n = len(sample)
    if n < 2:
        return None
    error = float(sample.std(ddof=1)) / math.sqrt(n)
    return float(stdtr(n - 1, abs(float(sample.mean())) / error)) if error > 0.0 else None


def proportion_interval(successes: int, trials: int, *, level: float = LEVEL) -> list[float]:
    """Return the exact (Clopper-Pearson) interval of a probability from independent trials.

    >>> [round(end, 4) for end in proportion_interval(0, 100)]
    [0.0, 0.0362]
    """
    from scipy.special import betaincinv

    if not 0 <= successes <= trials or trials < 1:
        raise InputError(f"expected 0 <= successes <= trials and trials >= 1, actually: {successes} of {trials}")
    tail = (1.0 - level) / 2.0
    failures = trials - successes
    low = float(betaincinv(successes, failures + 1, tail)) if successes else 0.0
    high = float(betaincinv(successes + 1, failures, 1.0 - tail)) if failures else 1.0
    return [low, high]


def bootstrap_interval(
    statistic: Callable[..., FloatArray],
    samples: Sequence[FloatArray],
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> list[float] | None:
    """Return the percentile bootstrap interval of a statistic of the means of paired samples, each (n, k).

    Every resample draws the same rows of all samples, so variation that all samples share does not widen the interval.
    A sample of shape (groups, n, k) has each row once per group, such as a training seed: groups are drawn too.
    `statistic` takes the means of each sample, (k, resamples), and returns (resamples,), NaN where it is undefined.
    None if it is undefined in more than 5% of the resamples.

    >>> sample = np.arange(20.0).reshape(20, 1)
    >>> interval = bootstrap_interval(lambda means: means[0], [sample], rng=np.random.default_rng(0))
    >>> [round(end, 1) for end in interval]
    [6.9, 11.9]
    """
    n = samples[0].shape[-2]
    rows = rng.integers(n, size=(resamples, n))
    values = statistic(*(_resampled_means(sample, rows, rng) for sample in samples))
    known = values[np.isfinite(values)]
    if len(known) < (1.0 - UNDEFINED_SHARE) * resamples:
        return None
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(known, [tail, 1.0 - tail]).tolist()
    return [low, high]


def _resampled_means(sample: FloatArray, rows: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return the means (k, resamples) of the drawn rows (resamples, n) of a sample (n, k) or (groups, n, k).

    Drawing g groups out of g shows a variance that is too small by (g - 1) / g, which matters for three groups: the
    weights of the groups are spread by as much (Rao and Wu, 1988).
    """
    if sample.ndim == 2:
        return np.asarray(sample[rows].mean(axis=1).T)
    means = np.stack([group[rows].mean(axis=1) for group in sample])  # (groups, resamples, k)
    count = len(sample)
    drawn = rng.multinomial(count, np.full(count, 1.0 / count), size=len(rows)) / count
    weights = 1.0 / count + math.sqrt(count / max(count - 1, 1)) * (drawn - 1.0 / count)  # (resamples, groups)
    return np.asarray(np.einsum("rg,grk->kr", weights, means))
