"""The store: units under the name of their content, one experiment per directory."""

import json

import pyarrow as pa
import pytest

from blendctl.errors import FileFormatError, InputError
from blendctl.experiments import Result, Store, Unit
from blendctl.experiments.store import decode, encode
from blendctl.experiments.units import run_unit

SQUARE = "small_units:square"


def test_a_unit_is_named_by_all_of_its_content(tmp_path):
    file = tmp_path / "drive.py"
    file.write_text("def drive(observation): return [0, 0]\n")
    parameters = {"number": 1, "controllers": [f"{file}:drive"]}
    unit = Unit(SQUARE, parameters)
    assert unit.key == Unit(SQUARE, dict(reversed(parameters.items()))).key
    others = [Unit(SQUARE, parameters | {"number": 2}), Unit(SQUARE, parameters, after=unit)]
    file.write_text("def drive(observation): return [1, 0]\n")
    others.append(Unit(SQUARE, parameters))
    assert len({unit.key, *(other.key for other in others)}) == 4


def test_results_come_back_to_the_bit():
    unit = Unit(SQUARE, {"number": 1})
    table = pa.table({"return": [0.1, 1 / 3], "arms": [[1, 2], [3]]})
    for result in (Result({"a": 1 / 3, "b": None, "c": [1e-300]}), Result({"a": 2.0**-1074}, table)):
        back = decode(encode(unit.key, unit.to_json(), result), key=unit.key)
        assert back.same_as(result)
        assert not back.same_as(Result({"a": 0.0}, table))


@pytest.mark.parametrize("table", [None, pa.table({"x": list(range(1000))})])
def test_a_unit_file_that_is_damaged_or_of_another_unit_is_refused(table):
    unit = Unit(SQUARE, {"number": 1})
    data = encode(unit.key, unit.to_json(), Result({"a": 1}, table))
    with pytest.raises(FileFormatError, match="truncated or damaged"):
        decode(data[: len(data) // 2], key=unit.key)
    with pytest.raises(FileFormatError, match="was changed"):
        decode(data, key="0" * 32)
    with pytest.raises(FileFormatError):
        decode(data.replace(b'\\"a\\": 1', b'\\"a\\": 2'), key=unit.key)


def test_values_that_are_no_json_are_refused():
    unit = Unit(SQUARE, {"number": 1})
    with pytest.raises(InputError, match="not JSON data"):
        encode(unit.key, unit.to_json(), Result({"a": float("nan")}))
    with pytest.raises(InputError, match="JSON data"):
        Unit(SQUARE, {"number": object()})


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match='no kind of unit "nowhere:unit"'):
        Unit("nowhere:unit", {})
    with pytest.raises(InputError, match="unit_kind"):
        Unit("json:dumps", {})


def test_a_directory_with_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("\\documentclass{book}")
    with pytest.raises(InputError, match=r"holds other data \(thesis.tex\)"):
        Store(tmp_path, "reproduce", identity={})
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(InputError, match="is a file"):
        Store(tmp_path / "thesis.tex", "reproduce", identity={})


def test_another_experiment_and_other_options_are_refused(tmp_path):
    Store(tmp_path, "compare", identity={"seed": 0})
    with pytest.raises(InputError, match='the results of "compare", this is "reproduce"'):
        Store(tmp_path, "reproduce", identity={"seed": 0})
    with pytest.raises(InputError, match="seed 0 there, 1 now"):
        Store(tmp_path, "compare", identity={"seed": 1})
    with pytest.raises(InputError, match="steps null there, 9 now"):
        Store(tmp_path, "compare", identity={"seed": 0, "steps": 9})
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"run\.json is damaged or not JSON"):
        Store(tmp_path, "compare", identity={"seed": 0})


def test_parts_may_be_added_and_not_changed(tmp_path):
    Store(tmp_path, "reproduce", identity={})  # as long as nobody says what its parts are made of
    Store(tmp_path, "reproduce", identity={}, parts={"PointGoal1": ("ppo", "cpo")})
    Store(tmp_path, "reproduce", identity={}, parts={"CarButton1": ("trpo", "cpo")})
    with pytest.raises(InputError, match=r'PointGoal1 \["ppo", "cpo"\] there, \["cpo", "ppo"\] now'):
        Store(tmp_path, "reproduce", identity={}, parts={"PointGoal1": ("cpo", "ppo")})
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["parts"] == {"PointGoal1": ["ppo", "cpo"], "CarButton1": ["trpo", "cpo"]}
    assert len(run["sessions"]) == 3


def test_other_versions_than_before_are_reported(tmp_path):
    assert Store(tmp_path, "compare", identity={}).version_changes == ""
    assert Store(tmp_path, "compare", identity={}).version_changes == ""
    run = json.loads((tmp_path / "run.json").read_text())
    now = run["sessions"][-1]["versions"]["mujoco"]
    run["sessions"][-1]["versions"]["mujoco"] = "1.2.3"
    (tmp_path / "run.json").write_text(json.dumps(run))
    for _ in range(2):  # as long as units of both may be there
        assert Store(tmp_path, "compare", identity={}).version_changes == f"mujoco 1.2.3, now {now}"


def test_run_json_lists_every_session(tmp_path):
    Store(tmp_path, "compare", identity={"seed": 0}, command="blendctl compare")
    Store(tmp_path, "compare", identity={"seed": 0}, command="blendctl compare again").note(units=3)
    run = json.loads((tmp_path / "run.json").read_text())
    assert [s["command"] for s in run["sessions"]] == ["blendctl compare", "blendctl compare again"]
    assert run["sessions"][1]["units"] == 3
    assert {"blendctl", "mujoco", "numpy"} <= run["sessions"][0]["versions"].keys()


def test_a_worker_in_another_directory_finds_the_controllers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drive.py").write_text("def drive(observation): return [0, 0]\n")
    unit = Unit(SQUARE, {"number": 2, "controllers": ["drive.py:drive", "PointGoal1/ppo", "stop"]})
    unit_json = unit.to_json()
    assert json.loads(unit_json)["parameters"]["controllers"] == [
        f"{tmp_path}/drive.py:drive",
        "PointGoal1/ppo",
        "stop",
    ]
    monkeypatch.chdir("/")
    assert run_unit(unit_json, None).values["sum"] == 4
    (tmp_path / "drive.py").write_text("def drive(observation): return [1, 1]\n")
    with pytest.raises(InputError, match="another file here"):
        run_unit(unit_json, None)
