"""The dial follows a preference or a budget, and never leaves its range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from blendctl.errors import InputError
from blendctl.features import Dial, DialPoint
from blendctl.features.dial import WITHIN, card_points

POINTS = [
    DialPoint(0.02, 28.0, 50.0),
    DialPoint(0.1, 27.0, 30.0),
    DialPoint(0.4, 25.0, 18.0),
    DialPoint(1.0, 22.0, 12.0),
]
RANGE = (0.02, 1.0)


def budget(cost_budget=25.0, **more):
    return Dial(RANGE, POINTS, cost_budget=cost_budget, **more)


@pytest.mark.parametrize(("prefer", "weight"), [(0.0, 1.0), (1.0, 0.02), (0.5, np.sqrt(0.02))])
def test_a_preference_is_one_weight_for_every_state(prefer, weight):
    dial = Dial(RANGE, prefer=prefer)
    assert dial.weights([0.0, 99.0], [0, 900]) == pytest.approx([weight, weight])


def test_a_fresh_episode_uses_the_weight_at_which_most_episodes_stayed_within_the_budget():
    costs = [point.cost_within for point in POINTS]
    assert costs == pytest.approx(
        [-np.log(1.0 - WITHIN) * point.cost_mean for point in POINTS]
    )  # an exponential distribution
    assert budget(costs[1]).weights([0.0], [0]) == pytest.approx([0.1])
    assert 0.1 < budget(0.5 * (costs[1] + costs[2])).weights([0.0], [0])[0] < 0.4


@given(mean=st.floats(0.1, 100), spread=st.floats(0.01, 300))
def test_the_cost_within_is_a_quantile_of_episodes_and_never_below_their_mean(mean, spread):
    within = DialPoint(0.1, 1.0, mean, spread).cost_within
    expected = stats.gamma.ppf(WITHIN, (mean / spread) ** 2, scale=spread**2 / mean)
    assert within == pytest.approx(max(expected, mean), rel=1e-6)


def test_the_spread_of_a_measured_cost_comes_from_the_card():
    point = {"weight": 0.1, "return_mean": 9.0, "cost_mean": 20.0, "over_budget": 0.3, "episodes": 100, "seed": 0}
    assert card_points({"dial": [point]}) == [DialPoint(0.1, 9.0, 20.0)]
    assert card_points({"dial": [point | {"cost_std": 30.0}]}) == [DialPoint(0.1, 9.0, 20.0, 30.0)]
    assert card_points({"dial": [point | {"episodes": 200}]}) == [DialPoint(0.1, 9.0, 20.0, episodes=200)]
    assert card_points({}) == []
    assert DialPoint(0.1, 9.0, 0.0, 0.0).cost_within == 0.0


def test_the_aim_settles_where_the_mean_cost_is_the_budget():
    dial = budget(20.0)
    dial.aim = 0.6
    dial.end_episodes(np.array([10.0] * 3 + [50.0]))  # a rare burst counts in full
    assert dial.aim == pytest.approx(0.6)


def test_a_budget_above_the_most_performant_setting_needs_no_caution():
    assert budget(100.0).weights([0.0], [0]) == pytest.approx([0.02])


def test_fast_spending_makes_the_dial_more_careful_and_saving_never_bolder():
    start, fast, saved = budget().weights([0.0, 12.0, 1.0], [0, 200, 800])
    assert fast > start
    assert saved == pytest.approx(start)


def test_the_latch_closes_when_even_the_safest_setting_would_use_up_the_reserve():
    dial = budget()
    # 12 per episode: after half of an episode the safest setting still costs 6; the reserve is 7.5.
    assert dial.weights([11.4], [500])[0] < 1.0
    assert dial.weights([11.5, 26.0], [500, 999]) == pytest.approx([1.0, 1.0])


def test_the_safest_setting_is_the_most_performant_one_with_nearly_the_lowest_cost():
    flat = [DialPoint(0.02, 28.0, 50.0), DialPoint(0.3, 26.0, 13.5), DialPoint(1.0, 23.0, 13.0)]
    dial = Dial(RANGE, flat, cost_budget=25.0)
    assert dial.safest_weight == 0.3
    assert dial.weights([24.0, 0.0], [500, 0]).max() == pytest.approx(0.3)
    assert dial.expected_return(1.0) == pytest.approx(26.0)  # of the setting that drives
    assert budget().safest_weight == 1.0
    spread = [DialPoint(0.02, 28.0, 50.0, 9.0), DialPoint(0.3, 26.0, 13.9, 9.0), DialPoint(1.0, 23.0, 13.0, 9.0, 100)]
    assert Dial(RANGE, spread, cost_budget=25.0).safest_weight == 0.3  # the lowest is uncertain by 0.9
    surely = [*spread[:2], DialPoint(1.0, 23.0, 13.0, 9.0, 10_000)]
    assert Dial(RANGE, surely, cost_budget=25.0).safest_weight == 1.0
    assert Dial(RANGE, flat, prefer=0.0).weights([0.0], [0]) == pytest.approx([1.0])


def test_episodes_above_the_budget_lower_the_aim_and_those_below_restore_it():
    dial = budget()
    dial.end_episodes(np.full(5, 60.0))
    lowered = dial.aim
    assert lowered < 0.7
    assert dial.weights([0.0], [0])[0] > budget().weights([0.0], [0])[0]
    dial.end_episodes(np.zeros(3))
    assert lowered < dial.aim <= 1.0


def test_a_budget_that_nobody_can_hold_is_reported_and_drives_the_safest_setting():
    dial = budget(5.0)
    assert "12.0" in str(dial.warning)
    assert dial.weights([0.0], [0]) == pytest.approx([1.0])


def test_a_budget_that_the_safest_setting_often_exceeds_is_reported():
    for few in (16.0, 22.7):  # 12 on average and a reserve of 4.8; 85% of the episodes cost up to 22.8
        assert "leaves no choice: the blend stays at its safest setting" in str(budget(few).warning)
        assert "with every budget up to 22.8. It costs 12.0 on average" in str(budget(few).warning)
        assert "its return is about 22.0" in str(budget(few).warning)
        assert budget(few).weights([0.0], [0]) == pytest.approx([1.0])
    assert budget(22.8).warning is None
    assert budget(24.0).weights([0.0], [0]) < 1.0
    steady = [DialPoint(0.02, 28.0, 50.0, 1.0), DialPoint(1.0, 22.0, 12.0, 1.0)]  # the reserve is what is missing
    reserved = Dial(RANGE, steady, cost_budget=16.0)
    assert "starts at its safest setting, as with every budget up to 17.1" in str(reserved.warning)
    assert reserved.weights([0.0, 0.0], [0, 500])[0] == 1.0 > reserved.weights([0.0], [500])[0]
    assert Dial(RANGE, POINTS, prefer=0.5).warning is None


@given(
    spent=st.floats(0, 1e6), step=st.integers(0, 5000), cost_budget=st.floats(0, 1e6), costs=st.lists(st.floats(0, 1e6))
)
def test_weights_stay_in_their_range(spent, step, cost_budget, costs):
    dial = budget(cost_budget)
    dial.end_episodes(np.array(costs))
    weight = dial.weights([spent], [step])[0]
    assert 0.02 <= weight <= 1.0


@given(st.lists(st.floats(0, 100), min_size=2, max_size=6), st.integers(0, 999))
def test_more_spent_never_makes_the_dial_bolder(spent, step):
    weights = budget().weights(np.sort(spent), np.full(len(spent), step))
    assert (np.diff(weights) >= -1e-12).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prefer": 1.5}, "prefer must be 0"),
        ({"prefer": float("nan")}, "prefer must be 0"),
        ({"cost_budget": -1.0}, "cost_budget must be"),
        ({"cost_budget": float("inf")}, "from 0 to 1e"),
        ({"cost_budget": 5.0, "prefer": 0.5}, "same dial"),
        ({"cost_budget": 5.0, "episode_steps": 0}, "episode_steps"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Dial(RANGE, POINTS, **settings)


def test_the_settings_of_a_card_are_scaled_to_the_length_of_an_episode():
    point = {"weight": 0.1, "return_mean": 9.0, "cost_mean": 20.0, "cost_std": 30.0, "episodes": 100}
    card = {"dial": [point], "episode_steps": 400}
    assert card_points(card, episode_steps=400) == card_points(card) == [DialPoint(0.1, 9.0, 20.0, 30.0)]
    assert card_points(card, episode_steps=100) == [DialPoint(0.1, 2.25, 5.0, 15.0, 400)]  # bursts weigh more
    assert card_points(card, episode_steps=100)[0].cost_error == pytest.approx(0.25 * card_points(card)[0].cost_error)
    assert card_points(card, episode_steps=800) == [DialPoint(0.1, 18.0, 40.0, 60.0)]
    assert DialPoint(0.1, 9.0, 20.0).scaled(0.5) == DialPoint(0.1, 4.5, 10.0)


def test_a_cost_that_is_not_known_is_met_by_the_safest_setting_and_not_averaged():
    dial = budget()
    assert dial.weights([np.nan, 0.0], [10, 10]) == pytest.approx([1.0, budget().weights([0.0], [10])[0]])
    dial.end_episodes(np.array([np.nan, np.inf]))
    assert dial.aim == 1.0


def test_the_latch_and_its_warning_speak_of_the_setting_that_drives():
    noisy = [DialPoint(0.02, 28.0, 50.0, 9.0), DialPoint(0.3, 26.0, 13.9, 9.0), DialPoint(1.0, 23.0, 13.0, 9.0, 100)]
    dial = Dial(RANGE, noisy, cost_budget=13.5)
    assert (dial.safest_weight, dial.safest_cost) == (0.3, 13.9)
    assert dial.safest_within == noisy[1].cost_within
    assert "13.9" in str(dial.warning)
    free = Dial(RANGE, [DialPoint(0.02, 9.0, 5.0), DialPoint(1.0, 0.0, 0.0)], cost_budget=0.0)
    assert free.warning is None
    assert free.weights([0.0], [0]) == pytest.approx([1.0])


def test_a_budget_needs_measured_settings():
    with pytest.raises(InputError, match="two settings"):
        Dial(RANGE, cost_budget=25.0)
