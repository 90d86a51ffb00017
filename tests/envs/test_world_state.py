"""A snapshot is a world, completely: it continues bit for bit, also elsewhere, and is refused when it is not one."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from blendctl.envs import NAMES, VectorWorld
from blendctl.envs.world_state import pack_world
from blendctl.errors import FileFormatError, InputError


def actions_for(steps, n, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, n, 2))


def trail(worlds, actions):
    """Everything that a caller can see of the steps."""
    seen = []
    for action in actions:
        obs, reward, terminated, truncated, infos = worlds.step(action)
        seen += [obs, reward, terminated, truncated, *(infos[key] for key in sorted(infos) if key[0] != "_")]
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_world_continues_bit_for_bit(name):
    worlds, other = VectorWorld(name, 3, max_episode_steps=45), VectorWorld(name, 3, max_episode_steps=45)
    worlds.reset(seed=11)
    trail(worlds, actions_for(20, 3))
    saved = worlds.snapshot()
    later = actions_for(40, 3, seed=1)  # beyond the end of the episode, into the next layout
    expected = trail(worlds, later)
    for restored in (worlds, other):
        restored.restore(saved)
        assert all(np.array_equal(a, b) for a, b in zip(trail(restored, later), expected, strict=True))
    assert worlds.snapshot() == other.snapshot()


def test_a_goal_reached_after_restoring_is_followed_by_the_same_goal():
    worlds = VectorWorld("PointGoal1", 1)
    worlds.reset(seed=0)
    state, goal = worlds.batch.worlds, worlds.batch.compiled_task.goal
    state.xy[0, goal] = state.position[0, :2]
    saved, goals = worlds.snapshot(), []
    for _ in range(2):
        worlds.restore(saved)
        assert worlds.step(np.zeros((1, 2)))[4]["goal_met"][0]
        goals.append(state.xy[0, goal].copy())
    assert np.array_equal(*goals)


def test_another_process_continues_bit_for_bit(tmp_path):
    env: Any = gymnasium.make("blendctl/CarButton2-v0").unwrapped
    env.reset(seed=3)
    for action in actions_for(10, 1)[:, 0]:
        env.step(action)
    (tmp_path / "world").write_bytes(env.snapshot())
    program = """
import sys, pathlib, numpy as np, blendctl.envs
env = blendctl.envs.SingleWorld("CarButton2")
env.restore(pathlib.Path(sys.argv[1]).read_bytes())
for action in np.random.default_rng(1).uniform(-1, 1, (10, 2)):
    env.step(action)
pathlib.Path(sys.argv[2]).write_bytes(env.snapshot())
"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "world", tmp_path / "after"], check=True)
    for action in np.random.default_rng(1).uniform(-1, 1, (10, 2)):
        env.step(action)
    assert (tmp_path / "after").read_bytes() == env.snapshot()


def test_the_observation_comes_back_with_the_state():
    worlds = VectorWorld("PointPush1", 2)
    first, _ = worlds.reset(seed=0)
    saved = worlds.snapshot()
    worlds.step(np.ones((2, 2)))
    worlds.restore(saved)
    assert np.array_equal(worlds.observations, first)


def tampered(snapshot):
    middle = len(snapshot) // 2
    return snapshot[:middle] + bytes([snapshot[middle] ^ 1]) + snapshot[middle + 1 :]


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda s: s[:-9], FileFormatError, "truncated"),
        (lambda s: s[:-9], FileFormatError, "3676 bytes, actually: 3667"),
        (lambda s: s + b"more", FileFormatError, "too long"),
        (lambda s: s[:5], FileFormatError, "not a snapshot"),
        (tampered, FileFormatError, "damaged"),
        (lambda s: b"BLWORLD\x63" + s[8:], FileFormatError, "format 99"),
        (lambda s: b"something else" * 100, FileFormatError, "not a snapshot"),
        (lambda s: "text", InputError, "bytes"),
    ],
)
def test_bytes_that_are_no_snapshot_are_refused_and_change_nothing(spoil, error, message):
    worlds = VectorWorld("PointGoal1", 2)
    worlds.reset(seed=0)
    good = worlds.snapshot()
    worlds.step(np.ones((2, 2)))
    before = worlds.snapshot()
    with pytest.raises(error, match=message):
        worlds.restore([good[0], spoil(good[1])])
    assert worlds.snapshot() == before


@pytest.mark.parametrize(
    ("array", "value"),
    [
        ("pos", 10**9),
        ("pos", -1),
        ("button", 4),
        ("button", -1),
        ("phase", 2),
        ("timer", -1),
        ("time", np.nan),
        ("last", 1e308),
        ("xy", -1e308),
        ("qvel", 1e11),
    ],
)
def test_values_that_no_step_leads_to_are_refused_even_under_a_good_checksum(array, value):
    worlds, forged = VectorWorld("PointButton1", 1), VectorWorld("PointButton1", 1)
    worlds.reset(seed=0)
    forged.reset(seed=0)
    before = worlds.snapshot()
    getattr(forged.batch.worlds, array)[0] = value
    snapshot = pack_world(forged.batch.worlds, 0, forged.batch.mark)
    with pytest.raises(FileFormatError, match="cannot be those of a world"):
        worlds.restore([snapshot])
    assert worlds.snapshot() == before


@pytest.mark.parametrize("snapshots", [None, b"BLWORLD", 3])
def test_many_worlds_take_a_list_of_snapshots(snapshots):
    with pytest.raises(InputError, match="expected a list of 2 snapshots"):
        VectorWorld("PointGoal1", 2).restore(snapshots)


def test_snapshots_of_another_world_or_number_are_refused():
    goal, push = VectorWorld("PointGoal1", 1), VectorWorld("PointPush1", 1)
    goal.reset(seed=0)
    push.reset(seed=0)
    with pytest.raises(FileFormatError, match="another world"):
        goal.restore(push.snapshot())
    with pytest.raises(InputError, match="expected 1 snapshots"):
        goal.restore(goal.snapshot() * 2)
