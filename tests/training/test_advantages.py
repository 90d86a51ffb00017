"""Advantages against sums written out by hand, and the difference between an end and a time limit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blendctl.training.advantages import estimate_advantages

STEPS, WORLDS = 12, 3


def by_hand(signals, values, *, next_values, terminated, ended, discount, gae):
    """Sum the discounted surprises of each episode's rest, as the definition says."""
    out = np.zeros_like(values)
    for world in range(values.shape[1]):
        for t in range(len(values)):
            weight = 1.0
            for k in range(t, len(values)):
                following = 0.0 if terminated[k, world] else next_values[k, world]
                out[t, world] += weight * (signals[k, world] + discount * following - values[k, world])
                if ended[k, world]:
                    break
                weight *= discount * gae
    return out


@settings(deadline=None)
@given(st.integers(0, 2**31), st.floats(0.0, 0.99), st.floats(0.0, 1.0))
def test_the_recursion_equals_the_definition(seed, discount, gae):
    rng = np.random.default_rng(seed)
    signals, values, next_values = rng.normal(size=(3, STEPS, WORLDS)).astype(np.float32)
    ended = rng.random((STEPS, WORLDS)) < 0.3
    terminated = ended & (rng.random((STEPS, WORLDS)) < 0.5)
    how = {
        "next_values": next_values,
        "terminated": terminated,
        "ended": ended,
        "discount": discount,
        "gae": gae,
    }
    advantages, targets = estimate_advantages(signals, values, **how)
    assert advantages == pytest.approx(by_hand(signals, values, **how), abs=1e-4)
    assert targets == pytest.approx(advantages + values, abs=1e-6)


def test_a_critic_that_is_right_leaves_no_advantage_even_across_a_time_limit():
    # Reward 1 for ever is worth 1 / (1 - discount); cutting the episode changes nothing about that.
    discount = 0.9
    worth = np.full((STEPS, 1), 1.0 / (1.0 - discount), np.float32)
    ended = np.zeros((STEPS, 1), bool)
    ended[5] = True
    advantages, _ = estimate_advantages(
        np.ones((STEPS, 1), np.float32),
        worth,
        next_values=worth,
        terminated=np.zeros_like(ended),
        ended=ended,
        discount=discount,
        gae=0.95,
    )
    assert advantages == pytest.approx(np.zeros((STEPS, 1)), abs=1e-5)
