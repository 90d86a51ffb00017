"""Our worlds are the reference's, step by step, on the sample and, where present, on all recordings."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blendctl.envs import NAMES
from blendctl.envs.conformance import compare_recording
from blendctl.envs.recordings import find_recordings, load_recording
from blendctl.errors import FileFormatError, InputError

SAMPLE = Path(__file__).parents[1] / "data" / "recordings"
FULL = Path(__file__).parents[3] / "shared" / "traces"


def changed(recording, **arrays):
    return replace(recording, arrays=recording.arrays | arrays)


@pytest.mark.parametrize("name", NAMES)
def test_the_sample_of_every_world_conforms(name):
    report = compare_recording(load_recording(SAMPLE / f"Safety{name}-v0.npz"))
    assert report.failures() == []
    assert report.strict.steps >= 7
    assert report.loose.steps >= 1


@pytest.mark.skipif(not FULL.is_dir(), reason="the full recordings are not here")
@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_step_conforms(name):
    report = compare_recording(load_recording(FULL / f"Safety{name}-v0.npz"))
    assert report.failures() == []
    assert report.logic.steps == 600


def test_logic_is_exact_where_single_precision_storage_allows():
    for path in find_recordings(SAMPLE):
        logic = compare_recording(load_recording(path)).logic
        assert logic.lidar_max <= 1e-7
        assert logic.reward_max <= 2e-15
        assert (logic.cost_mismatch, logic.goal_mismatch) == (0, 0)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("Car")])
def test_the_car_begins_an_episode_as_the_reference_does(name):
    recording = load_recording(SAMPLE / f"Safety{name}-v0.npz")
    assert (recording["row_ep_step"][recording.before] == 0).any()
    demanding = changed(recording, row_ep_step=recording["row_ep_step"] + 1)  # counts first steps as strict
    assert demanding.strict.sum() > recording.strict.sum()
    assert compare_recording(demanding).strict.qpos_max < 1e-6


@pytest.mark.parametrize(
    ("array", "change", "complaint"),
    [
        ("step_action", lambda a: -a, "strict qpos_max"),
        ("step_reward", lambda a: a + 1e-9, "logic reward_max"),
        ("step_cost", lambda a: 1.0 - a, "logic cost_mismatch"),
        ("step_goal_met", lambda a: ~a, "logic goal_mismatch"),
        ("row_obs", lambda a: np.roll(a, 1, axis=1), "logic lidar_max"),
        ("ep_seed", lambda a: a + 1, "layouts differ"),
        ("row_button_timer", lambda a: a + 1, "logic goal_mismatch"),
    ],
)
def test_a_world_that_differs_is_found_out(array, change, complaint):
    recording = load_recording(SAMPLE / "SafetyPointButton1-v0.npz")
    report = compare_recording(changed(recording, **{array: change(recording[array])}))
    assert any(failure.startswith(complaint) for failure in report.failures())


def test_folders_and_files_that_are_no_recordings_are_refused(tmp_path):
    with pytest.raises(InputError, match="no recording"):
        find_recordings(tmp_path)
    with pytest.raises(InputError, match="folder"):
        find_recordings(tmp_path / "nowhere")
    file = tmp_path / "SafetyPointGoal1-v0.npz"
    file.write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(FileFormatError, match="damaged or not arrays"):
        load_recording(file)
    np.savez(file, row_qpos=np.zeros(3))
    file.with_suffix(".json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileFormatError, match="missing"):
        load_recording(file)
    with pytest.raises(InputError, match="did you mean"):
        load_recording(tmp_path / "SafetyPointGaol1-v0.npz")
