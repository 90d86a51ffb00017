"""Copies of environments continue bit for bit, leave the original alone, and say where they part if they do not."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces, wrappers

from blendctl.envs import SingleWorld
from blendctl.envs.copies import EnvironmentCopier, expect_copier, find_copier
from blendctl.errors import InputError

STEPS = 200
EXACT = [
    "Pendulum-v1", "CartPole-v1", "Acrobot-v1", "MountainCarContinuous-v0", "FrozenLake-v1",
    "HalfCheetah-v5", "Hopper-v5", "Ant-v5", "Humanoid-v5", "Reacher-v5", "InvertedDoublePendulum-v5",
]  # fmt: skip


def drive(env, actions):
    """Return what the steps bring; an episode that ends is followed by another one of the same stream."""
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        seen.append((np.array(observation), reward, terminated, truncated))
        if terminated or truncated:
            seen.append((np.array(env.reset()[0]),))
    return seen


def same(one, other):
    return len(one) == len(other) and all(
        all(np.array_equal(x, y) for x, y in zip(a, b, strict=True)) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("name", EXACT)
def test_a_copy_continues_bit_for_bit_and_so_does_a_restored_environment(name):
    env = wrappers.RecordEpisodeStatistics(gymnasium.make(name, max_episode_steps=150, disable_env_checker=True))
    env.reset(seed=3)
    env.action_space.seed(5)
    actions = [env.action_space.sample() for _ in range(STEPS)]
    drive(env, actions[:40])  # within an episode, so that the counter of the time limit matters
    copier = EnvironmentCopier()
    one, saved = copier.copy(env), copier.copy(env)
    ahead = drive(one, actions)
    expected = drive(env, actions)
    assert same(ahead, expected)
    for _ in range(2):  # a saved state can be used again
        copier.restore(env, saved)
        assert same(drive(env, actions), expected)
    assert env.unwrapped is env.env.unwrapped


def test_a_copy_of_mujoco_has_warm_start_time_and_what_was_derived():
    env: Any = gymnasium.make("Ant-v5")
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(20):  # within the first episode: a reset clears the warm start
        assert not env.step(env.action_space.sample())[2]
    data, made = env.unwrapped.data, EnvironmentCopier().copy(env).unwrapped.data
    assert made is not data
    for name in ("time", "qpos", "qvel", "qacc_warmstart", "ctrl", "xpos", "cfrc_ext"):
        assert np.array_equal(getattr(made, name), getattr(data, name)), name
    assert np.abs(data.qacc_warmstart).max() > 0


def test_copies_use_the_data_of_those_that_are_gone():
    env, copier = gymnasium.make("HalfCheetah-v5"), EnvironmentCopier()
    env.reset(seed=0)
    first = copier.copy(env)
    held = first.unwrapped.data
    second = copier.copy(env)
    assert second.unwrapped.data is not held
    del first
    assert copier.copy(env).unwrapped.data is held


def test_a_copy_does_not_render_and_a_restored_environment_does():
    env, copier = gymnasium.make("Pendulum-v1", render_mode="rgb_array"), EnvironmentCopier()
    env.reset(seed=0)
    saved = copier.copy(env)
    assert saved.unwrapped.render_mode is None
    copier.restore(env, saved)
    assert env.unwrapped.render_mode == "rgb_array"


def test_a_world_of_blendctl_is_copied_exactly():
    world = SingleWorld("PointGoal1")
    world.reset(seed=1)
    assert find_copier(world, steps=30).copier is not None


class Walk(gymnasium.Env):
    """A random walk whose noise has several possible sources."""

    observation_space = spaces.Box(-np.inf, np.inf, (1,))
    action_space = spaces.Box(-1, 1, (1,))

    def __init__(self, source="own"):
        self.source = source

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.0
        return self._observe(), {}

    def _observe(self):
        return np.array([self.x], np.float32)

    def step(self, action):
        if self.source == "own":
            noise = self.np_random.normal()
        elif self.source == "space":
            noise = float(self.action_space.sample()[0])
        else:
            noise = np.random.normal()  # noqa: NPY002  # what this environment is about
        self.x += float(action[0]) + noise
        return self._observe(), self.x, abs(self.x) > 5.0, False, {"cost": float(self.x > 0)}


def test_randomness_from_anywhere_else_is_found_with_the_step_where_it_parts():
    assert find_copier(Walk()).copier is not None
    found = find_copier(Walk("global"))
    assert found.copier is None
    assert found.step == 1
    assert "the observation is" in found.problem
    with pytest.raises(InputError, match="not exact: in step 1 of the same actions"):
        expect_copier(Walk("global"), cost=None)


def test_what_is_usually_shared_is_copied_where_it_changes():
    env = Walk("space")
    env.action_space = copy.deepcopy(Walk.action_space)
    assert find_copier(env).copier.shared is False


class Nested(gymnasium.Env):
    """An environment with another one inside."""

    def __init__(self):
        self.inner = gymnasium.make("Hopper-v5")
        self.observation_space, self.action_space = self.inner.observation_space, self.inner.action_space

    def reset(self, *, seed=None, options=None):
        return self.inner.reset(seed=seed)

    def step(self, action):
        return self.inner.step(action)


def test_an_environment_inside_another_is_copied_with_its_state():
    assert find_copier(Nested()).copier is not None


def test_what_cannot_be_copied_says_so():
    class Locked(Walk):
        def __deepcopy__(self, memo):
            raise TypeError("holds a socket")

    assert "cannot be copied (TypeError: holds a socket)" in find_copier(Locked()).problem


def test_box2d_says_that_it_cannot_be_copied():
    pytest.importorskip("Box2D")
    found = find_copier(gymnasium.make("LunarLander-v3"))
    assert found.copier is None
    assert "cannot be copied" in found.problem
