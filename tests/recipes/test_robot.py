"""A robot and a kind of object, added as CONTRIBUTING.md says, work in every part of the package."""

import sys

import numpy as np
import pytest

from blendctl.cli import main
from blendctl.controllers.classical import CLASSICAL, classical
from blendctl.envs import SingleWorld, VectorWorld, open_task
from blendctl.envs.robots import ROBOTS
from blendctl.envs.scene_spec import describe_world
from blendctl.training.encodings import world_encodings
from recipes import BLOCK, RecipeCopy, section

RECIPE = "A new robot or object kind"
TASK = """
from blendctl.envs import Goal, Hazards, Task

slalom = Task("Sled", "goal", 1.5, (Goal(), Cones(6), Hazards(2)), max_episode_steps=30)
"""
SCRIPT = """
import numpy
from blendctl.envs import Goal, SingleWorld, Task
from blendctl.envs.sled import Cones

env = SingleWorld(Task("Sled", "goal", 1.5, (Goal(), Cones(6))), render_mode="topdown")
env.reset(seed=0)
env.step(numpy.zeros(2))
print(env.render().shape)
"""


def test_the_recipe_touches_a_new_file_and_one_line(tmp_path):
    copy = RecipeCopy(tmp_path, RECIPE)
    assert copy.files == ["src/blendctl/envs/sled.py", "src/blendctl/envs/__init__.py"]
    assert copy.run("-c", SCRIPT) == "(480, 480, 3)\n"


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Return the name of a world in a package outside of blendctl."""
    (tmp_path / "my_robots").mkdir()
    (tmp_path / "my_robots" / "__init__.py").write_text(BLOCK.search(section(RECIPE))["code"] + TASK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield open_task("my_robots:slalom")
    sys.modules.pop("my_robots")
    ROBOTS.pop("Sled", None)


def test_the_world_steps_and_is_drawn(world):
    env = SingleWorld(world, render_mode="topdown", view={"width": 200, "height": 200, "lidar": False})
    observation, _ = env.reset(seed=0)
    assert observation.shape == (12 + 1 + 3 * 16,)
    for _ in range(5):
        observation, *_, info = env.step(np.array([0.3, 1.0]))
    assert np.isfinite(observation).all()
    assert observation[12] == pytest.approx(observation[8], abs=1e-9)  # the yaw rate, from joint and gyro
    assert {"cost_cones_contact", "cost_cones_velocity", "cost_hazards"} <= set(info)
    scene = env.scene()
    assert scene.heading == pytest.approx(np.arctan2(scene.rotation[1, 1], scene.rotation[0, 1]))
    picture = env.render().reshape(-1, 3)
    for color in ((120, 40, 140), (250, 120, 20)):
        assert (np.abs(picture.astype(int) - color).max(axis=1) <= 2).any()
    env.close()


def test_the_page_gets_the_glyphs(world):
    env = SingleWorld(world)
    described = describe_world(env.task, env.batch.compiled_task)
    assert described["robot"]["glyph"][0] == {
        "form": "box",
        "points": ((0.0, 0.0),),
        "half": (0.12, 0.08),
        "paint": "own",
    }
    cones = described["kinds"][1]
    assert (cones["name"], cones["size"], cones["color"], len(cones["glyph"])) == ("cones", 0.08, [250, 120, 20], 2)


def test_classical_controllers_and_encodings_follow_the_declaration(world):
    encodings = world_encodings(world)
    assert encodings.policy.observation_size == 61
    assert encodings.action_gains == (1.0, 20.0)
    assert [ring.radius for ring in encodings.policy.lidars] == pytest.approx([0.3, 0.2, 0.12 + 0.08])
    worlds = VectorWorld(world, 4, max_episode_steps=400)
    observations, _ = worlds.reset(seed=1)
    pursue = classical("pure-pursuit", world)
    total = np.zeros(4)
    for _ in range(300):
        observations, reward, *_ = worlds.step(pursue.act(observations))
        total += reward
    assert total.mean() > 0.5  # it finds its way to the goal
    worlds.close()
    boxless = set(CLASSICAL) - {"push"}
    assert all(classical(name, world).act(observations).shape == (4, 2) for name in boxless)


def test_the_command_line_drives_it(world, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", "stop", "--env", world, "--episodes", "2", "--threads", "1"])
    assert stopped.value.code == 0, capsys.readouterr().err
