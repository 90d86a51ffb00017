"""The square-root form, compiled: U with V = U'U, and Q = U'^-1 W, inside a learner's row.

A new row (psi, y) is rotated into [U Q] by Givens rotations. V is never formed and nothing is
inverted, which keeps the estimates accurate after millions of updates of an
ill-conditioned V. With U'z = psi, the width of psi is |z| and its estimate Q'z.
"""

from __future__ import annotations

import math

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.bandit.memory_layout import DISCOUNT, FEEDBACK, LOG_PRIOR, REGULARIZATION, STAGE
from blendctl.compiled import compiled, inlined

FEW = 8  # up to this many features, a plain loop is faster than one over views, which vectorises but costs a call


@compiled
def _subtract(target: FloatArray, factor: float, row: FloatArray) -> None:
    for i in range(target.size):  # the compiler vectorises a loop over whole views
        target[i] -= factor * row[i]


@compiled
def whiten(state: FloatArray, base: int, stride: int, z: FloatArray) -> None:
    """Solve U'z = psi forwards for every row of z, many features at a time."""
    arms, d = z.shape
    for j in range(d):
        row = base + j * stride
        for a in range(arms):
            z[a, j] /= state[row + j]
            _subtract(z[a, j + 1 :], z[a, j], state[row + j + 1 : row + d])


@compiled
def _rotate_rows(state: FloatArray, start: int, row: FloatArray, skip: int, c: float, s: float) -> None:
    x = row[skip:]
    kept = state[start : start + x.size]
    for j in range(x.size):
        old = kept[j]
        kept[j] = c * old + s * x[j]
        x[j] = c * x[j] - s * old


@compiled
def rotate(state: FloatArray, base: int, d: int, x: FloatArray, start: int) -> None:
    """Rotate the row x (d + m) into [U Q]; its first `start` entries are zero."""
    stride = x.size
    for i in range(start, d):
        if x[i] == 0.0:
            continue
        row = base + i * stride
        diagonal = state[row + i]
        length = math.sqrt(diagonal * diagonal + x[i] * x[i])
        c, s = diagonal / length, x[i] / length
        state[row + i] = length
        if d > FEW:
            _rotate_rows(state, row + i + 1, x, i + 1, c, s)
        else:
            for j in range(i + 1, stride):
                old = state[row + j]
                state[row + j] = c * old + s * x[j]
                x[j] = c * x[j] - s * old


@compiled
def forget(state: FloatArray, config: FloatArray, base: int, d: int, x: FloatArray) -> None:
    """Discount [U Q] and top up the prior of one coordinate, in rotation, back to lambda."""
    shrink = math.sqrt(config[DISCOUNT])
    for i in range(d * x.size):
        state[base + i] *= shrink
    stage = int(state[STAGE])
    turn = stage % d
    age = turn + 1 if stage < d else d
    x[:] = 0.0
    x[turn] = math.sqrt(config[REGULARIZATION] * (1.0 - config[DISCOUNT] ** age))
    rotate(state, base, d, x, turn)


@inlined
def log_determinant(state: FloatArray, config: FloatArray, base: int, d: int, stride: int) -> float:
    """Compute log det(V) - log det(V_0) from U's diagonal, with one logarithm per overflow."""
    total, product = 0.0, 1.0
    for i in range(d):
        product *= state[base + i * stride + i]
        if product > 1e100:
            total += math.log(product)
            product = 1.0
    log_det: float = 2.0 * (total + math.log(product)) - config[LOG_PRIOR]
    return log_det


@compiled
def theta(state: FloatArray, d: int, m: int) -> FloatArray:
    """Solve U theta = Q backwards: the regularised least-squares estimates (m, d)."""
    stride, base = d + m, FEEDBACK + m
    solution = np.empty((m, d))
    for k in range(m):
        for i in range(d - 1, -1, -1):
            row = base + i * stride
            value = state[row + d + k]
            for j in range(i + 1, d):
                value -= state[row + j] * solution[k, j]
            solution[k, i] = value / state[row + i]
    return solution
