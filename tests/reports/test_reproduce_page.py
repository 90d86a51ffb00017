"""The page of a reproduction: its verdict, its table and its charts are those of the tables on disk."""

import json
import shutil

import pyarrow.parquet
import pytest

from blendctl.cli import main
from blendctl.errors import FileFormatError
from blendctl.reports import build_report
from blendctl.reports.reproduce_page import reproduce_page
from blendctl.reports.run_dir import look_into
from blendctl.statistics import mean_interval


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce") / "run"
    words = ["reproduce", "--worlds", "PointGoal1", "--data-points", "2", "--episodes", "2", "--steps", "40"]
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--engine", "inline", "--out", str(out)])
    assert stopped.value.code == 0
    return out


@pytest.fixture(scope="module")
def data(folder):
    return reproduce_page(look_into(folder), replays=2)


def test_the_table_is_the_verdicts(folder, data):
    told = json.loads((folder / "verdict.json").read_text())["PointGoal1"]
    assert [row["name"] for row in data["table"]] == ["performant", "safe", "random", "blended"]
    for row in data["table"]:
        mine = told[row["name"]]
        assert row["return"] == [mine["return_mean"], *mine["return_ci95"]]
        assert row["cost"] == [mine["cost_mean"], *mine["cost_ci95"]]
    held = sum(claim["holds"] for claim in told["claims"].values())
    assert data["verdict"].startswith(f"In PointGoal1 {held} of the 4 claims hold")
    assert len(data["claims"]) == 5  # and a word about the loss


def test_charts_follow_the_data_points(folder, data):
    points = pyarrow.parquet.read_table(folder / "points.parquet").to_pandas()
    blended = points[points["role"] == "blended"]
    charts = {chart["title"]: chart for chart in data["charts"]}
    lines = {line["name"]: line for line in charts["Return"]["series"]}
    assert lines["blended"]["x"] == [1, 2]
    assert lines["blended"]["y"] == pytest.approx(blended["return_mean"].tolist(), rel=1e-5)
    assert lines["blended"]["low"] == pytest.approx(blended["return_low"].tolist(), rel=1e-5)
    correct = {line["name"]: line for line in charts["Correct choices"]["series"]}
    assert correct["blended"]["y"] == pytest.approx((100 * blended["correct_ratio"]).tolist(), rel=1e-5)
    assert correct["blended"]["high"] == pytest.approx((100 * blended["correct_ratio_high"]).tolist(), rel=1e-5)
    assert {"Cost", "Average loss under its bound", "Who drove", "What it learned, theta"} < set(charts)


def test_the_page_carries_the_figure_and_how_it_was_made(folder, data):
    assert data["figure"].startswith("data:image/png;base64,")
    facts = dict(data["provenance"]["facts"])
    assert facts["command"].startswith("blendctl reproduce --worlds PointGoal1")
    assert "mujoco" in facts["versions"]
    assert len(build_report(folder)) < 5_000_000


def test_the_replay_is_what_was_driven(folder, data):
    rows = pyarrow.parquet.read_table(folder / "episodes.parquet").to_pylist()
    last = [row for row in rows if row["role"] == "blended" and row["data_point"] == 1]
    assert [told["seed"] for told in data["episodes"]] == [row["seed"] for row in last]
    for told, row in zip(data["episodes"], last, strict=True):
        assert (told["steps"], told["return"], told["cost"]) == (
            row["length"], pytest.approx(row["return"], rel=1e-12), row["cost"],
        )  # fmt: skip
    assert data["scenery"]["kinds"]
    assert data["replay_note"].startswith("PointGoal1, data point 2")


def test_without_its_units_there_is_no_replay(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "published", ignore=shutil.ignore_patterns("units"))
    data = reproduce_page(look_into(tmp_path / "published"), replays=2)
    assert data["episodes"] == []
    assert len(data["table"]) == 4
    assert reproduce_page(look_into(folder), replays=0)["episodes"] == []
    shutil.copytree(folder, tmp_path / "edited")
    about = json.loads((folder / "run.json").read_text())
    about["identity"]["luck"] = 7
    (tmp_path / "edited" / "run.json").write_text(json.dumps(about))
    assert reproduce_page(look_into(tmp_path / "edited"), replays=2)["episodes"] == []


def test_one_that_did_not_end_has_a_banner(folder, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(folder, cut)
    for name in ("verdict.json", "figure.png"):
        (cut / name).unlink()
    data = reproduce_page(look_into(cut), replays=1)
    assert "did not end" in data["banner"][0]
    assert len(data["table"]) == 4  # judged from the episodes there are
    assert data["figure"] is None
    for name in ("points.parquet", "episodes.parquet"):
        (cut / name).unlink()
    assert reproduce_page(look_into(cut), replays=1)["verdict"] == "No data point is finished yet."
    (cut / "points.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileFormatError, match="damaged"):
        build_report(cut)


def test_tables_newer_than_the_verdict_are_what_is_shown(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "on")
    words = ["reproduce", "--worlds", "PointGoal1", "--data-points", "3", "--episodes", "2", "--steps", "40"]
    with pytest.raises(SystemExit):
        main([*words, "--engine", "inline", "--out", str(tmp_path / "on")])
    assert reproduce_page(look_into(tmp_path / "on"), replays=0)["banner"] == []
    shutil.copy(folder / "verdict.json", tmp_path / "on")  # as it was while the third data point was driven
    data = reproduce_page(look_into(tmp_path / "on"), replays=0)
    assert "goes on" in data["banner"][0]
    assert data["charts"][0]["series"][-1]["x"] == [1, 2, 3]
    points = pyarrow.parquet.read_table(tmp_path / "on" / "points.parquet").to_pandas()
    blended = points[points["role"] == "blended"]
    row = next(row for row in data["table"] if row["name"] == "blended")
    assert row["return"][0] == pytest.approx(blended["return_mean"].mean())


def test_bands_over_several_traces_are_those_of_the_traces(tmp_path):
    words = ["reproduce", "--worlds", "PointGoal1", "--data-points", "1", "--episodes", "2", "--steps", "40"]
    with pytest.raises(SystemExit):
        main([*words, "--traces", "3", "--engine", "inline", "--out", str(tmp_path)])
    points = pyarrow.parquet.read_table(tmp_path / "points.parquet").to_pandas()
    data = reproduce_page(look_into(tmp_path), replays=0)
    means = points[points["role"] == "blended"]["return_mean"].to_numpy()
    line = next(line for line in data["charts"][0]["series"] if line["name"] == "blended")
    assert [line["low"][0], line["high"][0]] == pytest.approx(mean_interval(means), rel=1e-5)
    row = next(row for row in data["table"] if row["name"] == "blended")
    assert row["loss"] == pytest.approx(points[points["role"] == "blended"]["max_loss_mean"].mean())


def test_another_experiment_has_no_page(folder, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"experiment": "compare", "identity": {}}))
    with pytest.raises(FileFormatError, match="no output of"):
        build_report(tmp_path)
