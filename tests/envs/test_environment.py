"""Any environment by name, with arguments, cost and length; several in lock-step; what `check_environment` finds."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from blendctl.envs import VectorWorld
from blendctl.envs.environment import ChosenCost, EnvironmentSpec, as_environment, parse_arguments
from blendctl.envs.environment_check import check_environment
from blendctl.errors import InputError

FILE = """
import gymnasium

def hill(*, goal_velocity=0, render_mode=None):
    return gymnasium.make("MountainCarContinuous-v0", goal_velocity=goal_velocity, render_mode=render_mode)

def speed(observation, action, info):
    return abs(float(observation[1]))

number = 3

def nothing():
    return 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def test_a_name_makes_an_environment_with_arguments_cost_and_length(file):
    spec = EnvironmentSpec(f"{file}:hill", {"goal_velocity": 0.5}, cost=f"{file}:speed", episode_steps=7)
    env: Any = spec.make()
    assert env.unwrapped.goal_velocity == 0.5
    env.reset(seed=0)
    truncated = []
    for _ in range(7):
        observation, _, _, over, info = env.step(np.ones(1, np.float32))
        truncated.append(over)
        assert info["cost"] == abs(float(observation[1])) > 0
    assert truncated == [False] * 6 + [True]
    assert EnvironmentSpec(**spec.to_dict()) == spec


def test_worlds_and_ids_of_gymnasium_are_known_by_name():
    assert EnvironmentSpec("blendctl/PointGoal1-v0").world == "PointGoal1"
    cheetah: Any = EnvironmentSpec("HalfCheetah-v5", {"frame_skip": 2}).make()
    assert cheetah.unwrapped.frame_skip == 2
    assert isinstance(EnvironmentSpec("PointGoal1").make_vector(2), VectorWorld)
    chosen = EnvironmentSpec("PointGoal1", cost="cost_hazards", episode_steps=5).make()
    chosen.reset(seed=0)
    assert chosen.step(np.zeros(2))[4]["cost"] == 0.0


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Pendulm-v1", {}, 'did you mean "Pendulum-v1"'),
        ("PointGoal7", {}, 'did you mean "PointGoal'),
        ("PointGoal1", {"arguments": {"size": 3}}, "takes no arguments, actually: size"),
        ("Pendulum-v1", {"episode_steps": 0}, "episode_steps must be"),
        ("{file}:number", {}, "a function that returns an environment, actually: 3"),
        ("{file}:hil", {}, 'has no "hil"'),
        ("Pendulum-v1", {"cost": "{file}:number"}, "must be a function of"),
        ("nowhere_at_all:Thing-v0", {}, "nowhere_at_all"),
    ],
)
def test_wrong_names_are_refused(file, name, options, message):
    chosen = {key: value.format(file=file) if isinstance(value, str) else value for key, value in options.items()}
    with pytest.raises(InputError, match=message):
        EnvironmentSpec(name.format(file=file), **chosen)


def test_wrong_arguments_of_an_environment_are_refused(file):
    with pytest.raises(InputError, match="cannot be made: TypeError"):
        EnvironmentSpec("Pendulum-v1", {"gravity": 9.0}).make()
    with pytest.raises(InputError, match=r"cannot be called with \{'speed': 1\}"):
        EnvironmentSpec(f"{file}:hill", {"speed": 1}).make()
    with pytest.raises(InputError, match="must return a Gymnasium environment, actually: int"):
        EnvironmentSpec(f"{file}:nothing").make()
    with pytest.raises(InputError, match="NAME=VALUE"):
        parse_arguments(["frame_skip"])


def test_a_cost_that_is_not_in_info_is_named_with_the_nearest():
    env = EnvironmentSpec("HalfCheetah-v5", cost="x_velocty").make()
    env.reset(seed=0)
    with pytest.raises(InputError, match='did you mean "x_velocity"'):
        env.step(np.zeros(6, np.float32))


