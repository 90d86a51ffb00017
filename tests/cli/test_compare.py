"""`compare`: arguments, output and files."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from blendctl.cli import main
from blendctl.controllers.zoo import LOOKAHEAD_SETS, PAIRS, find_controller_file, lookahead_file
from blendctl.experiments import engines, units

SHORT = ["--episodes", "2", "--steps", "12", "--engine", "inline"]


def call(capsys, *args):
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    return stopped.value.code, *capsys.readouterr()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One comparison that several tests inspect."""
    where = tmp_path_factory.mktemp("compare") / "out"
    with pytest.raises(SystemExit) as stopped:
        main(
            ["compare", "PointGoal1", "--methods", "paper", "random", "simplex", "ceiling", "simulated", *SHORT,
             "--seed", "3",
             "--set", "ceiling.horizon=4", "--set", "ceiling.samples=1",
             "--set", "simulated.horizon=6", "--set", "simulated.samples=2", "--out", str(where)]
        )  # fmt: skip
    assert stopped.value.code == 0
    return where


def test_compare_writes_table_figure_and_standings(folder):
    scores = json.loads((folder / "compare.json").read_text())
    assert set(scores["methods"]) == {"performant", "safe", "paper", "random", "simplex", "ceiling", "simulated"}
    for method in scores["methods"].values():
        assert {"return_mean", "return_ci95", "cost_mean", "cost_ci95", "corner_score"} <= set(method)
    table = pq.read_table(folder / "compare.parquet").to_pylist()
    assert {row["seed"] for row in table} == {3, 4}
    paper = [row for row in table if row["method"] == "paper"]
    assert scores["methods"]["paper"]["return_mean"] == pytest.approx(sum(r["return"] for r in paper) / 2)
    simplex = [row for row in table if row["method"] == "simplex"]
    assert len(simplex) == 2 * 7
    assert sum(row["shown"] for row in simplex) == 2
    for kind, magic in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert (folder / f"compare.{kind}").read_bytes().startswith(magic)
    assert json.loads((folder / "run.json").read_text())["experiment"] == "compare"


def test_finished_units_are_not_run_again_and_methods_can_be_added(folder, capsys):
    done = {path.name: path.stat().st_mtime_ns for path in (folder / "units").iterdir()}
    code, out, _ = call(
        capsys, "compare", "PointGoal1", "--methods", "paper", "shared", *SHORT, "--seed", "3", "--out", folder,
        "--json", folder / "copy.json",
    )  # fmt: skip
    assert code == 0
    now = {path.name: path.stat().st_mtime_ns for path in (folder / "units").iterdir()}
    assert {name: now[name] for name in done} == done
    assert len(now) == len(done) + 3  # the three settings of shared control
    assert max(len(line) for line in out.splitlines() if not line.startswith("wrote")) <= 80
    assert "shared*" in out
    copy = json.loads((folder / "copy.json").read_text())
    assert copy == json.loads((folder / "compare.json").read_text())
    assert set(copy["methods"]) == {"performant", "safe", "paper", "shared"}


def test_methods_that_look_ahead_use_the_set_that_ships_unless_others_are_named(tmp_path, capsys):
    words = ("--methods", "lookahead", "paper", *SHORT, "--set", "lookahead.prefer=0.5")
    code, out, _ = call(capsys, "compare", "PointPush1", *words, "--out", tmp_path / "all")
    methods = json.loads((tmp_path / "all" / "compare.json").read_text())["methods"]
    assert code == 0
    ships = len(LOOKAHEAD_SETS["PointPush1"])
    assert f"with {ships} controllers, the other methods with two" in " ".join(out.split())
    assert methods["lookahead"]["controllers"] == list(LOOKAHEAD_SETS["PointPush1"])
    assert methods["paper"]["controllers"] == list(PAIRS["PointPush1"])
    pair = ("--controllers", *PAIRS["PointPush1"])
    code, out, _ = call(capsys, "compare", "PointPush1", *words, *pair, "--out", tmp_path / "pair")
    methods = json.loads((tmp_path / "pair" / "compare.json").read_text())["methods"]
    assert code == 0
    assert "other methods with two" not in " ".join(out.split())
    assert methods["lookahead"]["controllers"] == list(PAIRS["PointPush1"])


def test_several_networks_are_compared_on_the_same_episodes(tmp_path, capsys):
    pair = "PointGoal1/ppo+ppo-lagrangian"
    code, out, _ = call(
        capsys, "compare", "PointGoal1", "--methods", "lookahead", "--lookahead", pair, f"{pair}.plain", *SHORT,
        "--set", "lookahead.prefer=0.5", "--out", tmp_path / "out",
    )  # fmt: skip
    assert code == 0
    assert "2 networks" in " ".join(out.split())
    rows = pq.read_table(tmp_path / "out" / "compare.parquet").to_pylist()
    ahead = [row for row in rows if row["method"] == "lookahead"]
    assert [(row["networks"], row["seed"] - ahead[0]["seed"]) for row in ahead] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    summary = json.loads((tmp_path / "out" / "compare.json").read_text())["methods"]["lookahead"]
    assert summary["return_mean"] == pytest.approx(sum(row["return"] for row in ahead) / 4)
    assert len(summary["networks"]) == 2


