"""Epsilon-greedy as a decision rule."""

import numpy as np
import pytest

from blendctl.bandit import BlendingBandit
from blendctl.errors import InputError
from blendctl.switches.epsilon_greedy import EpsilonGreedy


def taught(rule):
    """Return a learner that knows the feedback: (1, -1) of arm 0, (0, 0) of arm 1."""
    bandit = BlendingBandit(2, seed=3, rule=rule)
    for _ in range(50):
        bandit.update([1.0, 0.0], [1.0, -1.0])
        bandit.update([0.0, 1.0], [0.0, 0.0])
    return bandit


@pytest.mark.parametrize(("cost_weight", "best"), [(0.5, 0), (2.0, 1)])
def test_without_exploring_the_best_estimate_is_taken(cost_weight, best):
    bandit = taught(EpsilonGreedy(epsilon=0.0, cost_weight=cost_weight))
    assert {bandit.decide(np.eye(2)).arm for _ in range(50)} == {best}


def test_exploring_happens_as_often_as_asked():
    bandit = taught(EpsilonGreedy(epsilon=0.3, cost_weight=0.5))
    arms = bandit.decide_many(np.tile(np.eye(2), (1, 1, 1))).arm
    assert len(arms) == 1
    other = np.mean([bandit.decide(np.eye(2)).arm == 1 for _ in range(4000)])
    assert other == pytest.approx(0.15, abs=0.025)  # half of the explored ones


def test_impossible_parameters_are_refused():
    with pytest.raises(InputError, match="epsilon in"):
        BlendingBandit(2, rule=EpsilonGreedy(epsilon=1.5))
