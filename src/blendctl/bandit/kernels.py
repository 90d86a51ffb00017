"""The compiled recurrences: decide and update, for one learner or many.

Learners, options and decisions are rows of float64, laid out as in memory_layout.py; the estimates are in the
square-root form of sqrt_form.py.

Every kernel checks its whole input before it changes anything, and returns a code.
"""

from __future__ import annotations

import math

import numpy as np

from blendctl.arrays import FloatArray, WordArray
from blendctl.bandit import bounds
from blendctl.bandit import memory_layout as at
from blendctl.bandit.generator import uniform
from blendctl.bandit.memory_layout import BAD_FEEDBACK, DETERMINANT, LARGEST_FEEDBACK, NOT_FINITE, OK, PAPER, TOO_LONG
from blendctl.bandit.sqrt_form import FEW, forget, log_determinant, rotate, whiten
from blendctl.compiled import compiled, inlined

LENGTH_SLACK = 1.0 + 1e-6  # rounding: a vector normalised to length L in float32 may exceed it

_paper_radius = compiled(bounds.paper_radius)
_determinant_radius = compiled(bounds.determinant_radius)
_discounted_radius = compiled(bounds.discounted_radius)
loss_bound = compiled(bounds.loss_bound)


@compiled
def radius_of(state: FloatArray, config: FloatArray, d: int) -> float:
    """Compute the confidence radius of the learner's next decision."""
    noise, regularization, theta_bound = config[at.NOISE], config[at.REGULARIZATION], config[at.THETA_BOUND]
    length, delta, g = config[at.FEATURE_BOUND], config[at.DELTA], config[at.DISCOUNT]
    if g < 1.0:
        return _discounted_radius(d, state[at.STAGE], noise, regularization, theta_bound, length, delta, g)
    if config[at.RADIUS_KIND] == PAPER:
        return _paper_radius(d, state[at.STAGE], noise, regularization, theta_bound, length, delta)
    return _determinant_radius(state[at.LOG_DET], noise, regularization, theta_bound, delta)


# Rows are passed as (matrix, row number): a view of a row would cost more than the work on it.
@inlined
def _code(features: FloatArray, a: int, config: FloatArray) -> int:
    d = features.shape[1]
    square = 0.0
    for j in range(d):
        square += features[a, j] * features[a, j]
    limit = config[at.FEATURE_BOUND] * LENGTH_SLACK
    if square <= limit * limit:
        return OK
    for j in range(d):
        if not math.isfinite(features[a, j]):
            return NOT_FINITE
    return OK if config[at.RESCALE] != 0.0 else TOO_LONG


@inlined
def check_features(features: FloatArray, config: FloatArray) -> int:
    """Return the code of the first row of (arms, d) that is not allowed, or OK."""
    for a in range(features.shape[0]):
        code = _code(features, a, config)
        if code != OK:
            return code
    return OK


@compiled
def _scale(state: FloatArray, config: FloatArray, features: FloatArray, a: int) -> float:
    """Compute the factor that scales row a down to length L; count it if it is longer."""
    d = features.shape[1]
    largest = 0.0
    for j in range(d):
        largest = max(largest, abs(features[a, j]))
    if largest == 0.0:
        return 1.0
    square = 0.0
    for j in range(d):
        square += (features[a, j] / largest) ** 2
    factor: float = config[at.FEATURE_BOUND] / largest / math.sqrt(square)
    if factor * LENGTH_SLACK >= 1.0:
        return 1.0
    state[at.RESCALED] += 1.0
    return factor


