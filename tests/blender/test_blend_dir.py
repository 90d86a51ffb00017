"""A directory that `blendctl blend` wrote becomes the same blender again; foreign and dangerous ones are refused."""

import json

import pytest
from short_drive import blend_to

from blendctl import Blender, run
from blendctl.blender.blend_dir import read_blend_dir
from blendctl.controllers import PotentialField, PurePursuit
from blendctl.errors import FileFormatError, InputError
from blendctl.features import LookAhead, SimulatedLookAhead, Twin

QUICK = ("--no-alone", "--no-counterfactual")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_to(tmp_path_factory.mktemp("blend"), *QUICK, "--hold", 3, "--dwell", 2, episodes=1, steps=60)


def edited(folder, tmp_path, **changes):
    """Copy the directory and change its run.json."""
    (tmp_path / "bandit.safetensors").write_bytes((folder / "bandit.safetensors").read_bytes())
    about = json.loads((folder / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(about | changes))
    return tmp_path


def arms(blender):
    with blender:
        return [record.arm for record in run("PointGoal1", blender, episodes=1, seed=5)]


def test_a_loaded_blend_drives_as_one_made_by_hand(folder):
    team = [PurePursuit("PointGoal1"), PotentialField("PointGoal1")]
    by_hand = Blender(
        team, ["bold", "wary"], bandit=folder / "bandit.safetensors", hold=3, dwell=2, fallback="wary", seed=1
    )
    loaded = Blender.load(folder, seed=1)
    assert loaded.names == ["bold", "wary"]
    assert loaded.bandit.stage > 0
    assert (loaded.hold, loaded.dwell) == (3, 2)
    assert arms(loaded) == arms(by_hand)


def test_changes_replace_the_arguments(folder):
    with Blender.load(folder, frozen=True, hold=1, stochastic=False) as blender:
        assert blender.frozen
        assert blender.hold == 1


def test_the_directory_says_how_long_episodes_are(folder):
    assert read_blend_dir(folder).steps == 60


def test_look_ahead_comes_back_with_its_dial(folder, tmp_path):
    features = {"kind": "LookAhead", "network": None, "prefer": 0.25, "cost_budget": None, "episode_steps": 60}
    options = json.loads((folder / "run.json").read_text())["options"] | {"features": features}
    blend = read_blend_dir(edited(folder, tmp_path, options=options))
    assert blend.settings["features"] == LookAhead(prefer=0.25, episode_steps=60)


def test_a_simulated_look_ahead_comes_back_with_its_twin(folder, tmp_path):
    features = {"kind": "SimulatedLookAhead", "samples": 2, "simulator": {"kind": "Twin", "world": "PointGoal1"}}
    options = json.loads((folder / "run.json").read_text())["options"] | {"features": features}
    blend = read_blend_dir(edited(folder, tmp_path, options=options))
    assert blend.settings["features"] == SimulatedLookAhead(Twin("PointGoal1"), samples=2)


def test_code_named_by_a_file_does_not_run(folder, tmp_path):
    (tmp_path / "mine.py").write_text("raise SystemExit('it ran')")
    spec = f"{tmp_path}/mine.py:drive"
    changed = edited(folder, tmp_path, controllers=[spec, "potential-field"])
    with pytest.raises(InputError, match="name all of its controllers again"):
        Blender.load(changed)


def test_controllers_that_are_named_again_are_used(folder, tmp_path):
    changed = edited(folder, tmp_path, controllers=["tcp://127.0.0.1:1", "potential-field"], digests=[])
    with Blender.load(changed, controllers=[lambda observation: [1.0, 0.0], "potential-field"], seed=0) as blender:
        assert next(iter(run("PointGoal1", blender, episodes=1, seed=0))).proposals[0].tolist() == [1.0, 0.0]


def test_another_controller_than_before_is_refused(folder, tmp_path):
    changed = edited(folder, tmp_path, controllers=["heading-pid", "potential-field"])
    with pytest.raises(InputError, match='"bold" is another one'):
        Blender.load(changed)
    with pytest.raises(InputError, match="has 2 controllers, actually: 1"):
        Blender.load(folder, controllers=["stop"])


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"experiment": "reproduce"}, InputError),
        ({"options": None}, FileFormatError),
        ({"options": {"features": {"kind": "Popen"}}}, FileFormatError),
        ({"options": {"features": {"kind": "LookAhead", "shell": "true"}}}, FileFormatError),
        ({"controllers": 3}, FileFormatError),
    ],
)
def test_a_damaged_directory_is_refused(folder, tmp_path, changes, error):
    with pytest.raises(error):
        Blender.load(edited(folder, tmp_path, **changes))


def test_an_empty_directory_and_an_unfinished_run_are_refused(folder, tmp_path):
    with pytest.raises(InputError, match="not the directory of a blend"):
        Blender.load(tmp_path)
    edited(folder, tmp_path)
    (tmp_path / "bandit.safetensors").unlink()
    with pytest.raises(FileFormatError, match="did not finish"):
        Blender.load(tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileFormatError, match="damaged"):
        Blender.load(tmp_path)
