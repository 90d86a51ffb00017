"""The memory of a scene: objects are found from several views, kept while hidden, and dropped when contradicted."""

import numpy as np
import pytest

from blendctl.envs import SingleWorld
from blendctl.envs.lidar import see
from blendctl.envs.scene_memory import open_memory
from blendctl.scene_map.search import EXACT, find_object, support_of


def view(pose, places):
    """Return the ring of objects at places, seen from a pose (x, y, heading)."""
    x, y, heading = pose
    cos, sin = np.cos(heading), np.sin(heading)
    bins, turn = np.zeros(16), np.array([cos, -sin, 0.0, sin, cos, 0.0, 0.0, 0.0, 1.0])
    for place in places:
        see(bins, np.array([x, y, 0.0]), turn, *place)
    return bins


def test_an_object_is_found_by_its_distances_where_others_hide_its_direction():
    places = np.array([[1.0, 0.6], [1.0, 0.0], [0.55, 0.75]])  # the neighbours light both bins next to the first
    poses = np.array([[0.0, 0.05 * k, 0.1] for k in range(4)])
    rings = np.array([view(pose, places) for pose in poses])
    one, seen = find_object(places[1:], poses[-1:], rings[-1:], EXACT, 3, 0.1)
    assert not seen  # from one view its direction is not known
    one, seen = find_object(places[1:], poses, rings, EXACT, 3, 0.1)
    assert seen >= 3
    assert one == pytest.approx(places[0], abs=1e-6)
    assert find_object(places, poses, rings, EXACT, 3, 0.1)[1] == 0  # all is explained


def test_a_place_that_would_have_been_seen_has_no_support():
    poses, places = np.zeros((1, 3)), np.array([[1.0, 0.2]])
    rings = np.array([view(poses[0], places)])
    assert support_of(1.0, 0.2, poses, rings, EXACT) == 1
    assert support_of(2.0, 0.4, poses, rings, EXACT) == 0  # hidden behind it
    assert support_of(-1.0, 0.2, poses, rings, EXACT) == -1


def true_offsets(world, kind):
    """Return where the objects of a kind are, from the robot."""
    worlds, plan, first = world.batch.worlds, world.batch.compiled_task, 1
    for other in world.task.objects:
        if other is kind:
            break
        first += other.count
    places = [
        worlds.qpos[0, plan.qpos_at[item] :][:2] if plan.qpos_at[item] >= 0 else worlds.xy[0, item]
        for item in range(first, first + kind.count)
    ]
    return np.array(places) - worlds.position[0, :2]


def drive(world, memory, seed, decisions):
    """Drive at random, and let the memory observe every fifth step."""
    observation, _ = world.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for number in range(decisions):
        memory.observe(observation[None], 5 * number)
        action = rng.uniform([-0.4, -1.0], [1.0, 1.0]) if world.task.robot == "Point" else rng.uniform(-0.3, 1.0, 2)
        for _ in range(5):
            observation, *_ = world.step(action)
    memory.observe(observation[None], 5 * decisions)
    return observation


@pytest.mark.parametrize(("name", "error", "share"), [("PointGoal1", 1e-3, 0.6), ("CarButton1", 0.02, 0.6)])
def test_after_a_while_most_objects_are_known_and_none_is_wrong(name, error, share):
    world = SingleWorld(name)
    memory, known, wrong, count = open_memory(world.task, 1), 0, 0, 0
    for seed in range(4):
        drive(world, memory, seed, 40)
        for kind in world.task.objects:
            truth, found = true_offsets(world, kind), memory.offsets(0, kind.name)
            apart = np.linalg.norm(truth[:, None] - found[None], axis=2)
            assert len(found) <= kind.count
            known += (apart < error).any(axis=1).sum()
            wrong += (apart > error).all(axis=0).sum()
            count += kind.count
    world.close()
    assert known > share * count
    assert wrong <= 0.03 * count


def test_an_object_that_is_known_stays_known_while_it_is_hidden():
    world = SingleWorld("PointGoal1")
    memory = open_memory(world.task, 1)
    observation, hidden = drive(world, memory, 1, 40), 0
    (hazards,) = (kind for kind in world.task.objects if kind.name == "hazards")
    start = world.task.lidar_starts["hazards"]
    heading = np.arctan2(-observation[9], -observation[10])
    for x, y in memory.offsets(0, "hazards"):
        angle = (np.arctan2(y, x) - heading) % (2 * np.pi)
        bright = 1.0 - np.hypot(x, y) / 3.0
        hidden += observation[start + int(angle / (np.pi / 8))] > bright + 1e-3
        assert np.linalg.norm(true_offsets(world, hazards) - [x, y], axis=1).min() < 1e-3
    world.close()
    assert hidden > 0


def test_a_new_episode_starts_with_an_empty_map():
    world = SingleWorld("PointGoal1")
    memory, fresh = (open_memory(world.task, 1) for _ in range(2))
    drive(world, memory, 1, 20)
    observation, _ = world.reset(seed=2)
    memory.observe(observation[None], 0)
    fresh.observe(observation[None], 0)
    for kind in world.task.objects:
        assert np.array_equal(memory.offsets(0, kind.name), fresh.offsets(0, kind.name))
    world.close()


def test_an_observation_that_fits_nothing_known_starts_the_map_again():
    world = SingleWorld("PointGoal1")
    memory, fresh = (open_memory(world.task, 1) for _ in range(2))
    drive(world, memory, 1, 20)
    observation, _ = world.reset(seed=2)
    memory.observe(observation[None], 105)  # of another place
    fresh.observe(observation[None], 105)
    assert np.array_equal(memory.offsets(0, "hazards"), fresh.offsets(0, "hazards"))
    world.close()


def test_what_would_have_been_seen_cannot_hide():
    world = SingleWorld("PointGoal1")
    memory = open_memory(world.task, 1)
    drive(world, memory, 1, 20)
    assert not memory.may_hide(0, "hazards", np.array([0.02, 0.0]))
    assert memory.may_hide(0, "hazards", memory.offsets(0, "hazards")[0])
    assert memory.may_hide(0, "hazards", np.array([50.0, 0.0]))  # out of range
    world.close()