@inlined
def _indices(state: FloatArray, config: FloatArray, features: FloatArray, z: FloatArray, out: FloatArray) -> None:
    """Fill out with radius, widths, losses, estimates and UCBs; z (arms, d) receives the whitened features."""
    arms, d = features.shape
    m = config.size - at.SCALES
    stride, base = d + m, at.FEEDBACK + m
    width, loss, estimate = at.INDICES, at.INDICES + arms, at.INDICES + 3 * arms
    ucb = estimate + arms * m
    radius = radius_of(state, config, d)
    out[at.RADIUS] = radius
    for a in range(arms):
        factor = _scale(state, config, features, a) if config[at.RESCALE] != 0.0 else 1.0
        for j in range(d):
            z[a, j] = features[a, j] * factor
    if d > FEW:
        whiten(state, base, stride, z)
    else:
        for j in range(d):
            row = base + j * stride
            for a in range(arms):
                z[a, j] /= state[row + j]
                for i in range(j + 1, d):
                    z[a, i] -= z[a, j] * state[row + i]
    for a in range(arms):
        square = 0.0
        for j in range(d):
            square += z[a, j] * z[a, j]
        length = math.sqrt(square)
        out[width + a] = length
        out[loss + a] = 0.0
        for k in range(m):
            product = 0.0
            for j in range(d):
                product += z[a, j] * state[base + j * stride + d + k]
            out[estimate + a * m + k] = product
            out[ucb + a * m + k] = product + radius * length
    for k in range(m):
        best = -math.inf
        for a in range(arms):
            best = max(best, out[ucb + a * m + k])
        for a in range(arms):
            out[loss + a] = max(out[loss + a], best - out[ucb + a * m + k])


@inlined
def mark_least_loss(out: FloatArray, arms: int, m: int, tie: float, printed: bool) -> None:
    """Mark the candidates: arms of least loss that no other arm dominates.

    Two indices closer than tie * (largest index) are equal. As printed in the paper, dominance is not checked.
    """
    loss, mark, ucb = at.INDICES + arms, at.INDICES + 2 * arms, at.INDICES + 3 * arms + arms * m
    largest = 0.0
    for i in range(arms * m):
        largest = max(largest, abs(out[ucb + i]))
    tolerance = tie * largest
    least = math.inf
    for a in range(arms):
        least = min(least, out[loss + a])
    kept = 0
    for a in range(arms):
        out[mark + a] = 1.0 if out[loss + a] <= least + tolerance else 0.0
        kept += int(out[mark + a])
    if printed or arms < 3 or kept < 2:
        return  # of two arms with the same loss neither dominates the other
    for a in range(arms):
        if out[mark + a] == 0.0:
            continue
        for other in range(arms):
            no_worse, better = True, False
            for k in range(m):
                gain = out[ucb + other * m + k] - out[ucb + a * m + k]
                no_worse = no_worse and gain >= -tolerance
                better = better or gain > tolerance
            if no_worse and better:
                out[mark + a] = -1.0
                kept -= 1
                break
    # every arm may be dominated within the tolerance: then keep all
    for a in range(arms):
        if out[mark + a] == -1.0:
            out[mark + a] = 0.0 if kept > 0 else 1.0


@inlined
def _settle(state: FloatArray, rng: WordArray, out: FloatArray, arms: int) -> None:
    """Pick uniformly among the marked arms and enter the decision into the bound."""
    mark = at.INDICES + 2 * arms
    count = 0
    for a in range(arms):
        count += int(out[mark + a])
    skip = int(uniform(rng) * count) if count > 1 else 0
    arm = 0
    for a in range(arms):
        if out[mark + a] == 1.0:
            arm = a
            if skip == 0:
                break
            skip -= 1
    out[at.ARM] = arm
    state[at.DECISIONS] += 1.0
    state[at.BOUND_SUM] += loss_bound(out[at.INDICES + arms + arm], out[at.RADIUS], out[at.INDICES + arm])


@compiled
def decide_one(state: FloatArray, rng: WordArray, config: FloatArray, features: FloatArray, out: FloatArray) -> int:
    """Decide by the paper's rule for one learner: features (arms, d), out one decision row.

    Returns the arm, or the negated code of what is wrong with the features.
    """
    code = check_features(features, config)
    if code != OK:
        return -code
    _indices(state, config, features, np.empty(features.shape), out)
    mark_least_loss(out, features.shape[0], config.size - at.SCALES, config[at.TIE], config[at.PRINTED] != 0.0)
    _settle(state, rng, out, features.shape[0])
    return int(out[at.ARM])


