"""The corner score: 0 on the mixing line, 1 at the corner, whatever the units."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendctl.experiments.corner import Corner, score_episodes

finite = st.floats(-100, 100)
positive = st.floats(0.1, 100)


@given(finite, finite, positive, positive, st.floats(0, 1))
def test_mixing_scores_zero_and_the_corner_one(base, cost, gain, price, share):
    corner = Corner((base + gain, cost + price), (base, cost))
    assert float(corner.score(base + share * gain, cost + share * price)) == pytest.approx(0, abs=1e-6)
    assert float(corner.score(base + gain, cost)) == pytest.approx(1, abs=1e-6)
    assert float(corner.score(base, cost + price)) == pytest.approx(-1, abs=1e-6)


@given(finite, finite, positive, positive)
def test_units_do_not_matter(returns, cost, a, b):
    plain = Corner((5.0, 50.0), (2.0, 20.0)).score(returns, cost)
    other = Corner((5.0 * a + 1, 50.0 * b - 3), (2.0 * a + 1, 20.0 * b - 3)).score(a * returns + 1, b * cost - 3)
    assert float(other) == pytest.approx(float(plain), rel=1e-6, abs=1e-4)


def test_the_published_trial_has_its_score():
    corner = Corner((26.0, 59.4), (20.9, 29.2))
    assert round(float(corner.score(25.1, 35.4)), 2) == 0.62
    assert round(float(corner.score(25.6, 30.5)), 2) == 0.88


@pytest.mark.parametrize(
    ("performant", "safe", "words"),
    [
        ((5.0, 9.0), (5.0, 3.0), "returns no more"),
        ((5.0, 3.0), (2.0, 3.0), "costs no less"),
        ((1.0, 3.0), (2.0, 4.0), "returns no more than the safe one.* and .*costs no less"),
    ],
)
def test_controllers_that_do_not_differ_give_no_score_but_a_reason(performant, safe, words):
    corner = Corner(performant, safe)
    assert np.isnan(corner.score(3.0, 3.0))
    result = score_episodes(
        np.ones((4, 2)), np.tile(performant, (4, 1)), np.tile(safe, (4, 1)), rng=np.random.default_rng(0)
    )
    assert result.value is None
    assert result.interval is None
    assert re.search(words, result.reason)


def test_the_bootstrap_is_paired_and_covers():
    rng = np.random.default_rng(1)
    luck = rng.normal(0, 10, size=(40, 1))  # the layout makes an episode dear for all
    noise = [rng.normal(0, 0.5, size=(40, 2)) for _ in range(3)]
    performant = np.array([26.0, 60.0]) + luck + noise[0]
    safe = np.array([20.0, 30.0]) + luck + noise[1]
    method = np.array([24.5, 37.5]) + luck + noise[2]
    result = score_episodes(method, performant, safe, rng=np.random.default_rng(0))
    assert result.interval[0] < result.value < result.interval[1]
    assert result.interval[0] < 0.5 < result.interval[1]
    assert result.interval[1] - result.interval[0] < 0.3
    shuffled = score_episodes(method[rng.permutation(40)], performant, safe, rng=np.random.default_rng(0))
    assert shuffled.value == pytest.approx(result.value)
    assert shuffled.interval[1] - shuffled.interval[0] > 2 * (result.interval[1] - result.interval[0])


def test_one_episode_has_a_score_without_an_interval():
    one = [np.array([[r, c]]) for r, c in ((25.0, 40.0), (26.0, 60.0), (20.0, 30.0))]
    result = score_episodes(*one, rng=np.random.default_rng(0))
    assert result.value == pytest.approx(1 - (1 / 6 + 1 / 3))
    assert result.interval is None
    assert "two episodes" in result.reason
