"""Layouts are the reference's for the same seed, and keep their distances for any seed."""

from pathlib import Path

import numpy as np
import pytest

from blendctl.envs import NAMES, Goal, Hazards, Task, VectorWorld, find_task
from blendctl.envs.batch import WorldBatch
from blendctl.errors import InputError, StateError

SAMPLE = Path(__file__).parents[1] / "data" / "recordings" / "layouts.npz"
FULL = Path(__file__).parents[3] / "shared" / "traces" / "layouts"


def drawn(name, seeds):
    """Positions with the goal first sampled (n, items, 2), angles, goals in force, goal buttons."""
    batch = WorldBatch(find_task(name), len(seeds))
    for row, seed in enumerate(seeds):
        batch.seed(row, int(seed))
    batch.reset(np.ones(len(seeds), dtype=np.bool_))
    batch.close()
    worlds, goal = batch.worlds, batch.compiled_task.goal
    xy = worlds.xy.copy()
    xy[:, goal] = worlds.sampled_goal
    return xy, worlds.rot, worlds.xy[:, goal], worlds.button


def variant(name):
    """Layouts depend on the robot in the push task only, whose box differs."""
    return name if "Push" in name else name.removeprefix("Point").removeprefix("Car")


@pytest.mark.parametrize("name", NAMES)
def test_layouts_are_the_recorded_ones_bit_for_bit(name):
    with np.load(SAMPLE) as file:
        recorded = {key.split(".")[1]: file[key] for key in file.files if key.split(".")[0] == variant(name)}
    xy, rot, goal, button = drawn(name, recorded["exact_seeds"])
    assert np.array_equal(xy, recorded["exact_xy"])
    assert np.array_equal(rot, recorded["exact_rot"])
    assert np.array_equal(goal, recorded["exact_goal_xy"])
    if "goal_button" in recorded:
        assert np.array_equal(button, recorded["goal_button"])


@pytest.mark.skipif(not FULL.is_dir(), reason="the full recordings are not here")
@pytest.mark.parametrize("name", NAMES)
def test_two_thousand_layouts_are_the_recorded_ones(name):
    with np.load(FULL / f"{variant(name)}.npz") as file:
        xy, _, goal, _ = drawn(name, file["seeds"])
        assert np.array_equal(xy.astype(np.float32), file["xy"])
        assert np.array_equal(goal.astype(np.float32), file["goal_xy"])


@pytest.mark.parametrize("name", NAMES)
def test_objects_keep_out_of_each_other_and_stay_inside(name):
    batch = WorldBatch(find_task(name), 30)
    for row in range(30):
        batch.seed(row, 9000 + row)
    batch.reset(np.ones(30, dtype=np.bool_))
    plan, xy = batch.compiled_task, batch.worlds.xy.copy()
    if plan.button >= 0:  # the goal moved onto a button; its first place kept the others away
        xy[:, plan.goal] = batch.worlds.sampled_goal
    distance = np.linalg.norm(xy[:, :, None] - xy[:, None, :], axis=-1)
    needed = plan.keepout[:, None] + plan.keepout[None, :]
    apart = ~np.eye(len(plan.keepout), dtype=bool)
    assert (distance >= needed)[:, apart].all()
    assert (np.abs(xy) <= plan.extents - plan.keepout[None, :, None]).all()


def test_objects_that_cannot_fit_are_refused_with_advice():
    crowded = Task("Point", "goal", 0.8, (Goal(), Hazards(40, keepout=0.3)))
    worlds = VectorWorld(crowded, 2)
    with pytest.raises(InputError, match=r"do not fit.*larger extents"):
        worlds.reset(seed=0)
    with pytest.raises(StateError, match="reset"):
        worlds.step(np.zeros((2, 2)))


def test_an_episode_ends_when_the_next_goal_finds_no_room():
    cramped = Task("Point", "goal", 0.75, (Goal(),))  # from the middle, the robot's keepout covers every place
    worlds = VectorWorld(cramped, 2)
    worlds.reset(seed=0)
    state, goal = worlds.batch.worlds, worlds.batch.compiled_task.goal
    state.xy[0] = [[0.0, 0.0], [0.1, 0.1]]
    _, _, terminated, truncated, infos = worlds.step(np.zeros((2, 2)))
    assert infos["goal_met"][0]
    assert terminated.tolist() == [True, False]
    assert not truncated.any()
    assert state.xy[0, goal].tolist() == [0.1, 0.1]  # the old goal stays
    assert worlds.step(np.zeros((2, 2)))[1][0] == 0.0
    assert not np.array_equal(state.xy[0, goal], [0.1, 0.1])
