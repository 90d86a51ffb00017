"""The bounds of a certificate equal independent calculations, and hold as often as they say."""

import itertools
import math

import numpy as np
import pytest
from episode_costs import CASES, CEILING, RETURNS, draw_episodes, true_values
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from blendctl.certificates import Claim, boldest_proven, bounds, episodes_needed, log_wealth, mean_bound
from blendctl.errors import InputError

CLAIM = Claim(budget=25.0, cost_ceiling=CEILING, return_range=RETURNS)


def wealth_by_hand(values, mean, limit):
    """Return the wealth of ten gamblers, each with a fraction of its own, value by value."""
    total = 0.0
    for number in range(10):
        money = 0.5 if number == 0 else 0.5 / 9
        for value in values:
            money += money * 2 ** (-0.75 * number) * (mean - value) / (limit - mean)
        total += money
    return total


@given(
    st.lists(st.floats(0, 10), min_size=1, max_size=12),
    st.floats(0.1, 9.9),
    st.sampled_from([0.0, 10.0]),
)
def test_the_wealth_is_that_of_gamblers_who_bet_one_value_after_another(values, mean, limit):
    assert math.exp(log_wealth(values, mean, limit=limit)) == pytest.approx(wealth_by_hand(values, mean, limit))


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_a_wrong_bet_gains_nothing_on_average(limit):
    # All outcomes of six draws from {0, 1/2, 1} with a mean of exactly 0.3, weighted by their probabilities.
    chances = {0.0: 0.5, 0.5: 0.4, 1.0: 0.1}
    expected = 0.0
    for outcome in itertools.product(chances, repeat=6):
        expected += math.prod(chances[value] for value in outcome) * wealth_by_hand(outcome, 0.3, limit)
    assert expected == pytest.approx(1.0)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(0.01, 0.3))
def test_a_bound_is_where_the_evidence_suffices(values, error):
    upper, lower = mean_bound(values, limit=1.0, error=error), mean_bound(values, limit=0.0, error=error)
    assert 0.0 <= lower <= np.mean(values) <= upper <= 1.0
    assert mean_bound(-np.array(values), limit=0.0, error=error) == pytest.approx(-lower)
    if upper < 1.0 - 1e-9:
        assert log_wealth(values, upper, limit=1.0) >= -math.log(error) - 1e-9
        assert log_wealth(values, upper * (1 - 1e-6), limit=1.0) < -math.log(error)


def test_without_cost_the_bound_solves_a_known_equation():
    bound = mean_bound(np.zeros(300), limit=1.0, error=0.05)
    fractions = 2.0 ** (-0.75 * np.arange(10))
    shares = [0.5] + [0.5 / 9] * 9
    assert np.dot(shares, (1 + fractions * bound / (1 - bound)) ** 300) == pytest.approx(20.0, rel=1e-6)


@pytest.mark.parametrize(("over", "episodes"), [(0, 50), (3, 40), (17, 100), (100, 100)])
def test_the_share_has_the_exact_binomial_bound(over, episodes):
    costs = np.r_[np.full(over, 26.0), np.full(episodes - over, 25.0)]
    shown = bounds(CLAIM, np.zeros(episodes), costs)
    expected = stats.binomtest(over, episodes, alternative="less").proportion_ci(0.95, method="exact").high
    assert shown.share_over_upper == pytest.approx(expected)
    assert shown.share_over == over / episodes  # a cost equal to the budget is not over it


def test_the_p_value_of_a_share_is_the_binomial_test():
    claim = Claim(budget=25.0, cost_ceiling=CEILING, share=0.2)
    costs = np.r_[np.full(30, 26.0), np.zeros(270)]
    p_cost = math.exp(-log_wealth(costs, 25.0, limit=CEILING))
    p_share = stats.binomtest(30, 300, 0.2, alternative="less").pvalue
    assert claim.p_value(costs) == pytest.approx(max(p_cost, p_share))


