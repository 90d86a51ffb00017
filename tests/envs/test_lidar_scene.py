"""A world that is rebuilt from an observation looks and moves like the true one."""

import numpy as np
import pytest

from blendctl.envs import Goal, Robot, SingleWorld, Task, add_robot
from blendctl.envs.lidar import see
from blendctl.envs.lidar_scene import decode_lidar, rebuild_worlds, visible
from blendctl.envs.robots import POINT
from blendctl.envs.scene_memory import check_rebuildable
from blendctl.errors import InputError


def ring(*places):
    """Return the bins that objects at places light, seen from the origin."""
    bins = np.zeros(16)
    for x, y in places:
        see(bins, np.zeros(3), np.eye(3).ravel(), x, y)
    return bins


def test_objects_apart_are_decoded_exactly():
    rng = np.random.default_rng(0)
    for _ in range(50):
        angles = np.array([0.1, 1.7, 3.3, 4.9]) + rng.uniform(0.0, 0.3, 4)  # three bins apart or more
        places = rng.uniform(0.1, 2.9, (4, 1)) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        found = decode_lidar(ring(*places), 4, rng)
        apart = np.linalg.norm(found[:, None] - places[None], axis=2)
        assert apart.min(axis=0).max() < 1e-9


def test_eight_objects_are_decoded_so_that_they_light_the_bins():
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(60):
        bins = ring(*rng.uniform(-1.5, 1.5, (8, 2)))
        errors.append(np.abs(ring(*decode_lidar(bins, 8, rng)) - bins).max())
    assert np.median(errors) < 1e-6
    assert np.mean(np.array(errors) < 0.05) > 0.8


def test_no_more_objects_than_declared_and_none_in_the_dark():
    rng = np.random.default_rng(0)
    assert decode_lidar(np.zeros(16), 3, rng).shape == (0, 2)
    assert decode_lidar(ring((1.0, 0.2), (-1.0, 0.4)), 1, rng).shape == (1, 2)


def test_known_objects_are_kept_and_only_the_others_are_decoded():
    known = np.array([[1.0, 0.2], [2.0, 0.4]])  # one behind the other
    other = np.array([-1.0, 0.4])
    found = decode_lidar(ring(*known, other), 3, np.random.default_rng(0), known=known)
    assert (found[:2] == known).all()
    assert found[2:] == pytest.approx(other[None])
    assert len(decode_lidar(ring(*known), 3, np.random.default_rng(0), known=known)) == 2


def test_of_objects_in_one_bin_the_nearer_is_seen():
    bins = ring((1.0, 0.2))
    assert not visible(bins, 2.0, 0.4)
    assert visible(bins, 0.5, 0.1)
    assert visible(bins, -2.0, 0.4)


@pytest.mark.parametrize(
    ("name", "sensors"), [("PointGoal1", 1e-6), ("PointPush1", 0.05), ("PointButton1", 0.05), ("CarButton1", 0.3)]
)
def test_a_rebuilt_world_shows_the_observation_and_the_next_reward(name, sensors):
    world = SingleWorld(name)
    observation, _ = world.reset(seed=4)
    rng, action = np.random.default_rng(0), np.array([0.5, 0.3])
    velocity, lidar, reward_error = [], [], []
    start = world.task.robot_spec.sensor_count
    for step in range(40):
        rebuilt = rebuild_worlds(world.batch, observation[None], np.array([step]), [rng])
        assert (rebuilt.obs[0] == observation).all()
        assert rebuilt.last[0] == pytest.approx(world.batch.worlds.last[0], abs=0.02)
        foreseen = world.batch.step(action[None].copy(), worlds=rebuilt)
        observation, reward, _, _, _ = world.step(action)
        velocity.append(np.abs(foreseen.obs[0] - observation)[3:5])
        lidar.append(np.abs(foreseen.obs[0] - observation)[start:])
        reward_error.append(abs(foreseen.reward[0] - reward))
    world.close()
    assert np.median(velocity) < sensors
    assert np.median(lidar) < 1e-3
    assert np.mean(lidar) < 0.03
    assert np.median(reward_error) < 2e-3


def test_dark_buttons_are_drawn_and_the_goal_button_is_at_the_goal():
    world = SingleWorld("PointButton1")
    observation, _ = world.reset(seed=0)
    start = world.task.lidar_starts["buttons"]
    observation[start : start + 16] = 0.0
    rngs = [np.random.default_rng(seed) for seed in range(2)]
    rebuilt = rebuild_worlds(world.batch, np.tile(observation, (2, 1)), np.zeros(2, np.int64), rngs)
    plan = world.batch.compiled_task
    buttons = rebuilt.xy[:, plan.button : plan.button + plan.buttons]
    assert (rebuilt.timer >= 1).all()
    assert (buttons[:, -1] == rebuilt.xy[:, plan.goal]).all()
    assert not np.allclose(buttons[0, :-1] - buttons[0, -1:], buttons[1, :-1] - buttons[1, -1:])


def test_robots_with_other_sensors_are_refused():
    check_rebuildable(Task("Point", "goal", 1.5, (Goal(),)))
    values = {name: getattr(POINT, name) for name in Robot.__dataclass_fields__}
    add_robot(Robot(**values | {"name": "Strange"}))
    with pytest.raises(InputError, match="of the robots Point and Car, actually: Strange"):
        check_rebuildable(Task("Strange", "goal", 1.5, (Goal(),)))
