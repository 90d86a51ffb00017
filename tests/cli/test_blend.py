"""`blend`, `explain` and `check-controller`: arguments, output and files."""

import json

import pyarrow.dataset
import pytest

from blendctl import BlendingBandit
from blendctl.cli import main
from blendctl.controllers import open_controller
from blendctl.controllers.zoo import LOOKAHEAD_SETS, PAIRS, ZOO, find_lookahead, shipped_controllers
from blendctl.directory_lock import DirectoryLock
from blendctl.statistics import proportion_interval


def call(capsys, *args):
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    return stopped.value.code, *capsys.readouterr()


@pytest.fixture(scope="module")
def drive(tmp_path_factory):
    """One run that several tests inspect."""
    folder = tmp_path_factory.mktemp("blend")
    with pytest.raises(SystemExit) as stopped:
        main(
            ["blend", "PointGoal1", "--controllers", "pure-pursuit", "potential-field", "--episodes", "1",
             "--seed", "0", "--out", str(folder), "--json", str(folder / "copy.json")]
        )  # fmt: skip
    assert stopped.value.code == 0
    return folder


def test_blend_writes_summary_record_and_learner(drive):
    summary = json.loads((drive / "summary.json").read_text())
    assert json.loads((drive / "copy.json").read_text()) == summary
    table = pyarrow.dataset.dataset(drive / "record").to_table()
    assert len(table) == summary["steps"] == 1000
    assert summary["return_mean"] == pytest.approx(sum(table["reward"].to_pylist()))
    assert summary["cost_mean"] == sum(table["cost"].to_pylist())
    assert summary["switches"] == sum(table["switched"].to_pylist())
    assert summary["arm_share"]["pure-pursuit"] == table["name"].to_pylist().count("pure-pursuit") / 1000
    assert summary["correct_ratio"] == sum(table["correct"].to_pylist()) / 1000
    assert 0 <= summary["average_loss"] <= summary["loss_bound"]
    assert set(summary["alone"]) == {"pure-pursuit", "potential-field"}
    assert summary["alone"]["pure-pursuit"]["arm_share"]["pure-pursuit"] == 1.0
    assert BlendingBandit.load(drive / "bandit.safetensors").stage == 1000


def test_a_lookahead_blend_reports_its_budget(tmp_path, capsys):
    where = ("--steps", 60, "--episodes", 2, "--seed", 0, "--no-alone", "--json", tmp_path / "blend.json")
    code, _, err = call(capsys, "blend", "PointGoal1", "--lookahead", "--cost-budget", 0.1, *where)
    summary = json.loads((tmp_path / "blend.json").read_text())
    assert code == 0
    assert "warning: a cost budget of 0.1 per episode is below what the safest setting costs" in err
    assert summary["controllers"] == list(LOOKAHEAD_SETS["PointGoal1"])
    over = sum(cost > 0.1 for cost in summary["costs"])
    assert summary["over_budget"] == over / 2
    assert summary["over_budget_ci95"] == proportion_interval(over, 2)
    assert summary["cost_budget"] == summary["options"]["features"]["cost_budget"] == 0.1
    assert summary["features"] == "lookahead, cost budget 0.1"
    assert [f"warning: {words}" for words in summary["warnings"]] == err.splitlines()[:1], "said once, and kept"
    assert err.count("a cost budget of 0.1") == 1


def test_a_budget_below_the_cost_of_the_safe_controller_is_reported_with_the_return_to_expect(tmp_path, capsys):
    where = ("--steps", 20, "--episodes", 1, "--no-alone")
    code, _, err = call(capsys, "blend", "CarButton1", "--lookahead", "--cost-budget", 0.35, *where)
    assert code == 0
    assert "warning: a cost budget of 0.35 per episode is below what CarButton1/trpo-lagrangian costs alone" in err
    assert "at a return of about" in err


@pytest.mark.parametrize("lookahead", [False, True])
@pytest.mark.parametrize("world", PAIRS)
def test_look_ahead_networks_ship_for_the_default_controllers(world, lookahead):
    names = shipped_controllers(world, lookahead=lookahead)
    assert (names[0], names[-1]) == PAIRS[world]
    assert find_lookahead([open_controller(name, world=world) for name in names]) is not None


def test_worlds_without_controllers_have_no_default():
    assert shipped_controllers("PointGoal2", lookahead=True) == ()


