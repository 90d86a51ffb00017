"""The picture from above shows everything where it is."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from blendctl.envs import NAMES, SingleWorld
from blendctl.envs.glyphs import BLUE as ROBOT
from blendctl.envs.glyphs import INK
from blendctl.envs.topdown import MARGIN, TopDown

SIZE = 480


def scene_of(name, seed=3):
    env = SingleWorld(name)
    env.reset(seed=seed)
    return env.scene()


def painter(scene, **options):
    return TopDown(scene.task, width=SIZE, height=SIZE, **options)


def changed(one, other):
    """World coordinates (n, 2) relative to the picture's centre, in pixels, of the pixels that differ."""
    rows, columns = np.nonzero((one != other).any(axis=2))
    return np.stack([columns + 0.5 - SIZE / 2, SIZE / 2 - rows - 0.5], axis=1)


def near(picture, color, tolerance=12):
    return (np.abs(picture.astype(int) - color) <= tolerance).all(axis=2)


def scale_of(scene):
    return SIZE / 2 / (scene.task.extents + MARGIN)


@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_seen_where_it_is(name):
    scene = scene_of(name)
    top = painter(scene, lidar=False)
    whole = top.draw(scene)
    assert whole.shape == (SIZE, SIZE, 3)
    assert whole.dtype == np.uint8
    for n, body in enumerate(scene.bodies):
        if body.kind.name == "goal":
            continue  # a picture always has a goal
        without = top.draw(replace(scene, bodies=scene.bodies[:n] + scene.bodies[n + 1 :]))
        places = changed(whole, without) / scale_of(scene) - (body.x, body.y)
        assert len(places) > 50, body
        assert np.abs(places).max() < 2.2 * body.size + 0.2, body


def test_the_goal_is_green_and_moves():
    scene = scene_of("PointGoal0")
    goal = scene.bodies[0]
    moved = replace(scene, bodies=(replace(goal, x=goal.x - 0.5),))
    columns = [int(SIZE / 2 + shown.bodies[0].x * scale_of(scene)) for shown in (scene, moved)]
    height = int(SIZE / 2 - goal.y * scale_of(scene))
    top = painter(scene, lidar=False)
    for column, shown in zip(columns, (scene, moved), strict=True):
        picture = top.draw(shown)
        assert near(picture, top.colors["goal"])[height, column]


@pytest.mark.parametrize("heading", np.linspace(-3, 3, 7))
@pytest.mark.parametrize("name", ["PointGoal0", "CarGoal0"])
def test_the_robot_shows_its_heading(name, heading):
    scene = replace(scene_of(name), x=0.2, y=-0.1, heading=heading)
    picture = painter(scene, lidar=False).draw(scene)
    # Point's nose is in front; Car's dark wheels are behind
    mask = near(picture, ROBOT) if name[0] == "P" else near(picture, INK, 40)
    rows, columns = np.nonzero(mask)
    across = columns.mean() + 0.5 - SIZE / 2 - scene.x * scale_of(scene)
    up = SIZE / 2 - rows.mean() - 0.5 - scene.y * scale_of(scene)
    ahead = across * math.cos(heading) + up * math.sin(heading)
    aside = up * math.cos(heading) - across * math.sin(heading)
    assert ahead > 1 if name[0] == "P" else ahead < -5
    assert abs(aside) < 1


def test_the_goal_button_stands_out():
    scene = scene_of("PointButton1")
    top = painter(scene, lidar=False)
    lit = next(body for body in scene.bodies if body.lit)
    dull = replace(scene, bodies=tuple(replace(body, lit=False) for body in scene.bodies))
    places = changed(top.draw(scene), top.draw(dull)) / scale_of(scene) - (lit.x, lit.y)
    assert len(places) > 50
    assert np.hypot(*places.T).max() < 0.2


@pytest.mark.parametrize("piece", [0, 5, 11, 15])
@pytest.mark.parametrize("name", ["PointGoal0", "CarGoal0"])
def test_a_lidars_pieces_lie_where_they_look(name, piece):
    scene = replace(scene_of(name), x=0.0, y=0.0)
    dark = replace(scene, lidars={"goal": np.zeros(16)})
    bright = replace(scene, lidars={"goal": np.eye(16)[piece]})
    top = painter(scene)
    middle = changed(top.draw(bright), top.draw(dark)).mean(axis=0)
    in_robot_frame = scene.rotation[:2, :2].T @ middle
    wanted = (piece + 0.5) * 2 * math.pi / 16
    assert math.cos(math.atan2(in_robot_frame[1], in_robot_frame[0]) - wanted) > 0.999


def test_nearer_objects_show_stronger():
    scene = scene_of("PointGoal0")
    top = painter(scene)
    pictures = [top.draw(replace(scene, lidars={"goal": np.full(16, v)})).astype(int) for v in (0.0, 0.3, 0.9)]
    weak, strong = (np.abs(picture - pictures[0]).sum() for picture in pictures[1:])
    assert 0 < 2 * weak < strong


@pytest.mark.parametrize("place", [(2.0, 0.0), (-2.5, 3.0), (40.0, -7.0), (1e6, 1e6)])
@pytest.mark.parametrize("name", ["PointGoal1", "CarGoal1"])
def test_a_robot_that_leaves_stays_in_the_picture(name, place):
    scene = replace(scene_of(name), x=place[0], y=place[1])
    mask = near(painter(scene, lidar=False).draw(scene), ROBOT)
    rows, columns = np.nonzero(mask)
    assert len(rows) > 40
    assert rows.min() > 5
    assert columns.min() > 5
    assert max(rows.max(), columns.max()) < SIZE - 6


def test_a_goal_out_of_sight_is_pointed_to():
    scene = replace(scene_of("PointGoal1"), x=40.0, y=0.0)
    top = painter(scene, lidar=False)
    rows, columns = np.nonzero(near(top.draw(scene), top.colors["goal"]))
    assert len(rows) > 20
    assert columns.max() < 0.2 * SIZE  # it lies to the left
    assert abs(rows.mean() - SIZE / 2) < 0.2 * SIZE


def test_the_trail_joins_the_places_that_were():
    scene = replace(scene_of("PointGoal0"), x=0.5, y=0.5)
    top = painter(scene, lidar=False)
    places = changed(top.draw(scene, trail=[(-0.5, 0.5), (0.5, 0.5)]), top.draw(scene)) / scale_of(scene)
    assert places[:, 0].min() == pytest.approx(-0.5, abs=0.05)
    assert np.abs(places[:, 1] - 0.5).max() < 0.05


@pytest.mark.parametrize(("width", "height"), [(16, 16), (640, 200), (97, 301)])
def test_pictures_have_the_size_that_was_asked_for(width, height):
    scene = scene_of("CarButton2")
    assert TopDown(scene.task, width=width, height=height).draw(scene).shape == (height, width, 3)


def test_a_picture_needs_no_plotting_library():
    program = (
        "import sys; from blendctl.envs import SingleWorld; env = SingleWorld('PointGoal1', render_mode='topdown')\n"
        "env.reset(seed=0); env.render(); print({'matplotlib', 'OpenGL', 'PIL'} & set(sys.modules))"
    )
    plain = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "PYOPENGL_PLATFORM")}
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=plain)
    assert done.stdout.strip() == "set()"
