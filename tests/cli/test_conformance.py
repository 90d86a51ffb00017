"""`blendctl conformance` prints a table, writes JSON, and fails if a world differs."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from blendctl.cli.conformance import conformance
from blendctl.errors import FileFormatError

SAMPLE = Path(__file__).parents[1] / "data" / "recordings"
LOGIC = {"steps", "lidar_max", "reward_max", "cost_mismatch", "goal_mismatch"}
PHYSICS = (
    {"steps", "qpos_max", "qvel_max", "qpos_p99", "obs_max", "obs_p99"}
    | {"reward_max", "reward_p99"}
    | {"cost_mismatch", "goal_mismatch"}
)


@pytest.fixture
def folder(tmp_path):
    for suffix in (".npz", ".json"):
        shutil.copy(SAMPLE / f"SafetyPointGoal1-v0{suffix}", tmp_path)
    return tmp_path


def test_a_conforming_world_is_reported_and_written(folder):
    target = folder / "new" / "out.json"
    done = CliRunner().invoke(conformance, [str(folder), "--json", str(target)], env={"COLUMNS": "160"})
    assert done.exit_code == 0, done.output
    assert "PointGoal1" in done.output
    world = json.loads(target.read_text())["worlds"]["blendctl/PointGoal1-v0"]
    assert set(world["logic"]) >= LOGIC
    assert set(world["strict"]) & set(world["loose"]) >= PHYSICS


def test_a_world_that_differs_makes_the_command_fail(folder):
    path = folder / "SafetyPointGoal1-v0.npz"
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    arrays["step_reward"] = arrays["step_reward"] + 0.5
    np.savez(path, **arrays)
    done = CliRunner().invoke(conformance, [str(folder)])
    assert done.exit_code == 1
    assert "logic reward_max is 0.5" in done.output


def test_a_recording_of_another_world_is_rejected(folder):
    for suffix in (".npz", ".json"):
        (folder / f"SafetyPointGoal1-v0{suffix}").rename(folder / f"SafetyCarGoal1-v0{suffix}")
    done = CliRunner().invoke(conformance, [str(folder)])
    assert done.exit_code == 1
    assert isinstance(done.exception, FileFormatError)
    assert "another world" in str(done.exception)


def test_a_directory_without_recordings_is_rejected(tmp_path):
    done = CliRunner().invoke(conformance, [str(tmp_path)])
    assert done.exit_code == 1
    assert "has no recording" in str(done.exception)