def test_look_ahead_is_the_default_and_the_next_step_an_option(tmp_path, capsys):
    where = ("--steps", 30, "--episodes", 1, "--json", tmp_path / "blend.json", "--out", tmp_path / "out")
    code, out, _ = call(capsys, "blend", "PointGoal1", *where)
    summary = json.loads((tmp_path / "blend.json").read_text())
    assert code == 0
    assert "features: lookahead, prefer 0.5" in out
    assert "over" not in out
    assert summary["correct_ratio"] is None
    assert json.loads((tmp_path / "out" / "run.json").read_text())["features"] == "lookahead, prefer 0.5"
    code, out, _ = call(capsys, "blend", "PointGoal1", "--features", "predictions", "--replace", *where)
    summary = json.loads((tmp_path / "blend.json").read_text())
    assert code == 0
    assert "features: predictions" in out
    assert summary["correct_ratio"] is not None
    assert summary["stages"] == 30
    code, _, err = call(capsys, "blend", "PointGoal1", "--bandit", tmp_path / "out" / "bandit.safetensors", *where)
    assert code == 1
    assert "use the features of its run" in err


def test_networks_of_other_controllers_are_refused_by_their_digests(capsys):
    file = ZOO / "PointGoal1" / "ppo+ppo-lagrangian.lookahead.safetensors"
    for pair, words in (
        (["PointGoal1/ppo-lagrangian", "PointGoal1/ppo"], "networks of another order of controllers; use the order"),
        (["PointGoal1/trpo", "PointGoal1/cpo"], "the digests of the controllers' weights differ. Train networks"),
    ):
        code, _, err = call(capsys, "blend", "PointGoal1", "--controllers", *pair, "--lookahead", file)
        assert code == 1
        assert words in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("kind", ["simulated", "twin"])
def test_a_simulated_blend_drives_and_simulates_no_controller_alone(tmp_path, capsys, kind):
    where = ("--steps", 22, "--episodes", 1, "--seed", 3, "--no-counterfactual", "--out", tmp_path)
    code, _, _ = call(capsys, "blend", "PointGoal1", "--lookahead", kind, "--prefer", 0.7, *where)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert code == 0
    features = summary["options"]["features"]
    assert (features["kind"], features["seed"]) == ("SimulatedLookAhead", 3)
    table = pyarrow.dataset.dataset(tmp_path / "record").to_table()
    assert table["steps"].to_pylist() == [5, 5, 5, 5, 2]
    assert "predicted by simulation" in call(capsys, "explain", tmp_path, "--step", 7)[1]
    assert set(summary["alone"]) == set(summary["names"])


def test_lookahead_needs_networks_of_these_controllers(capsys):
    pair = ("PointGoal1/cpo", "PointGoal1/trpo")
    code, _, err = call(capsys, "blend", "PointGoal1", "--controllers", *pair, "--lookahead", "--episodes", 1)
    assert code == 1
    assert '"blendctl train-lookahead WORLD --controllers PointGoal1/cpo PointGoal1/trpo --out DIR"' in err


def test_explain_prints_one_decision(drive, capsys):
    code, out, _ = call(capsys, "explain", drive, "--step", 250)
    assert code == 0
    assert "stage 250" in out
    assert "the true loss of this choice is at most" in out
    code, _, err = call(capsys, "explain", drive, "--step", 5000)
    assert code == 1
    assert "steps 1 to 1000" in err
    code, _, err = call(capsys, "explain", drive.parent, "--step", 1)
    assert code == 1
    assert "holds no record" in err


def test_wrong_options_do_not_touch_an_older_record(drive, capsys):
    code, _, err = call(
        capsys,
        "blend",
        "PointGoal1",
        "--controllers",
        "pure-pursuit",
        "stop",
        "--rule",
        "dice",
        "--out",
        drive,
    )
    assert code == 1
    assert 'no decision rule "dice"' in err
    assert len(pyarrow.dataset.dataset(drive / "record").to_table()) == 1000


