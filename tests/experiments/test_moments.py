"""Moments: the regression of true feedback on the context."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendctl.experiments.moments import Moments


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_moments_give_the_regression_over_all_stretches(seed, d):
    rng = np.random.default_rng(seed)
    psi, theta = rng.normal(size=(60, d)), rng.normal(size=(2, d))
    y = psi @ theta.T + 0.1 * rng.normal(size=(60, 2))
    parts = [Moments(d, 2), Moments(d, 2)]
    parts[0].add(psi[:20], y[:20])
    parts[1].add(psi[20:], y[20:])
    parts[0].join(Moments.from_plain(parts[1].plain()))
    ridge = np.linalg.solve(psi.T @ psi + 2.0 * np.eye(d), psi.T @ y).T
    np.testing.assert_allclose(parts[0].fit(2.0), ridge, atol=1e-10)
    least = psi @ np.linalg.lstsq(psi, y, rcond=None)[0]
    r2 = 1 - ((y - least) ** 2).sum(axis=0) / ((y - y.mean(axis=0)) ** 2).sum(axis=0)
    np.testing.assert_allclose(parts[0].explained(), r2, atol=1e-9)


def test_feedback_that_never_varies_has_no_r2():
    moments = Moments(1, 2)
    moments.add(np.array([[1.0], [2.0]]), np.array([[1.0, 0.0], [2.0, 0.0]]))
    assert moments.explained() == [pytest.approx(1.0), None]