@compiled
def decide(
    state: FloatArray, rng: WordArray, config: FloatArray, features: FloatArray, out: FloatArray, pooled: bool
) -> int:
    """Decide by the paper's rule for features (f, arms, d): learner f, or learner 0 for all when pooled."""
    count, arms, d = features.shape
    code = check_features(features.reshape((count * arms, d)), config)
    if code != OK:
        return code
    z = np.empty((arms, d))
    for f in range(count):
        b = 0 if pooled else f
        _indices(state[b], config, features[f], z, out[f])
        mark_least_loss(out[f], arms, config.size - at.SCALES, config[at.TIE], config[at.PRINTED] != 0.0)
        _settle(state[b], rng[b], out[f], arms)
    return OK


@compiled
def indices(
    state: FloatArray, config: FloatArray, features: FloatArray, out: FloatArray, z: FloatArray, pooled: bool
) -> int:
    """Compute the indices for a rule outside the kernels: z (f, arms, d) receives the whitened features."""
    count, arms, d = features.shape
    code = check_features(features.reshape((count * arms, d)), config)
    if code != OK:
        return code
    for f in range(count):
        _indices(state[0 if pooled else f], config, features[f], z[f], out[f])
    return OK


@compiled
def settle(state: FloatArray, rng: WordArray, out: FloatArray, arms: int, pooled: bool) -> None:
    """Pick among the arms that a rule has marked in out, decision by decision."""
    for f in range(out.shape[0]):
        b = 0 if pooled else f
        _settle(state[b], rng[b], out[f], arms)


@inlined
def _absorb(
    state: FloatArray, config: FloatArray, features: FloatArray, feedback: FloatArray, f: int, x: FloatArray
) -> None:
    """Enter row f of features (f, d) and feedback (f, m); x (d + m) is scratch."""
    d, m = features.shape[1], feedback.shape[1]
    base = at.FEEDBACK + m
    if config[at.DISCOUNT] < 1.0:
        forget(state, config, base, d, x)
    factor = _scale(state, config, features, f) if config[at.RESCALE] != 0.0 else 1.0
    for j in range(d):
        x[j] = features[f, j] * factor
    for k in range(m):
        x[d + k] = feedback[f, k] / config[at.SCALES + k]
        state[at.FEEDBACK + k] += x[d + k]
    rotate(state, base, d, x, 0)
    state[at.STAGE] += 1.0
    if config[at.RADIUS_KIND] == DETERMINANT and config[at.DISCOUNT] == 1.0:
        state[at.LOG_DET] = log_determinant(state, config, base, d, x.size)


@inlined
def _check_feedback(feedback: FloatArray) -> int:
    for f in range(feedback.shape[0]):
        for k in range(feedback.shape[1]):
            if not abs(feedback[f, k]) <= LARGEST_FEEDBACK:
                return BAD_FEEDBACK
    return OK


@compiled
def update(state: FloatArray, config: FloatArray, features: FloatArray, feedback: FloatArray, pooled: bool) -> int:
    """Learn from features (f, d) and feedback (f, m): learner f, or learner 0 from all when pooled."""
    code = max(check_features(features, config), _check_feedback(feedback))
    if code != OK:
        return code
    x = np.empty(features.shape[1] + feedback.shape[1])
    for f in range(features.shape[0]):
        _absorb(state[0 if pooled else f], config, features, feedback, f, x)
    return OK


@compiled
def update_one(state: FloatArray, config: FloatArray, feature: FloatArray, feedback: FloatArray) -> int:
    """Learn from one feature vector (d,) and its feedback (m,)."""
    features, row = feature.reshape((1, feature.size)), feedback.reshape((1, feedback.size))
    code = max(check_features(features, config), _check_feedback(row))
    if code == OK:
        _absorb(state, config, features, row, 0, np.empty(feature.size + feedback.size))
    return code