@pytest.mark.parametrize("share", [None, 0.05, 0.001])
@pytest.mark.parametrize("sequential", [False, True])
def test_the_needed_number_of_episodes_is_the_least(share, sequential):
    claim = Claim(budget=25.0, cost_ceiling=CEILING, share=share)
    needed = claim.episodes_needed(sequential=sequential)
    assert claim.p_value(np.zeros(needed), sequential=sequential) <= claim.error
    assert claim.p_value(np.zeros(needed - 1), sequential=sequential) > claim.error


def test_nothing_proves_a_mean_below_the_best_value():
    assert episodes_needed(0.0, best=0.0, limit=1.0, error=0.05) is None


def test_a_claim_passes_exactly_if_its_bounds_are_within_it():
    rng = np.random.default_rng(0)
    for _ in range(40):
        returns, costs = draw_episodes(rng, "light", 400)
        claim = Claim(budget=22.0, cost_ceiling=CEILING, share=0.36)
        shown = bounds(claim, returns, costs)
        within = shown.cost_mean_upper <= claim.budget and shown.share_over_upper <= claim.share
        assert within == (shown.p_value <= claim.error)


def test_several_settings_widen_every_bound_to_hold_together():
    returns, costs = draw_episodes(np.random.default_rng(0), "light", 300)
    several = bounds(CLAIM, returns, costs, settings=5)
    stricter = Claim(budget=25.0, cost_ceiling=CEILING, return_range=RETURNS, confidence=0.99)
    alone = bounds(stricter, returns, costs)
    for name in ("share_over_upper", "cost_mean_upper", "return_mean_lower"):
        assert getattr(several, name) == pytest.approx(getattr(alone, name))


def failures(rng, case, *, samples, episodes):
    """Return how often each bound of simulated certificates is wrong."""
    cost, share, gain = true_values(case, CLAIM.budget)
    wrong = np.zeros(4)
    for _ in range(samples):
        returns, costs = draw_episodes(rng, case, episodes)
        shown = bounds(CLAIM, returns, costs)
        betting = mean_bound(costs > CLAIM.budget, limit=1.0, error=0.05)
        wrong += [
            shown.cost_mean_upper < cost,
            shown.share_over_upper < share,
            shown.return_mean_lower > gain,
            betting < share,
        ]
    return wrong / samples


def allowed(samples):
    """Return the share of failures that a bound with 5% exceeds once in a thousand times."""
    return stats.binom.ppf(0.999, samples, 0.05) / samples


@pytest.mark.parametrize("case", CASES)
def test_bounds_of_simulated_certificates_hold(case):
    wrong = failures(np.random.default_rng(7), case, samples=40, episodes=150)
    assert (wrong <= allowed(40)).all(), wrong


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_bounds_of_two_thousand_certificates_hold(case):
    wrong = failures(np.random.default_rng(8), case, samples=2000, episodes=300)
    print(case, dict(zip(("cost_mean", "share_over", "return_mean", "share_over sequential"), wrong, strict=True)))
    assert (wrong <= allowed(2000)).all(), wrong


@pytest.mark.parametrize("case", CASES)
def test_the_evidence_of_two_thousand_samples_is_seldom_wrong_at_any_time(case):
    # At the true mean a bound fails if the evidence ever reaches 20: here after every one of 200 episodes.
    cost, _, gain = true_values(case, CLAIM.budget)
    returns, costs = draw_episodes(np.random.default_rng(3), case, (2000, 200))
    fractions = 2.0 ** (-0.75 * np.arange(10))
    for values, mean, limit in ((costs, cost, CEILING), (np.clip(returns, *RETURNS), gain, RETURNS[0])):
        wealth = np.zeros(values.shape)
        for fraction, share in zip(fractions, [0.5] + [0.5 / 9] * 9, strict=True):
            wealth += share * np.cumprod(np.maximum(1 + fraction * (mean - values) / (limit - mean), 0), axis=1)
        assert math.log(wealth[0, -1]) == pytest.approx(log_wealth(values[0], mean, limit=limit))
        assert (wealth.max(axis=1) >= 20.0).mean() <= allowed(2000)


