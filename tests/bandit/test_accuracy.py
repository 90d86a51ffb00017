"""Numerically sound for life: against exact sums and a solve with sixty digits."""

import mpmath
import numpy as np
import pytest

from blendctl import BlendingBandit
from blendctl.bandit import kernels, memory_layout

D, M, GRID = 16, 2, 2.0**-40  # features and feedback are multiples of GRID: their sums are exact in integers


def updates(count, spread, rng):
    """Draw features with scales `spread` along random axes, and a noisy linear feedback, on the grid."""
    axes = np.linalg.qr(rng.normal(size=(D, D)))[0]
    psi = (rng.normal(size=(count, D)) * spread) @ axes
    psi *= 0.999 / np.linalg.norm(psi, axis=1).max()
    y = psi @ rng.normal(size=(D, M)) + 0.1 * rng.normal(size=(count, M))
    return np.round(psi / GRID) * GRID, np.round(y / GRID) * GRID


def exact_product(a, b):
    """Compute a'b of whole numbers up to 2^41 exactly: in halves of 20 bits, whose sums fit 64."""
    a, b = (np.round(x / GRID).astype(np.int64) for x in (a, b))
    parts = [[(x >> 20), x & (2**20 - 1)] for x in (a, b)]
    total = np.zeros((a.shape[1], b.shape[1]), dtype=object)
    for i, left in enumerate(parts[0]):
        for j, right in enumerate(parts[1]):
            total = total + (left.T @ right).astype(object) * 2 ** (20 * (2 - i - j))
    return total


def exact(psi, y, regularization):
    """Sum V and W in integers (exact), then solve with sixty digits: V, theta, and a function for widths."""
    unit = mpmath.mpf(2) ** -80
    with mpmath.workdps(60):
        v = mpmath.matrix(exact_product(psi, psi).tolist()) * unit + mpmath.mpf(regularization) * mpmath.eye(D)
        w = mpmath.matrix(exact_product(psi, y).tolist()) * unit
        inverse = v**-1
        theta = np.array((inverse * w).T.tolist(), dtype=object)

    def width(psi_row):
        with mpmath.workdps(60):
            row = mpmath.matrix(psi_row.tolist())
            return mpmath.sqrt((row.T * inverse * row)[0])

    return v, theta, width


def relative_errors(count, *, spread, regularization):
    rng = np.random.default_rng(0)
    psi, y = updates(count, spread, rng)
    bandit = BlendingBandit(D, M, radius="paper")
    core = bandit._core
    # conditions beyond 1 + t are out of reach while lambda >= L^2: set a smaller lambda behind the options' back
    core.config[memory_layout.REGULARIZATION] = regularization
    core.root[0, np.arange(D), np.arange(D)] = np.sqrt(regularization)
    for start in range(0, count, 10_000):
        code = kernels.update(core.state, core.config, psi[start : start + 10_000], y[start : start + 10_000], True)
        assert code == memory_layout.OK
    v, theta, width = exact(psi, y, regularization)
    condition = np.linalg.cond(np.array(v.tolist(), dtype=float))
    probe = np.vstack([psi[:8], 0.5 * np.eye(D)])
    got = bandit.decide(probe).width
    true = [width(row) for row in probe]
    width_error = max(float(abs(g - t) / t) for g, t in zip(got, true, strict=True))
    norm = np.sqrt(float(sum(t * t for t in theta.flat)))
    theta_error = float(max(abs(g - t) for g, t in zip(bandit.theta.flat, theta.flat, strict=True))) / norm
    return condition, theta_error, width_error


def test_twenty_thousand_updates_keep_twelve_digits():
    condition, theta, width = relative_errors(20_000, spread=np.ones(D), regularization=1.0)
    assert condition < 1e3
    assert theta < 1e-12
    assert width < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("power", "regularization", "allowed"), [(4, 2.0**-20, 1e-8), (7, 2.0**-40, 1e-5)], ids=["1e8", "1e14"]
)
def test_a_million_ill_conditioned_updates(power, regularization, allowed):
    """cond(V) = 1e8 to 1e-8, cond(V) = 1e14 to 1e-5, theta and widths."""
    condition, theta, width = relative_errors(
        1_000_000, spread=np.logspace(0, -power, D), regularization=regularization
    )
    print(f"cond {condition:.2g}: theta {theta:.2g}, width {width:.2g}")
    assert condition > 0.3 * {1e-8: 1e8, 1e-5: 1e14}[allowed]
    assert theta < allowed
    assert width < allowed
