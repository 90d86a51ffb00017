"""A peek returns what would happen, and leaves the worlds as they are."""

import numpy as np
import pytest

from blendctl.envs import NAMES, SingleWorld, VectorWorld
from blendctl.errors import InputError


@pytest.fixture
def worlds():
    made = VectorWorld("PointGoal2", 3, threads=2)
    made.reset(seed=0)
    for action in np.random.default_rng(5).uniform(-1, 1, (20, 3, 2)):
        made.step(action)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_a_peek_equals_the_step_that_follows(name):
    worlds = VectorWorld(name, 3, threads=2)
    worlds.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(15):
        actions = rng.uniform(-1, 1, (4, 3, 2))
        before = worlds.snapshot()
        reward, cost, components = worlds.peek(actions, components=True)
        assert worlds.snapshot() == before
        chosen = int(rng.integers(4))
        _, stepped, _, _, infos = worlds.step(actions[chosen])
        assert np.array_equal(reward[chosen], stepped)
        assert np.array_equal(cost[chosen], infos["cost"])
        for key, values in components.items():
            assert np.array_equal(values[chosen], infos[key])


def test_rolling_policies_ahead_equals_driving_them(worlds):
    def forward(observations):
        return np.ones((len(observations), 2))

    def by_sight(observations):
        return np.clip(observations[:, 12:14] * 3 - 1, -1, 1)

    before = worlds.snapshot()
    reward, cost = worlds.peek([forward, by_sight], horizon=12, gamma=0.9)
    assert worlds.snapshot() == before
    for k, policy in enumerate((forward, by_sight)):
        worlds.restore(before)
        total, costs = np.zeros(3), np.zeros(3)
        for step in range(12):
            _, r, _, _, infos = worlds.step(policy(worlds.observations))
            total += 0.9**step * r
            costs += 0.9**step * infos["cost"]
        assert reward[k] == pytest.approx(total)
        assert cost[k] == pytest.approx(costs)


def test_a_roll_ends_with_the_episode():
    worlds = VectorWorld("PointGoal1", 2, max_episode_steps=4)
    worlds.reset(seed=0)
    policy = [lambda observations: np.ones((2, 2))]
    assert np.array_equal(worlds.peek(policy, horizon=4)[0], worlds.peek(policy, horizon=40)[0])


def test_an_ended_episode_has_no_reward_or_cost():
    worlds = VectorWorld("PointGoal1", 2, max_episode_steps=1)
    worlds.reset(seed=0)
    worlds.step(np.ones((2, 2)))
    reward, cost = worlds.peek(np.ones((3, 2, 2)))
    assert not reward.any()
    assert not cost.any()


def test_one_world_peeks_as_the_vector_form_does(worlds):
    env = SingleWorld("PointGoal2")
    env.restore(worlds.snapshot()[1])
    actions = np.random.default_rng(0).uniform(-1, 1, (5, 2))
    many = worlds.peek(np.repeat(actions[:, None], 3, axis=1))
    reward, cost = env.peek(actions)
    assert np.array_equal(reward, many[0][:, 1])
    assert np.array_equal(cost, many[1][:, 1])
    total, _ = env.peek([lambda observation: np.ones(2)], horizon=5)
    assert total == pytest.approx(worlds.peek([lambda obs: np.ones((3, 2))], horizon=5)[0][:, 1])


@pytest.mark.parametrize(
    ("alternatives", "options", "message"),
    [
        (np.zeros((3, 2)), {}, "shape"),
        (np.zeros((4, 2, 2)), {}, "shape"),
        (np.full((4, 3, 2), np.nan), {}, "finite"),
        ([lambda obs: np.zeros((3, 2))], {}, "horizon"),
        (np.zeros((4, 3, 2)), {"horizon": 3}, "policies"),
        ([], {"horizon": 3}, "policies"),
        ([lambda obs: np.zeros((3, 2))], {"horizon": 0}, "horizon >= 1"),
        ([lambda obs: np.zeros((3, 2))], {"horizon": 2, "gamma": 1.5}, "gamma"),
        ([lambda obs: np.zeros(2)], {"horizon": 2}, "shape"),
    ],
)
def test_bad_alternatives_are_refused(worlds, alternatives, options, message):
    before = worlds.snapshot()
    with pytest.raises(InputError, match=message):
        worlds.peek(alternatives, **options)
    assert worlds.snapshot() == before
