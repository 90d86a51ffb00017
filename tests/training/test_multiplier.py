"""The multiplier stays in its bounds, does not wind up, and settles the cost at its limit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blendctl.training.config import TrainConfig
from blendctl.training.multiplier import Multiplier


def rule():
    gains = {"multiplier": 0.1, "multiplier_p": 0.05, "multiplier_i": 0.01, "multiplier_d": 0.1, "multiplier_max": 5.0}
    return Multiplier(TrainConfig(cost_limit=25.0, **gains))


@given(st.lists(st.floats(0.0, 1000.0), max_size=200))
def test_it_stays_within_its_bounds_whatever_the_costs(costs):
    multiplier = rule()
    for cost in costs:
        assert 0.0 <= multiplier.update(cost) <= 5.0


def test_a_long_time_below_the_limit_does_not_wind_up():
    multiplier = rule()
    for _ in range(10_000):
        multiplier.update(0.0)
    assert multiplier.update(75.0) > 0.1


def test_a_cost_that_falls_with_the_multiplier_settles_at_the_limit():
    multiplier, cost = rule(), 60.0
    for _ in range(3000):
        wanted = 60.0 / (1.0 + 4.0 * multiplier.update(cost))
        cost += 0.2 * (wanted - cost)
    assert cost == pytest.approx(25.0, abs=0.2)
    assert multiplier.value == pytest.approx(0.35, abs=0.02)


def test_it_continues_from_its_state():
    one, other = rule(), rule()
    for cost in (10.0, 60.0, 30.0):
        one.update(cost)
    other.restore(one.state())
    assert [one.update(c) for c in (40.0, 20.0)] == [other.update(c) for c in (40.0, 20.0)]
