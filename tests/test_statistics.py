"""Intervals and confidences equal those of scipy.stats and cover the truth as often as they say."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from blendctl.errors import InputError
from blendctl.statistics import bootstrap_interval, mean_interval, mean_sign_confidence, proportion_interval

SAMPLES = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=40).map(np.array).filter(lambda s: s.std() > 1e-6)


@given(SAMPLES, st.sampled_from([0.9, 0.95, 0.99]))
def test_the_interval_of_a_mean_is_that_of_scipy_stats(sample, level):
    expected = stats.t.interval(level, len(sample) - 1, loc=sample.mean(), scale=stats.sem(sample))
    assert mean_interval(sample, level=level) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(SAMPLES)
def test_the_confidence_in_a_sign_is_that_of_the_t_test(sample):
    p_value = stats.ttest_1samp(sample, 0.0).pvalue
    assert mean_sign_confidence(sample) == pytest.approx(1.0 - p_value / 2.0, abs=1e-9)


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_the_interval_of_a_proportion_is_that_of_the_exact_binomial_test(counts):
    successes, trials = counts
    expected = stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
    assert proportion_interval(successes, trials) == pytest.approx([expected.low, expected.high], abs=1e-9)


@pytest.mark.parametrize(("t", "freedom", "expected"), [(2.0, 1, 0.8524), (2.015, 5, 0.95), (3.365, 5, 0.99)])
def test_confidences_are_those_of_the_printed_tables(t, freedom, expected):
    sample = np.linspace(-1.0, 1.0, freedom + 1)
    sample += t * stats.sem(sample)
    assert mean_sign_confidence(sample) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("n", [2, 5, 30])
def test_an_interval_covers_the_mean_about_95_times_of_100(n):
    rng = np.random.default_rng(0)
    intervals = [mean_interval(rng.normal(size=n)) for _ in range(2000)]
    assert np.mean([low < 0 < high for low, high in intervals]) == pytest.approx(0.95, abs=0.02)


def test_an_exact_interval_covers_at_least_95_times_of_100():
    successes = np.random.default_rng(0).binomial(30, 0.1, size=2000)
    intervals = [proportion_interval(int(count), 30) for count in successes]
    assert np.mean([low <= 0.1 <= high for low, high in intervals]) >= 0.95


def test_one_value_has_no_interval_and_no_confidence():
    assert mean_interval(np.ones(1)) is None
    assert mean_sign_confidence(np.ones(1)) is None
    assert mean_sign_confidence(np.ones(5)) is None


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, 0)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(InputError, match=f"actually: {successes} of {trials}"):
        proportion_interval(successes, trials)


def test_the_bootstrap_agrees_with_scipy_stats():
    sample = np.random.default_rng(1).exponential(size=(60, 1))
    interval = bootstrap_interval(lambda means: means[0], [sample], rng=np.random.default_rng(0), resamples=20_000)
    expected = stats.bootstrap(
        (sample[:, 0],), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(0)
    ).confidence_interval
    assert interval == pytest.approx([expected.low, expected.high], abs=0.01)


def test_the_bootstrap_draws_the_same_rows_of_all_samples():
    rng = np.random.default_rng(2)
    common = rng.normal(0, 10, size=(50, 1))
    low, high = bootstrap_interval(lambda a, b: (a - b)[0], [common + 1.0, common], rng=rng)
    assert (low, high) == pytest.approx((1.0, 1.0))


@pytest.mark.parametrize("groups", [2, 3, 10])
def test_groups_are_drawn_too_and_their_spread_is_not_underestimated(groups):
    """Groups that differ and rows that do not: the resampled means spread like the mean of that many groups."""
    levels = np.arange(groups, dtype=np.float64)
    sample = np.repeat(levels, 30).reshape(groups, 30, 1)
    seen = []

    def statistic(means):
        seen.append(means[0])
        return means[0]

    assert bootstrap_interval(statistic, [sample], rng=np.random.default_rng(4), resamples=20_000) is not None
    assert seen[0].mean() == pytest.approx(levels.mean(), abs=0.05)
    assert seen[0].std() == pytest.approx(levels.std(ddof=1) / np.sqrt(groups), rel=0.03)


def test_one_group_is_a_sample_without_groups():
    sample = np.random.default_rng(5).normal(size=(40, 1))
    plain, grouped = (
        bootstrap_interval(lambda m: m[0], [one], rng=np.random.default_rng(0)) for one in (sample, sample[np.newaxis])
    )
    assert grouped == pytest.approx(plain)


def test_a_statistic_that_is_often_undefined_has_no_interval():
    sample = np.random.default_rng(3).normal(size=(10, 1))
    assert bootstrap_interval(lambda m: np.sqrt(m[0], where=m[0] > 0, out=np.full(m[0].shape, np.nan)), [sample],
                              rng=np.random.default_rng(0)) is None  # fmt: skip


def test_scipy_is_imported_at_the_first_interval():
    code = (
        "import sys, numpy as np, blendctl.cli; from blendctl.statistics import mean_interval;"
        "print('scipy' in sys.modules); mean_interval(np.arange(3.0));"
        "print('scipy.special' in sys.modules, 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "False"]