def test_networks_that_were_replaced_run_again_and_nothing_else(tmp_path, capsys):
    """The networks lie beside the controllers' files; another file in their place makes other units."""
    pair = [shutil.copy(find_controller_file(name), tmp_path) for name in PAIRS["PointGoal1"]]
    beside, out = tmp_path / "lookahead.safetensors", tmp_path / "out"
    words = ("compare", "PointGoal1", "--controllers", *pair, "--methods", "lookahead", *SHORT, "--out", out)
    done = []
    for networks in ("", "", ".plain"):
        shutil.copyfile(lookahead_file(f"PointGoal1/ppo+ppo-lagrangian{networks}"), beside)
        assert call(capsys, *words, "--set", "lookahead.prefer=0.5")[0] == 0
        done.append({path.name for path in (out / "units").iterdir()})
    assert done[1] == done[0]
    assert len(done[2] - done[1]) == 1


def test_the_page_of_several_networks_has_their_means(tmp_path, capsys):
    published = Path(__file__).parents[2] / "results" / "compare-PointGoal1-seeds"
    code, _, err = call(capsys, "report", published, "-o", tmp_path / "page.html")
    assert (code, err) == (0, "")
    assert "Pairs: return of lookahead" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_run_with_other_settings_is_rejected(folder, capsys):
    code, _, err = call(capsys, "compare", "PointGoal1", "--methods", "paper", *SHORT, "--seed", 4, "--out", folder)
    assert code == 1
    assert "another run of compare: seed 3 there, 4 now" in err


def test_an_offline_switch_is_trained_once(tmp_path, capsys):
    words = ["--methods", "offline", *SHORT, "--set", "offline.episodes=9", "--set", "offline.every=2"]
    words += ["--set", "offline.ridge=0.1"]
    code, out, _ = call(capsys, "compare", "PointGoal1", *words, "--out", tmp_path / "a")
    assert code == 0
    assert "offline" in out
    assert len(list((tmp_path / "a" / "units").iterdir())) == 4


def test_wrong_input_of_compare_is_reported(tmp_path, capsys):
    out = ("--out", tmp_path / "none")
    code, _, err = call(capsys, "compare", "PointGoal1", "--methods", "papre", *out)
    assert code == 1
    assert 'did you mean "paper"' in err
    code, _, err = call(capsys, "compare", "PointGaol1", *out)
    assert code == 1
    assert 'did you mean "PointGoal1"' in err
    code, _, err = call(capsys, "compare", "CarGoal2", *out)
    assert code == 1
    assert "--controllers" in err
    code, _, err = call(capsys, "compare", "PointGoal1", "--set", "ceiling=3", *out)
    assert code == 1
    assert "METHOD.NAME=VALUE" in err
    code, _, err = call(capsys, "compare", "PointGoal1", "--engine", "rey", *out)
    assert code == 1
    assert 'did you mean "ray"' in err
    code, _, err = call(capsys, "compare", "CarButton1", "--controllers", "PointGoal1/ppo", "PointGoal1/trpo", *out)
    assert code == 1
    assert "Use a controller trained for it" in err
    assert not (tmp_path / "none").exists()


def test_unsupported_methods_are_left_out_or_rejected(tmp_path, capsys):
    words = ["--controllers", "pure-pursuit", "potential-field", *SHORT, "--out", tmp_path / "a"]
    code, _, err = call(capsys, "compare", "PointGoal1", *words, "--methods", "simplex")
    assert code == 1
    assert "simplex needs a performant controller with a cost critic" in err
    assert not (tmp_path / "a").exists()
    small = ["--set", "offline.episodes=9", "--set", "offline.every=2", "--set", "ceiling.horizon=2"]
    small += ["--set", "simulated.horizon=2", "--set", "twin.horizon=2"]
    code, out, err = call(capsys, "compare", "PointGoal1", *words, *small)
    assert code == 0
    for name in ("horizon", "predicted", "simplex"):
        assert f"left out: {name}" in err
        assert name not in out
    assert "paper-previous" in out


def test_methods_are_listed_with_their_parameters(capsys):
    code, out, _ = call(capsys, "compare", "--list")
    assert code == 0
    assert "ceiling.horizon = 60: control steps to look ahead" in out
    assert "paper-previous" in out


@pytest.mark.parametrize("how", ["fails", "stops"])
def test_finished_methods_are_written_when_others_fail(tmp_path, capsys, monkeypatch, how):
    real = units.run_unit

    def run_unit(unit_json, before):
        if b"shared" in unit_json:
            raise ValueError("the wheel came off") if how == "fails" else KeyboardInterrupt
        return real(unit_json, before)

    monkeypatch.setattr(engines, "run_unit", run_unit)
    words = ["compare", "PointGoal1", "--methods", "random-episode", "shared", *SHORT, "--out", tmp_path]
    code, out, err = call(capsys, *words)
    scores = json.loads((tmp_path / "compare.json").read_text())
    assert set(scores["methods"]) == {"performant", "safe", "random-episode"}
    assert (tmp_path / "compare.png").is_file()
    if how == "fails":
        assert code == 1
        assert "the wheel came off" in err
        assert "random-episode" in out
    else:
        assert code == 130
        assert "the same command resumes the run" in err
    monkeypatch.undo()
    code, _, _ = call(capsys, *words)
    assert code == 0
    assert "shared" in json.loads((tmp_path / "compare.json").read_text())["methods"]


def test_nothing_is_written_without_the_two_controllers_alone(tmp_path, capsys, monkeypatch):
    def run_unit(unit_json, before):
        raise ValueError("the wheel came off")

    monkeypatch.setattr(engines, "run_unit", run_unit)
    code, _, err = call(capsys, "compare", "PointGoal1", "--methods", "random", *SHORT, "--out", tmp_path)
    assert code == 1
    assert "the wheel came off" in err
    assert not (tmp_path / "compare.json").exists()
