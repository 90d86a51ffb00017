"""A scene has the pose of every object."""

import math

import numpy as np
import pytest

from blendctl.envs import SingleWorld, VectorWorld
from blendctl.errors import InputError


@pytest.mark.parametrize("name", ["PointGoal0", "CarGoal0"])
def test_heading_is_where_the_robot_drives(name):
    env = SingleWorld(name)
    env.reset(seed=1)
    action = [1.0, 0.0] if name == "PointGoal0" else [1.0, 1.0]
    for _ in range(30):
        before = env.scene()
        env.step(np.array(action))
    after = env.scene()
    assert after.steps == 30
    way = math.atan2(after.y - before.y, after.x - before.x)
    assert math.cos(way - after.heading) > 0.99


def test_every_object_has_a_place_and_a_size():
    env = SingleWorld("CarButton1")
    env.reset(seed=1)
    scene = env.scene()
    names = [body.kind.name for body in scene.bodies]
    assert names == ["buttons"] * 4 + ["goal"] + ["hazards"] * 4 + ["gremlins"] * 4
    assert {body.size for body in scene.bodies} == {0.1, 0.2}
    lit = [body for body in scene.bodies if body.lit]
    goal = next(body for body in scene.bodies if body.kind.name == "goal")
    assert [(body.x, body.y) for body in lit] == [(goal.x, goal.y)]
    assert list(scene.lidars) == ["buttons", "goal", "hazards", "gremlins"]
    assert scene.lidars["goal"].max() > 0


def test_a_pushed_box_moves_in_the_scene():
    env = SingleWorld("PointPush0")
    env.reset(seed=0)
    state = env.batch.worlds
    state.qpos[0, 3:5] += 0.25
    box = next(body for body in env.scene().bodies if body.kind.name == "push_box")
    assert (box.x, box.y) == (state.qpos[0, 3], state.qpos[0, 4])


def test_worlds_that_do_not_exist_have_no_scene():
    worlds = VectorWorld("PointGoal1", 2)
    worlds.reset(seed=0)
    assert worlds.scene(1).bodies != worlds.scene(0).bodies
    with pytest.raises(InputError, match="from 0 to 1"):
        worlds.scene(2)