def test_an_earlier_run_is_replaced_only_on_request(tmp_path, capsys):
    command = ("blend", "PointGoal1", "--controllers", "pure-pursuit", "stop", "--steps", 20, "--episodes", 1,
               "--no-alone", "--no-counterfactual", "--out", tmp_path)  # fmt: skip
    assert call(capsys, *command)[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    code, _, err = call(capsys, *command, "--seed", 1)
    assert code == 1
    assert "holds an earlier run; use another --out, or --replace" in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert call(capsys, *command, "--seed", 1, "--replace")[0] == 0
    assert json.loads((tmp_path / "summary.json").read_text())["seed"] == 1


@pytest.mark.parametrize(
    "command",
    [
        ["blend", "PointGoal1", "--replace"],
        ["reproduce", "--worlds", "PointGoal1", "--engine", "inline"],
        ["compare", "PointGoal1", "--engine", "inline"],
        ["train", "PointGoal1"],
        ["train-lookahead", "PointGoal1"],
    ],
    ids=lambda command: command[0],
)
def test_two_runs_cannot_share_a_directory(tmp_path, capsys, command):
    (tmp_path / "out").mkdir()
    with DirectoryLock(tmp_path / "out"):
        code, _, err = call(capsys, *command, "--out", tmp_path / "out")
    assert code == 1
    assert f"{tmp_path / 'out'} is in use by another run" in err
    assert not list((tmp_path / "out").iterdir())


def test_a_controller_that_always_fails_is_reported(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def broken(observation):\n    raise RuntimeError('flat tyre')\n")
    code, out, err = call(
        capsys, "blend", "PointGoal1", "--controllers", "mine.py:broken", "stop", "--steps", 40, "--episodes", 1,
        "--features", "one-hot",
    )  # fmt: skip
    assert code == 1
    assert "blended" in out
    assert "warning: broken failed 3 times in the blended run; at first it raised RuntimeError: flat tyre" in err
    assert "broken never returned an action" in err


def test_options_of_a_saved_learner_cannot_be_overridden(drive, capsys):
    code, _, err = call(
        capsys, "blend", "PointGoal1", "--controllers", "pure-pursuit", "stop", "--noise", 0.1,
        "--scales", 1, 2, "--bandit", drive / "bandit.safetensors",
    )  # fmt: skip
    assert code == 1
    assert "do not use --scales, --noise with --bandit" in err


def test_a_run_continues_with_a_saved_learner_without_baselines(drive, tmp_path, capsys):
    code, _, _ = call(
        capsys, "blend", "PointGoal1", "--controllers", "pure-pursuit", "potential-field", "--names", "bold", "wary",
        "--episodes", 1, "--hold", 50, "--no-alone", "--no-counterfactual", "--frozen",
        "--bandit", drive / "bandit.safetensors", "--json", tmp_path / "s.json",
    )  # fmt: skip
    assert code == 0
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["stages"] == 20
    assert summary["correct_ratio"] is None
    assert set(summary["arm_share"]) == {"bold", "wary"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["PointGaol1"], 'did you mean "PointGoal1"'),
        (["PointGoal2"], "--controllers pure-pursuit potential-field"),
        (["PointGoal1", "--controllers", "nobody"], 'no controller "nobody"'),
        (["PointGoal1", "--controllers", "stop", "stop", "--rule", "chance"], "no decision rule"),
        (["PointGoal1", "--controllers", "stop", "--objectives", "cost"], 'did you mean "-cost"'),
        (["PointGoal1", "--controllers", "stop", "pure-pursuit", "--scales", "1", "2", "3"], "scales"),
    ],
)
def test_wrong_input_of_blend_is_reported_in_one_line(capsys, args, words):
    code, _, err = call(capsys, "blend", *args)
    assert code == 1
    assert words in err
    assert err.count("\n") == 1


def test_check_controller_passes_and_fails(tmp_path, capsys):
    (tmp_path / "mine.py").write_text("def good(o):\n    return [0.0, 0.0]\n\ndef bad(o):\n    return [0.0]\n")
    code, out, _ = call(
        capsys, "check-controller", f"{tmp_path}/mine.py:good", "--observations", 20, "--deadline", 10,
        "--json", tmp_path / "checks.json",
    )  # fmt: skip
    assert code == 0
    assert "it can drive" in out
    assert {"check", "verdict", "message"} == set(json.loads((tmp_path / "checks.json").read_text())[0])
    code, out, _ = call(capsys, "check-controller", f"{tmp_path}/mine.py:bad", "--observations", 20)
    assert code == 1
    assert "expected (2,)" in out
