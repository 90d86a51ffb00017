"""A task of one's own runs in every form."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from blendctl.envs import (
    Buttons,
    Goal,
    Gremlins,
    Hazards,
    Pillars,
    PushBox,
    SingleWorld,
    Task,
    Vases,
    VectorWorld,
    register_task,
    register_worlds,
)

THREE_OBJECTIVES = Task(
    "Point",
    "goal",
    1.5,
    (Goal(), Hazards(4), Hazards(2, name="lava", radius=0.3, keepout=0.3)),
    max_episode_steps=50,
)


def test_a_declared_task_runs_in_every_form():
    name = register_task("PointLavaTest", THREE_OBJECTIVES)
    env = gymnasium.make(name)
    check_env(env.unwrapped)
    obs, _ = env.reset(seed=1)
    assert obs.shape == (12 + 3 * 16,)
    info = env.step(np.zeros(2))[4]
    assert {"cost", "cost_hazards", "cost_lava"} <= set(info)
    worlds: Any = gymnasium.make_vec(name, num_envs=3).unwrapped
    worlds.reset(seed=1)
    reward, cost, components = worlds.peek(np.zeros((2, 3, 2)), components=True)
    assert reward.shape == cost.shape == components["cost_lava"].shape == (2, 3)
    single: Any = env.unwrapped
    single.restore(worlds.snapshot()[2])
    ends = [worlds.step(np.zeros((3, 2)))[3].all() for _ in range(50)]
    assert ends == [False] * 49 + [True]


def test_kinds_of_hazards_cost_apart():
    worlds = VectorWorld(THREE_OBJECTIVES, 3)
    worlds.reset(seed=2)
    state = worlds.batch.worlds
    state.xy[1, 2] = state.position[1, :2]  # a hazard under the robot
    state.xy[2, 6] = state.position[2, :2] + [0.25, 0.0]  # lava reaches further
    *_, infos = worlds.step(np.zeros((3, 2)))
    assert infos["cost_hazards"].tolist() == [0.0, 1.0, 0.0]
    assert infos["cost_lava"].tolist() == [0.0, 0.0, 1.0]
    assert infos["cost"].tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("robot", ["Point", "Car"])
def test_a_task_may_mix_every_kind_of_object(robot):
    task = Task(
        robot,
        "push",
        2.5,
        (
            Gremlins(2),
            PushBox(constrained=True),
            Vases(2),
            Buttons(3, constrained=False),
            Goal(keepout=0.4),
            Pillars(2),
            Hazards(2),
        ),
    )
    env = SingleWorld(task)
    obs, _ = env.reset(seed=0)
    assert obs.shape == ((12 if robot == "Point" else 24) + 7 * 16,)
    for _ in range(30):
        obs, *_, info = env.step(np.ones(2))
    assert np.isfinite(obs).all()
    assert set(info) == {"cost", "goal_met", "unstable"} | {f"cost_{name}" for name in task.cost_names}
    gremlins = [body for body in env.scene().bodies if body.kind.name == "gremlins"]
    assert all(body.z == pytest.approx(0.2, abs=0.02) for body in gremlins)


def test_registering_twice_changes_nothing():
    before = dict(gymnasium.registry)
    register_worlds()
    assert gymnasium.registry == before


MAKE = "print(gymnasium.make('{}').reset(seed=0)[0].shape)"


@pytest.mark.parametrize(
    ("imports", "world"),
    [
        ("gymnasium", "blendctl.envs:blendctl/PointGoal0-v0"),
        ("blendctl, gymnasium", "blendctl.envs:blendctl/PointGoal0-v0"),
        ("gymnasium", "blendctl:blendctl/PointGoal0-v0"),
        ("gymnasium, blendctl", "blendctl/PointGoal0-v0"),
        ("blendctl.envs, gymnasium", "blendctl/PointGoal0-v0"),
    ],
)
def test_gymnasium_makes_a_world_from_module_and_id_or_after_an_import(imports, world):
    code = f"import {imports}; {MAKE.format(world)}"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.stdout == "(28,)\n", done.stderr


def test_importing_the_package_loads_neither_gymnasium_nor_numpy():
    code = "import sys, blendctl; print('gymnasium' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


def test_importing_the_worlds_loads_neither_mujoco_nor_compiled_code():
    program = "import sys, blendctl.envs; print('mujoco' in sys.modules, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


def test_make_returns_the_world_itself_whose_snapshot_holds_the_time_limit():
    env: Any = gymnasium.make("blendctl/PointGoal0-v0")
    env.reset(seed=0)
    start = env.snapshot()
    for _ in range(2):  # the second life must be cut at the same step as the first
        env.restore(start)
        ends = [env.step([0.0, 0.0])[3] for _ in range(1000)]
        assert ends.index(True) == 999
    env.close()
