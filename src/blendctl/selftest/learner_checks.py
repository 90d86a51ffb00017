"""Checks of the learner: accuracy, memory and time over a long run; coverage of its bounds."""

from __future__ import annotations

import math
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blendctl import pareto
from blendctl.arrays import FloatArray
from blendctl.bandit import BanditBatch, BlendingBandit
from blendctl.selftest.checks import Check
from blendctl.selftest.worlds import FAMILIES, draw_worlds

BLOCK = 10_000  # steps between two draws
DELTA = 0.05


def resident() -> float:
    """Return the memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def solve_longdouble(matrix: NDArray[np.longdouble], right: NDArray[np.longdouble]) -> NDArray[np.longdouble]:
    """Solve a positive definite system directly in extended precision.

    >>> solve_longdouble(np.diag([2, 4]).astype(np.longdouble), np.ones((2, 1), np.longdouble)).astype(float).tolist()
    [[0.5], [0.25]]
    """
    a, b = matrix.copy(), right.copy()
    for i in range(len(a)):
        b[i] /= a[i, i]
        a[i] /= a[i, i]
        for j in range(len(a)):
            if j != i:
                b[j] -= a[j, i] * b[i]
                a[j] -= a[j, i] * a[i]
    return b


def long_life(steps: int) -> dict[str, float]:
    """Decide and learn for many steps: the error of theta, the growth of memory, the change of the time per step.

    In the last tenth a new learner runs beside the old one, in alternating steps: both see the same disturbances.
    """
    d, m, arms = 4, 2, 3
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(m, d)) / 4
    old, young = (BlendingBandit(d, m, seed=0) for _ in range(2))
    gram, moment = np.eye(d, dtype=np.longdouble), np.zeros((d, m), np.longdouble)
    tenth = max(steps // 10, BLOCK)
    # Times of the old and the new one. Written now, so that the memory pages are not counted as growth.
    nanoseconds = np.ones((2, tenth), np.int64)
    before, used, fed = 0.0, np.empty((2, BLOCK, d)), np.empty((2, BLOCK, m))
    for start in range(-BLOCK, steps, BLOCK):  # the first block is the warm-up
        psi = rng.normal(size=(BLOCK, arms, d))
        psi /= np.linalg.norm(psi, axis=-1, keepdims=True)
        noise = 0.1 * rng.normal(size=(BLOCK, m))
        living = (old,) if 0 <= start < steps - tenth else (old, young)
        for i in range(BLOCK):
            for k, bandit in enumerate(living):
                began = time.thread_time_ns()
                arm = bandit.decide(psi[i]).arm
                used[k, i] = psi[i, arm]
                fed[k, i] = truth @ used[k, i] + noise[i]
                bandit.update(used[k, i], fed[k, i])
                nanoseconds[k, (start + i) % tenth] = time.thread_time_ns() - began
        exact = used[0].astype(np.longdouble)
        gram += exact.T @ exact
        moment += exact.T @ fed[0].astype(np.longdouble)
        if start == 0:
            before = resident()
    grown = resident() - before
    error = np.abs(old.theta - solve_longdouble(gram, moment).T).max()
    last, first = np.percentile(nanoseconds, 99, axis=1)
    return {"error of theta": float(error), "growth, MB": grown, "p99 last / first tenth": last / first}


def coverage(worlds: int) -> dict[str, float]:
    """Run learners in many kinds of worlds; return the shares of worlds in which a bound failed at any stage."""
    rng = np.random.default_rng(1)
    failed, seen = np.zeros(3), 0
    per_group = max(worlds // (6 * len(FAMILIES)), 1)
    for family in FAMILIES:
        for d, m, arms in ((1, 1, 2), (2, 2, 2), (3, 3, 4), (4, 4, 8), (6, 5, 16), (8, 6, 32)):
            failed += _group(family, per_group, d, m, arms, rng)
            seen += per_group
    shares = failed / seen
    return {"loss bound": shares[0], "regret bound": shares[1], "ellipsoids": shares[2]}


def _group(family: str, count: int, d: int, m: int, arms: int, rng: np.random.Generator) -> FloatArray:
    """Count the worlds of one family and size in which a bound failed: (loss, regret, ellipsoids)."""
    stages = 300
    batch = BanditBatch(count, d, m, noise=0.3, theta_bound=1.0, delta=DELTA, seed=int(rng.integers(2**31)))
    world = draw_worlds(family, count, rng, features=d, objectives=m, arms=arms, noise=0.3)
    one = batch.learner(0)
    rows, sums, failed = np.arange(count), np.zeros((3, count)), np.zeros((3, count), bool)
    for stage in range(1, stages + 1):
        psi = world.features(batch.theta)
        decisions = batch.decide(psi)
        arm = decisions.arm
        mean = np.einsum("bad,bmd->bam", psi, world.theta)
        chosen = psi[rows, arm]
        sums[0] += pareto.maximal_loss(mean)[rows, arm]
        sums[1] += decisions.loss_bounds[rows, arm]
        sums[2] += pareto.suboptimality_gap(mean)[rows, arm]
        batch.update(chosen, world.feedback(mean[rows, arm], chosen))
        failed[0] |= sums[0] > sums[1] + 1e-9
        failed[1] |= sums[2] > one.regret_bound(stage)
        if stage % 10 == 0:
            failed[2] |= _outside(batch, world.theta)
    return np.asarray(failed.sum(axis=1), np.float64)


def _outside(batch: BanditBatch, theta: FloatArray) -> NDArray[np.bool_]:
    """Return which learners (B,) have a true theta outside of the ellipsoid of any objective."""
    outside = np.zeros(len(batch), bool)
    for i in range(len(batch)):
        bandit = batch.learner(i)
        error = bandit.theta - theta[i]
        squares = np.einsum("md,de,me->m", error, bandit.gram, error)
        outside[i] = math.sqrt(squares.max()) > bandit.radius
    return outside


CHECKS = (
    Check(
        "learner, steps of a long life",
        {"error of theta": 1e-9, "growth, MB": 10.0, "p99 last / first tenth": 1.5},
        quick=200_000,
        full=10_000_000,
        measure=long_life,
        timed=True,
    ),
    Check(
        "learner, worlds in which a bound failed (share)",
        {"loss bound": DELTA, "regret bound": DELTA, "ellipsoids": DELTA},
        quick=60,
        full=960,
        measure=coverage,
    ),
)