def run_sequentially(claim, costs):
    for count in range(25, len(costs) + 1, 25):
        outcome = claim.outcome(costs[:count], planned=len(costs))
        if outcome != "open":
            return outcome, count
    return "open", len(costs)


def test_a_wrong_claim_is_seldom_proven_though_it_is_tested_again_and_again():
    cost, _, _ = true_values("light", 25.0)
    claim = Claim(budget=cost, cost_ceiling=CEILING)  # at the border: the hardest wrong claim
    _, costs = draw_episodes(np.random.default_rng(5), "light", (120, 500))
    proven = [run_sequentially(claim, row)[0] == "proven" for row in costs]
    assert np.mean(proven) <= allowed(120)


def test_a_sequential_test_stops_early_on_clear_cases():
    _, costs = draw_episodes(np.random.default_rng(6), "light", 3000)
    cost = costs.mean()
    assert run_sequentially(Claim(budget=3 * cost, cost_ceiling=CEILING), costs)[0] == "proven"
    assert run_sequentially(Claim(budget=3 * cost, cost_ceiling=CEILING), costs)[1] <= 200
    outcome, count = run_sequentially(Claim(budget=cost / 2, cost_ceiling=CEILING), costs)
    assert outcome == "hopeless"
    assert count <= 200


def test_a_sequential_test_stops_when_too_few_episodes_are_left():
    claim = Claim(budget=25.0, cost_ceiling=CEILING)
    costs = np.r_[np.full(10, 30.0), np.zeros(140)]
    assert claim.outcome(costs[:9], planned=1000) == "open"
    assert claim.outcome(costs[:10], planned=150) == "hopeless"
    assert claim.p_value(costs, sequential=True) > claim.error


def test_the_boldest_proven_setting_has_only_proven_ones_before_it():
    assert boldest_proven([0.01, 0.05, 0.06, 0.0], error=0.05) == 1
    assert boldest_proven([0.2, 0.0], error=0.05) is None
    assert boldest_proven([0.0, 0.0], error=0.05) == 1


def test_learn_then_test_seldom_passes_a_setting_that_breaks_the_claim():
    # Ten settings, bolder and bolder; the mean cost of the last five exceeds the budget.
    rng = np.random.default_rng(4)
    means = np.linspace(10.0, 20.0, 10)
    claim = Claim(budget=15.5, cost_ceiling=100.0)
    wrong = 0
    for _ in range(100):
        p_values = [claim.p_value(np.minimum(rng.exponential(mean, 200), 100.0)) for mean in means]
        chosen = boldest_proven(p_values, error=claim.error)
        wrong += chosen is not None and means[chosen] > claim.budget
    assert wrong / 100 <= allowed(100)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"budget": -1.0}, "budget must be a number between 0"),
        ({"budget": math.nan}, "budget must be a number"),
        ({"budget": 2000.0}, "needs no certificate"),
        ({"share": 1.5}, "share must be a number between 0 and 1"),
        ({"confidence": 1.0}, "confidence must be a number between 0.5 and 1"),
        ({"return_range": (3.0, 1.0)}, "return_range must be"),
    ],
)
def test_wrong_claims_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        Claim(**{"budget": 25.0, "cost_ceiling": CEILING} | change)


@pytest.mark.parametrize(
    ("returns", "costs"),
    [([], []), ([1.0], [1.0, 2.0]), ([1.0], [1001.0]), ([1.0], [-1.0]), ([math.nan], [1.0]), ([1.0], [math.inf])],
)
def test_wrong_episodes_are_refused(returns, costs):
    with pytest.raises(InputError, match="expected"):
        bounds(CLAIM, returns, costs)


def test_values_beyond_the_limit_are_refused():
    with pytest.raises(InputError, match="expected finite values <= 1, actually: 2"):
        log_wealth([0.5, 2.0], 0.5, limit=1.0)
    with pytest.raises(InputError, match="expected"):
        mean_bound([0.5, 2.0], limit=1.0, error=0.05)
