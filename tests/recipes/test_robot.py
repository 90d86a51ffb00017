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

PACKAGE = '''
from dataclasses import dataclass

from blendctl.envs import Goal, Hazards, Objects, Robot, Shape, Steering, Task, add_robot

add_robot(
    Robot(
        name="Sled",
        timestep=0.002,
        density=1.0,
        height=0.1,
        free=False,
        rest_qpos=(0.0, 0.0, 0.0),
        body="""
          <joint name="x" type="slide" axis="1 0 0" damping="0.01"/>
          <joint name="y" type="slide" axis="0 1 0" damping="0.01"/>
          <joint name="z" type="hinge" axis="0 0 1" damping="0.005"/>
          <geom type="box" size="0.08 0.12 0.05"/>
          <site name="agent"/>""",
        actuator="""
          <motor site="agent" gear="0 0.3 0 0 0 0" ctrllimited="true" ctrlrange="-1 1"
                 forcelimited="true" forcerange="-0.05 0.05"/>
          <velocity joint="z" gear="0.3" kv="1" ctrllimited="true" ctrlrange="-1 1"
                    forcelimited="true" forcerange="-0.05 0.05"/>""",
        sensors='<jointvel joint="z"/>',
        sensors_scale=(0.3,),
        reach=0.12,
        saturation=0.05,
        forward=(0.0, 1.0),
        steering=Steering(wheels=False, speed_gain=0.2, turn_gain=0.3),
        glyph=(Shape("box", half=(0.12, 0.08)), Shape("disc", ((0.08, 0.0),), (0.03, 0.03), paint="white")),
        color=(120, 40, 140),
    )
)


@dataclass(frozen=True)
class Cones(Objects):
    """Light cylinders that slide; touching one costs, and so does one that moves."""

    keepout: float = 0.15
    name: str = "cones"
    radius: float = 0.08
    density: float = 0.001
    motion = "sliding"
    costs = ("contact", "velocity")
    color = (250, 120, 20)
    glyph = (Shape("disc", half=(1.0, 1.0)), Shape("disc", half=(0.4, 0.4), paint="white"))

    def geoms(self):
        return f'<geom type="cylinder" size="{self.radius} {self.radius}" density="{self.density}"/>'


slalom = Task("Sled", "goal", 1.5, (Goal(), Cones(6), Hazards(2)), max_episode_steps=30)
'''


@pytest.fixture
def world(tmp_path, monkeypatch):
    """Return the name of a world in a package outside of blendctl."""
    (tmp_path / "my_robots").mkdir()
    (tmp_path / "my_robots" / "__init__.py").write_text(PACKAGE)
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
    described = describe_world(env.task, env.batch.plan)
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
    assert all(classical(name, world).act(observations).shape == (4, 2) for name in CLASSICAL)


def test_the_command_line_drives_it(world, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", "stop", "--env", world, "--episodes", "2", "--threads", "1"])
    assert stopped.value.code == 0, capsys.readouterr().err
