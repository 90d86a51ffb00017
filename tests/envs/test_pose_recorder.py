"""The recorded poses of a run equal the scenes of the world."""

import json

import gymnasium
import numpy as np
import pyarrow.parquet
import pytest

from blendctl import BlendingBandit
from blendctl.envs import SingleWorld
from blendctl.envs.pose_recorder import GROUP, TRACK_FORMAT, PoseRecorder
from blendctl.reports.run_data import read_poses
from blendctl.table_parts import list_parts


def scenes(tracker, *, steps, seed):
    """Drive with random actions; return the scenes of the world with reward and cost."""
    rng = np.random.default_rng(seed)
    tracker.reset(seed=seed)
    rows = [(tracker.unwrapped.scene(), 0.0, 0.0)]
    for _ in range(steps):
        _, reward, terminated, truncated, info = tracker.step(rng.uniform(-1, 1, 2))
        rows.append((tracker.unwrapped.scene(), reward, info["cost"]))
        if terminated or truncated:
            break
    return rows


@pytest.mark.parametrize("name", ["PointGoal1", "PointPush1", "CarButton1"])
def test_a_track_equals_the_scenes(name, tmp_path):
    tracker = PoseRecorder(SingleWorld(name, max_episode_steps=40), tmp_path)
    result = scenes(tracker, steps=40, seed=4)
    tracker.close()
    places = read_poses(list_parts(tmp_path))
    columns = places.columns
    assert columns["step"].tolist() == list(range(41))
    for row, (scene, reward, cost) in enumerate(result):
        assert columns["x"][row] == pytest.approx(scene.x, abs=1e-6)
        assert columns["y"][row] == pytest.approx(scene.y, abs=1e-6)
        assert columns["heading"][row] == pytest.approx(scene.heading, abs=1e-6)
        assert (columns["reward"][row], columns["cost"][row]) == (reward, cost)
        still = iter(places.layouts[0])
        buttons = 0
        for body in scene.bodies:
            kind = places.scenery["kinds"][[k["name"] for k in places.scenery["kinds"]].index(body.kind.name)]
            assert kind["size"] == pytest.approx(body.size)
            label = f"{body.kind.name}_{body.index}"
            if body.kind.name == "goal":
                place = (columns["goal_x"][row], columns["goal_y"][row], body.rot)
            elif f"{label}_x" in columns:
                place = [columns[f"{label}_{part}"][row] for part in ("x", "y", "turn")]
            else:
                place = next(still)[1:]
            assert place == pytest.approx((body.x, body.y, body.rot), abs=1e-5)
            if kind["lit"]:
                assert body.lit == (columns["button"][row] == buttons)
                buttons += 1


def test_episodes_follow_one_another_and_long_ones_are_split(tmp_path):
    tracker = PoseRecorder(SingleWorld("PointGoal0", max_episode_steps=GROUP + 20), tmp_path)
    scenes(tracker, steps=GROUP + 20, seed=1)
    scenes(tracker, steps=5, seed=2)
    tracker.close()
    sizes = [pyarrow.parquet.read_metadata(part).num_rows for part in list_parts(tmp_path)]
    assert sizes == [GROUP, 21, 6]
    places = read_poses(list_parts(tmp_path))
    assert places.columns["episode"].tolist() == [0] * (GROUP + 21) + [1] * 6
    assert places.columns["step"].tolist() == [*range(GROUP + 21), *range(6)]


def test_a_crash_loses_only_the_last_group(tmp_path):
    tracker = PoseRecorder(SingleWorld("PointGoal0", max_episode_steps=2000), tmp_path)
    scenes(tracker, steps=GROUP + 100, seed=1)  # and never closed
    assert len(read_poses(list_parts(tmp_path)).columns["step"]) == GROUP
    tracker.env.close()


def test_theta_is_sampled_every_ten_steps(tmp_path):
    bandit = BlendingBandit(n_features=2, n_objectives=2, seed=0)
    tracker = PoseRecorder(SingleWorld("PointGoal0", max_episode_steps=50), tmp_path, theta=lambda: bandit.theta)
    tracker.reset(seed=0)
    seen = []
    for step in range(25):
        if step % 10 == 0:
            seen.append(bandit.theta[1, 0])
        tracker.step([0.0, 0.0])
        bandit.update([0.6, 0.1], [0.1, -1.0])
    tracker.close()
    column = read_poses(list_parts(tmp_path)).columns["theta_1_0"]
    assert np.flatnonzero(np.isfinite(column)).tolist() == [1, 11, 21]
    assert column[[1, 11, 21]] == pytest.approx(seen, abs=1e-6)


def test_fresh_returns_each_row_once_and_in_order(tmp_path):
    tracker = PoseRecorder(SingleWorld("PointGoal0", max_episode_steps=30), live=True)
    tracker.reset(seed=0)
    got = []
    for step in range(30):
        tracker.step([1.0, 0.0])
        if step % 7 == 0:
            got += tracker.fresh()
    tracker.reset(seed=1)
    got += tracker.fresh()
    steps = [(t.episode, s) for t in got for s in t.columns["step"].tolist()]
    assert steps == [(0, s) for s in range(31)] + [(1, 0)]
    assert tracker.fresh() == []
    tracker.close()


def test_another_environment_has_rewards_and_no_poses(tmp_path):
    tracker = PoseRecorder(gymnasium.make("CartPole-v1"), tmp_path)
    tracker.reset(seed=0)
    tracker.step(1)
    tracker.close()
    (part,) = list_parts(tmp_path)
    header = json.loads(pyarrow.parquet.read_schema(part).metadata[TRACK_FORMAT.encode()])
    assert header["scenery"] is None
    places = read_poses([part])
    assert "x" not in places.columns
    assert places.columns["reward"].tolist() == [0.0, 1.0]


def test_an_older_track_is_replaced(tmp_path):
    for _ in range(2):
        tracker = PoseRecorder(SingleWorld("PointGoal0", max_episode_steps=5), tmp_path)
        scenes(tracker, steps=5, seed=0)
        tracker.close()
    assert len(list_parts(tmp_path)) == 1
