"""One world is a proper Gymnasium environment, and the vector form's world."""

import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from blendctl.envs import NAMES, CostInStep, SingleWorld, VectorWorld, world_id
from blendctl.errors import InputError, StateError


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_finds_nothing(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(world_id(name))
        check_env(env.unwrapped)
        env.close()


@pytest.mark.parametrize("name", ["PointGoal2", "CarPush2", "CarButton1"])
def test_one_world_is_the_vector_forms_world(name):
    env, worlds = SingleWorld(name), VectorWorld(name, 2)
    obs, _ = env.reset(seed=21)
    assert np.array_equal(obs, worlds.reset(seed=20)[0][1])
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 2)):
        obs, reward, terminated, truncated, info = env.step(action)
        many = worlds.step(np.tile(action, (2, 1)))
        assert np.array_equal(obs, many[0][1])
        assert (reward, terminated, truncated) == (many[1][1], many[2][1], many[3][1])
        assert info == {key: many[4][key][1] for key in info}


def test_it_works_under_gymnasiums_wrappers():
    env = RecordEpisodeStatistics(TimeLimit(gymnasium.make("blendctl/PointGoal1-v0"), max_episode_steps=5))
    env.reset(seed=0)
    total = 0.0
    for _ in range(5):
        _, reward, _, truncated, info = env.step(env.action_space.sample())
        total += reward
    assert truncated
    assert info["episode"]["l"] == 5
    assert info["episode"]["r"] == pytest.approx(total)


def test_the_six_tuple_has_the_cost_third():
    env = CostInStep(gymnasium.make("blendctl/PointGoal2-v0"))
    plain = gymnasium.make("blendctl/PointGoal2-v0")
    env.reset(seed=4)
    plain.reset(seed=4)
    for action in np.random.default_rng(0).uniform(-1, 1, (30, 2)):
        obs, reward, cost, terminated, truncated, info = env.step(action)
        expected = plain.step(action)
        assert np.array_equal(obs, expected[0])
        assert (reward, terminated, truncated) == expected[1:4]
        assert cost == info["cost_sum"] == expected[4]["cost"]
        assert info.get("goal_met", False) == expected[4]["goal_met"]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: gymnasium.make("blendctl/PointGoal0-v0"), 1000),
        (lambda: gymnasium.make("blendctl/PointGoal0-v0", max_episode_steps=3), 3),
        (lambda: SingleWorld("PointGoal0", max_episode_steps=1200), 1200),
    ],
)
def test_an_episode_is_as_long_as_it_was_made(make, expected):
    env = make()
    env.reset(seed=0)
    ends = [env.step(np.zeros(2))[3] for _ in range(expected)]
    assert ends == [False] * (expected - 1) + [True]


def test_the_count_of_steps_travels_with_a_snapshot():
    env, other = (
        SingleWorld("PointGoal0", max_episode_steps=4),
        SingleWorld("PointGoal0", max_episode_steps=4),
    )
    env.reset(seed=0)
    for _ in range(3):
        env.step(np.zeros(2))
    other.restore(env.snapshot())
    assert other.step(np.zeros(2))[3]
    with pytest.raises(StateError, match="over"):
        other.step(np.zeros(2))


@pytest.mark.parametrize(
    "action", [[np.nan, 0.0], [0.0], np.zeros((1, 2)), 0.0, None, ["a", "b"], [[0.0], [0.0, 1.0]], [1j, 0.0]]
)
def test_bad_actions_are_refused_and_change_nothing(action):
    env = SingleWorld("CarGoal1")
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(InputError, match="expected"):
        env.step(action)
    assert env.snapshot() == before


def test_messages_speak_of_one_world():
    env = SingleWorld("PointGoal1")
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"shape \(2,\), actually: \(3,\)"):
        env.step(np.zeros(3))
    with pytest.raises(InputError, match=r"shape \(k, 2\), actually: \(2,\)"):
        env.peek(np.zeros(2))
    with pytest.raises(InputError, match="need a horizon"):
        env.peek([lambda observation: [0.0, 0.0]])


def test_stepping_before_reset_says_what_to_do():
    with pytest.raises(StateError, match=r"call reset"):
        SingleWorld("PointGoal1").step(np.zeros(2))


def test_unknown_ids_get_a_suggestion():
    with pytest.raises(gymnasium.error.NameNotFound, match="PointGoal1"):
        gymnasium.make("blendctl/PointGaol1-v0")
    with pytest.raises(InputError, match='did you mean "PointGoal1"'):
        SingleWorld("PointGaol1")
