"""Evaluation in the real worlds: reproducible, whole episodes, and a clear no to misfits."""

import numpy as np
import pytest

from blendctl.controllers import NetworkController, identity_encoding
from blendctl.controllers.dense import Dense
from blendctl.errors import InputError, StateError
from blendctl.evaluation import evaluate


class Still:
    """A controller that does nothing, and remembers whether it was given randomness."""

    def __init__(self, value=0.0):
        self.value = value
        self.drew = set()

    def act(self, observation, rng=None):
        self.drew.add(rng is not None)
        return np.full((len(observation), 2), self.value)


def test_whole_episodes_are_run_and_the_same_seed_repeats_them(monkeypatch):
    first = evaluate(Still(1.0), "PointGoal1", episodes=3, seed=5, worlds_at_once=2, threads=1)
    again = evaluate(Still(1.0), "PointGoal1", episodes=3, seed=5, worlds_at_once=3, threads=1)
    assert first.lengths.tolist() == [1000.0] * 3
    assert np.array_equal(first.returns, again.returns)
    assert np.array_equal(first.costs, again.costs)
    assert len(set(first.returns)) == 3
    summary = first.summary()
    assert summary["return_mean"] == pytest.approx(first.returns.mean())
    assert summary["episodes"] == 3
    assert summary["return_ci95"][0] <= summary["return_mean"] <= summary["return_ci95"][1]


@pytest.mark.parametrize("deterministic", [True, False])
def test_randomness_is_given_only_when_asked_for(deterministic):
    still = Still()
    evaluate(still, "PointGoal0", episodes=1, deterministic=deterministic, threads=1)
    assert still.drew == {not deterministic}


def test_misfits_are_refused():
    def zeros(n, m):
        return Dense((np.zeros((n, m), np.float32),), (np.zeros(m, np.float32),))

    small = NetworkController(
        "small",
        identity_encoding(7),
        zeros(7, 2),
        np.zeros(2, np.float32),
        critic=zeros(7, 1),
        cost_critic=zeros(7, 1),
    )
    with pytest.raises(InputError, match="takes 7 observations"):
        evaluate(small, "PointGoal1", episodes=1, threads=1)
    with pytest.raises(InputError, match='did you mean "PointGoal1"'):
        evaluate(Still(), "PointGaol1", episodes=1, threads=1)
    with pytest.raises(InputError, match="episodes >= 1"):
        evaluate(Still(), "PointGoal1", episodes=0)
    with pytest.raises(StateError, match="NaN"):
        evaluate(Still(np.nan), "PointGoal1", episodes=1, threads=1)


def test_a_controller_that_remembers_begins_every_batch_anew():
    class Stateful:
        def __init__(self):
            self.resets = 0

        def act(self, observations, rng=None):
            return np.zeros((len(observations), 2))

        def reset(self):
            self.resets += 1

    memory = Stateful()
    evaluate(memory, "PointGoal1", episodes=3, worlds_at_once=2)
    assert memory.resets == 2