def test_environments_in_lock_step_are_as_single_ones():
    spec = EnvironmentSpec("CartPole-v1")
    worlds = spec.make_vector(3)
    single, rows = spec.make(), worlds.reset(seed=4)[0]
    observation, _ = single.reset(seed=5)
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert np.array_equal(rows[1], observation)
        action = int(rng.integers(2))
        rows, _, terminated, truncated, _ = worlds.step(np.full((3, 1), float(action)))
        observation, _, over, cut, _ = single.step(action)
        assert terminated[1] == over
        ended = terminated | truncated
        if ended.any():
            rows, _ = worlds.reset(seed=[7] * 3, options={"reset_mask": ended})
        if over or cut:
            observation, _ = single.reset(seed=7)
    worlds.close()


def test_environments_in_lock_step_go_back_and_look_at_alternatives():
    spec = EnvironmentSpec("Hopper-v5", cost="x_velocity")
    worlds: Any = spec.make_vector(2, autoreset_mode=AutoresetMode.SAME_STEP)
    start = worlds.reset(seed=0)[0]
    before = worlds.snapshot()
    actions = np.full((2, 3), 0.3)
    reward, cost = worlds.peek(actions[None])
    assert np.array_equal(worlds.observations, start)
    rows, gained, _, _, infos = worlds.step(actions)
    assert np.array_equal(reward[0], gained)
    assert np.array_equal(cost[0], infos["cost"])
    far = worlds.peek([lambda seen: actions], horizon=5, gamma=0.9)[0]
    worlds.restore(before)
    assert np.array_equal(worlds.observations, start)
    assert np.array_equal(worlds.step(actions)[0], rows)
    assert np.array_equal(worlds.peek([lambda seen: actions], horizon=5, gamma=0.9)[0], far)
    ended = np.zeros(2, np.bool_)
    while not ended.any():
        _, _, terminated, truncated, infos = worlds.step(np.ones((2, 3)))
        ended = terminated | truncated
    row = int(np.argmax(ended))
    assert not np.array_equal(infos["final_obs"][row], worlds.observations[row])


def test_python_passes_environments_and_functions_too():
    env = gymnasium.make("Pendulum-v1")
    make, spec = as_environment(env, cost=lambda observation, action, info: 2.0, episode_steps=3)
    made = make()
    assert spec is None
    assert isinstance(made, ChosenCost)
    made.reset(seed=0)
    assert made.step(np.zeros(1, np.float32))[4]["cost"] == 2.0
    with pytest.raises(InputError, match="env must be the name of an environment"):
        as_environment(3)


class Odd(gymnasium.Env):
    """Is drawn from a global generator, and has a cost by another name."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        x = np.random.normal()  # noqa: NPY002  # what this environment is about
        return np.array([x], np.float32), x, False, False, {"crashed": float(x > 1)}


def test_the_check_says_what_an_environment_can_and_cannot():
    found = check_environment(Odd)
    assert found.usable
    assert not found.deterministic
    assert not found.copy_exact
    assert found.copy_parts_at == 1
    assert found.cost_candidates == ("crashed",)
    assert not found.vector
    words = " ".join(found.problems)
    assert "--cost crashed" in words
    assert "step 1 differs" in words
    assert check_environment(Odd, cost="crashed").cost_key == "crashed"


def test_the_check_of_an_exact_environment_finds_no_fault():
    found = check_environment("InvertedPendulum-v5", cost="reward_survive", episode_steps=100)
    assert (found.usable, found.deterministic, found.copy_exact, found.vector) == (True, True, True, True)
    assert (found.cost_found, found.cost_key, found.episode_steps) == (True, "reward_survive", 100)


def test_an_environment_that_cannot_be_driven_is_not_usable():
    class Broken(Odd):
        def step(self, action):
            raise RuntimeError("no motor")

    found = check_environment(Broken())
    assert not found.usable
    assert "no motor" in found.problems[0]


def test_an_id_with_a_module_imports_it(tmp_path, monkeypatch):
    (tmp_path / "far_away.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('FarAway-v0', 'gymnasium.envs.classic_control:PendulumEnv', max_episode_steps=7)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert EnvironmentSpec("far_away:FarAway-v0").make().spec.max_episode_steps == 7
        with pytest.raises(InputError, match="there is no environment"):
            EnvironmentSpec("far_away:Missing-v0")
        with pytest.raises(InputError, match='"nowhere" cannot be imported'):
            EnvironmentSpec("nowhere:FarAway-v0")
    finally:
        gymnasium.registry.pop("FarAway-v0", None)
