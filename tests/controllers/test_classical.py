"""Classical controllers reach the goal, avoid obstacles and stop."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from blendctl.controllers.classical import (
    CLASSICAL,
    DynamicWindow,
    HeadingPID,
    PotentialField,
    PurePursuit,
    Push,
    Stop,
    VectorFieldHistogram,
    classical,
)
from blendctl.controllers.dynamic_window import SLIDING_PLAN, WHEELED_PLAN, window_commands
from blendctl.controllers.free_direction import free_directions
from blendctl.controllers.observation_layout import ObservationLayout
from blendctl.controllers.push_direction import push_commands
from blendctl.envs import NAMES, VectorWorld
from blendctl.envs.robots import ROBOTS
from blendctl.errors import InputError
from blendctl.evaluation import evaluate


def episodes(controller, world):
    return evaluate(controller, world, episodes=4, seed=0, threads=1).summary()


@pytest.mark.parametrize("world", ["PointGoal1", "CarGoal1"])
def test_pursuit_is_faster_and_the_potential_field_is_safer(world):
    bold, wary = episodes(PurePursuit(world), world), episodes(PotentialField(world), world)
    assert bold["return_mean"] > wary["return_mean"] > 3.0
    assert bold["cost_mean"] > 3.0 > wary["cost_mean"]


@pytest.mark.parametrize(("world", "faster"), [("PointGoal1", 1.5), ("CarGoal1", 1.0)])
def test_the_histogram_is_faster_than_the_potential_field_and_safe(world, faster):
    wary, quick = episodes(PotentialField(world), world), episodes(VectorFieldHistogram(world), world)
    assert quick["return_mean"] > faster * wary["return_mean"]
    assert quick["cost_mean"] < 15.0


def lidar_row(layout, shown):
    """Return an observation at rest; `shown`: kind -> (distance, angle) of objects, each in the middle of its bin."""
    row = np.zeros(layout.observation_size)
    for kind, objects in shown.items():
        for distance, angle in objects:
            at = (angle - layout.turn) % (2.0 * np.pi) / (2.0 * np.pi / 16)
            reading = 1.0 - distance / 3.0
            for neighbour, share in ((-1, 0.5), (0, 1.0), (1, 0.5)):
                entry = layout.rings[kind] + (int(at) + neighbour) % 16
                row[entry] = max(row[entry], share * reading)
    return row


def drive_direction(world, shown):
    """Return the direction that the histogram takes from rest, (rad, left is positive)."""
    layout = ObservationLayout.of(world)
    controller = VectorFieldHistogram(world)
    row = lidar_row(layout, shown)
    distance, angle = layout.bearing(row[None], "goal")
    still = np.zeros(1)
    starts = np.array([layout.rings[kind] for kind in controller.obstacles], np.int64)
    direction, free = free_directions(row[None], starts, layout.turn, distance, angle, still, still, 0.35, 0.7)
    return float(direction[0]), float(free[0])


AHEAD = np.pi / 16  # the middle of a bin


@pytest.mark.parametrize("world", ["PointGoal1", "CarGoal1"])
def test_the_histogram_passes_an_obstacle_on_the_way_and_none_behind(world):
    free = drive_direction(world, {"goal": [(2.0, AHEAD)], "hazards": [(0.5, AHEAD + np.pi)]})
    assert free == pytest.approx((AHEAD, 1.0), abs=0.05)
    direction, share = drive_direction(world, {"goal": [(2.0, AHEAD)], "hazards": [(0.6, AHEAD)]})
    assert np.arcsin(0.35 / 0.6) <= abs(direction - AHEAD) < 1.0  # just past it
    assert share == pytest.approx(1.0)


def test_the_histogram_leaves_an_obstacle_that_it_is_in_and_drives_to_a_target_beside_one():
    direction, _ = drive_direction("PointGoal1", {"goal": [(2.0, AHEAD)], "hazards": [(0.1, AHEAD)]})
    assert abs(direction - AHEAD) > np.pi / 2
    near = drive_direction("PointGoal1", {"goal": [(0.5, AHEAD)], "hazards": [(0.8, AHEAD)]})
    assert near[0] == pytest.approx(AHEAD, abs=0.05)


@pytest.mark.parametrize(("world", "least"), [("PointGoal1", 22.0), ("CarGoal1", 15.0), ("PointButton1", 22.0)])
def test_the_dynamic_window_is_faster_than_the_histogram_and_safe(world, least):
    quick = episodes(VectorFieldHistogram(world), world)
    planned = evaluate(DynamicWindow(world), world, episodes=12, seed=0, threads=1).summary()
    assert planned["return_mean"] > max(least, quick["return_mean"])
    assert planned["cost_mean"] < 12.0


def window_command(world, shown, velocity=(0.0, 0.0, 0.0), **settings):
    """Return the command of the dynamic window: forward speed and yaw rate, or right and left wheel."""
    controller = DynamicWindow(world, **settings)
    layout = controller.layout
    row = lidar_row(layout, shown)[None]
    starts, radii, own, reach = controller.plan
    moving = tuple(np.array([speed]) for speed in velocity)
    wheels = layout.robot.steering.wheels
    commands = window_commands(
        row, starts, radii, own, layout.turn, layout.bearing(row, "goal"), moving, reach, wheels,
        controller.motion, controller.gains, controller.price, controller.margin,
    )  # fmt: skip
    return commands[0]


STRAIGHT = pytest.approx(
    (2.0 * np.cos(AHEAD), 10.0 * AHEAD), abs=0.2
)  # forward speed, yaw rate: full speed to the goal


def test_the_dynamic_window_passes_what_costs_and_crosses_what_does_not():
    on_the_way = {"goal": [(2.0, AHEAD)], "hazards": [(0.6, AHEAD)]}
    speed, yaw_rate = window_command("PointGoal1", on_the_way)
    assert speed > 0.5
    assert abs(yaw_rate - 10.0 * AHEAD) > 2.0  # past it
    assert window_command("PointGoal1", on_the_way, avoid=[]) == STRAIGHT
    behind = {"goal": [(2.0, AHEAD)], "hazards": [(0.5, AHEAD + np.pi)]}
    assert window_command("PointGoal1", behind) == STRAIGHT
    vase = {"goal": [(2.0, AHEAD)], "vases": [(0.6, AHEAD)]}  # which cost nothing in this world
    assert window_command("PointGoal1", vase) == STRAIGHT


def test_the_dynamic_window_brakes_before_an_obstacle_that_it_cannot_pass():
    shown = {"goal": [(2.0, AHEAD)], "hazards": [(0.45, AHEAD)]}
    velocity = (1.4 * np.cos(AHEAD), 1.4 * np.sin(AHEAD), 0.0)
    assert (
        window_command("PointGoal1", shown, velocity)[0]
        < 1.0
        < window_command("PointGoal1", shown, velocity, avoid=[])[0]
    )


@pytest.mark.parametrize("seed", [600_011, 600_017, 600_042])
def test_the_dynamic_window_does_not_stand_still_between_hazards(seed):
    driven = evaluate(DynamicWindow("PointGoal1"), "PointGoal1", episodes=1, seed=seed, threads=1).summary()
    assert driven["return_mean"] > 20.0  # 8.3, 13.1 and 2.4 while plans took turns that cancelled each other


def test_wheels_drive_to_the_goal_turn_to_it_and_do_not_take_its_button_for_another():
    assert window_command("CarGoal1", {"goal": [(1.5, AHEAD)]}).tolist() == [1.0, 0.5]  # right and left
    assert window_command("CarGoal1", {"goal": [(1.5, -AHEAD)]}).tolist() == [0.5, 1.0]
    right, left = window_command("CarGoal1", {"goal": [(1.5, AHEAD + np.pi / 2)]})
    assert right > max(left, 0.0)
    button = {"goal": [(0.8, AHEAD)], "buttons": [(0.8, AHEAD)]}
    assert window_command("CarButton1", button).tolist() == window_command("CarButton1", button, avoid=[]).tolist()
    wrong = {"goal": [(1.5, AHEAD)], "buttons": [(0.6, AHEAD)]}
    assert window_command("CarButton1", wrong).tolist() != window_command("CarButton1", wrong, avoid=[]).tolist()


@pytest.mark.parametrize(
    ("world", "plan", "tolerance"), [("PointGoal0", SLIDING_PLAN, 0.1), ("CarGoal0", WHEELED_PLAN, 0.2)]
)
def test_the_declared_motion_of_a_robot_predicts_how_far_it_drives(world, plan, tolerance):
    layout = ObservationLayout.of(world)
    motion = layout.robot.motion
    seconds = plan[0] * plan[2]
    worlds = VectorWorld(world, 4, threads=1)
    observations, _ = worlds.reset(seed=3)
    way = np.zeros(4)
    step = 10 * layout.robot.timestep
    for _ in range(round(seconds / step)):
        thrust = np.ones((4, 2)) if layout.robot.steering.wheels else np.array([[1.0, 0.0]] * 4)
        observations = worlds.step(thrust)[0]
        way += layout.speed(observations) * step
    worlds.close()
    predicted = motion.top_speed * (seconds - motion.lag * (1.0 - np.exp(-seconds / motion.lag)))
    assert way == pytest.approx(predicted, abs=tolerance)


def test_the_dynamic_window_needs_a_robot_that_declares_its_motion(monkeypatch):
    monkeypatch.setitem(ROBOTS, "Point", dataclasses.replace(ROBOTS["Point"], motion=None))
    with pytest.raises(InputError, match=r"Point declares none; pass motion=Motion\(\.\.\.\) to Robot, or use vfh"):
        DynamicWindow("PointGoal1")


@pytest.mark.parametrize("settings", [{"price": -1.0}, {"margin": 0.0}, {"margin": float("nan")}])
def test_the_dynamic_window_refuses_numbers_that_make_no_sense(settings):
    with pytest.raises(InputError, match="expected price >= 0 and margin > 0, actually: price="):
        DynamicWindow("PointGoal1", **settings)


def test_push_brings_the_box_to_goals_and_avoids_hazards():
    pushed = evaluate(Push("PointPush1"), "PointPush1", episodes=12, seed=0, threads=1).summary()
    assert pushed["return_mean"] > 3.0  # one or two goals with the way to them; the best trained controller has 8
    assert pushed["cost_mean"] < 25.0


def push_direction(shown):
    """Return direction (rad, left is positive) and speed of `push` at rest."""
    layout = ObservationLayout.of("PointPush1")
    row = lidar_row(layout, shown)[None]
    still = np.zeros(1)
    direction, speed = push_commands(
        row,
        *Push("PointPush1").starts,
        layout.turn,
        layout.bearing(row, "goal"),
        layout.bearing(row, "push_box"),
        (still, still),
        (1.0, 1.3),
        0.4,
    )
    return float(direction[0]), float(speed[0])


def test_push_drives_on_behind_the_box_and_around_it_otherwise():
    behind = push_direction({"goal": [(2.0, AHEAD)], "push_box": [(0.6, AHEAD)]})
    assert behind == pytest.approx((AHEAD, 1.0), abs=0.05)
    direction, _ = push_direction({"goal": [(0.5, AHEAD + np.pi)], "push_box": [(0.8, AHEAD)]})
    assert 0.4 < abs(direction - AHEAD) < np.pi / 2  # past the box


def test_push_deviates_from_a_way_of_the_box_that_is_blocked():
    shown = {"goal": [(2.0, AHEAD)], "push_box": [(0.6, AHEAD)]}
    beside = AHEAD + np.pi / 4
    assert push_direction(shown | {"pillars": [(1.2, beside)]})[0] == pytest.approx(AHEAD, abs=0.05)
    direction, speed = push_direction(shown | {"pillars": [(1.1, AHEAD)]})
    assert abs(direction - AHEAD) > 0.4 or speed < 0.9
    assert push_direction(shown | {"pillars": [(0.8, AHEAD + np.pi)]})[0] == pytest.approx(AHEAD, abs=0.05)


def test_push_needs_a_box():
    with pytest.raises(InputError, match='PointGoal1 has no lidar for "push_box"'):
        Push("PointGoal1")


def test_heading_pid_reaches_goals():
    assert episodes(HeadingPID("PointGoal0"), "PointGoal0")["return_mean"] > 3.0


@pytest.mark.parametrize("world", ["PointGoal1", "CarGoal1"])
def test_stop_comes_to_rest(world):
    worlds = VectorWorld(world, 4, threads=1)
    observations, _ = worlds.reset(seed=0)
    layout = ObservationLayout.of(world)
    for _ in range(30):
        observations, *_ = worlds.step(PurePursuit(world).act(observations))
    assert np.abs(layout.speed(observations)).max() > 0.1
    for _ in range(200):
        observations, *_ = worlds.step(Stop(world).act(observations))
    worlds.close()
    assert np.abs(layout.speed(observations)).max() < 0.02


@pytest.mark.parametrize("world", ["PointPush1", "CarPush2"])
@pytest.mark.parametrize("name", CLASSICAL)
def test_one_row_and_a_batch_agree(name, world):
    controller: Any = classical(name, world)
    rows = np.random.default_rng(0).random((5, controller.observation_size))
    batch = classical(name, world).act(rows)
    assert batch.shape == (5, 2)
    for row, action in zip(rows, batch, strict=True):
        assert classical(name, world).act(row) == pytest.approx(action, abs=1e-6)


@pytest.mark.parametrize("world", NAMES)
def test_every_world_can_be_driven(world):
    worlds = VectorWorld(world, 1, threads=1)
    observations, _ = worlds.reset(seed=0)
    for name in CLASSICAL:
        if name != "push" or "Push" in world:
            assert np.isfinite(classical(name, world).act(observations)).all()
    worlds.close()


def test_the_bearing_is_where_the_goal_is():
    worlds = VectorWorld("CarGoal1", 6, threads=1)
    observations, _ = worlds.reset(seed=3)
    distance, angle = ObservationLayout.of("CarGoal1").bearing(observations, "goal")
    for row in range(6):
        x, y = worlds.batch.worlds.xy[row, worlds.batch.compiled_task.goal] - worlds.batch.worlds.position[row, :2]
        rotation = worlds.batch.worlds.rotation[row].reshape(3, 3)
        ahead, left = -(rotation[:2, 1] @ [x, y]), rotation[:2, 0] @ [x, y]  # a car looks along -y
        assert distance[row] == pytest.approx(np.hypot(x, y), abs=0.02)
        assert angle[row] == pytest.approx(np.arctan2(left, ahead), abs=0.2)
    worlds.close()


def test_unknown_names_targets_and_shapes_are_refused():
    with pytest.raises(InputError, match='did you mean "pure-pursuit"'):
        classical("pure-persuit", "PointGoal1")
    with pytest.raises(InputError, match='no lidar for "boxes"'):
        PurePursuit("PointGoal1", target="boxes")
    with pytest.raises(InputError, match="PointGoal1 has"):
        PurePursuit("PointGoal1").act(np.zeros(7))
