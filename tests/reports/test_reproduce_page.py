"""The page of a reproduction: its verdict, its table and its charts agree with the tables on disk."""

import json
import shutil

import pyarrow.parquet
import pytest

from blendctl.cli import main
from blendctl.errors import FileFormatError
from blendctl.reports import build_report
from blendctl.reports.reproduce_page import REPRODUCE_PAGE
from blendctl.reports.reproduce_run import read_reproduce_run
from blendctl.reports.run_dir import open_run_dir
from blendctl.statistics import mean_interval


def page_of(folder, *, replays):
    return REPRODUCE_PAGE.data(read_reproduce_run(open_run_dir(folder), replays=replays))


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
    return page_of(folder, replays=2)


def test_the_table_agrees_with_the_verdict(folder, data):
    verdict = json.loads((folder / "verdict.json").read_text())["PointGoal1"]
    rows = data.section("table").rows
    assert [row.name for row in rows] == ["performant", "safe", "random", "blended"]
    for row in rows:
        role = verdict[row.name]
        assert row.returns == (role["return_mean"], *role["return_ci95"])
        assert row.costs == (role["cost_mean"], *role["cost_ci95"])
    held = sum(claim["holds"] for claim in verdict["claims"].values())
    assert data.headline.verdict.startswith(f"In PointGoal1, {held} of the paper’s 4 claims hold")
    assert len(data.headline.claims) == 5  # the fifth is about the loss


def test_charts_follow_the_data_points(folder, data):
    points = pyarrow.parquet.read_table(folder / "points.parquet").to_pandas()
    blended = points[points["role"] == "blended"]
    charts = {chart.title: chart for chart in data.section("charts")}
    lines = {line.name: line for line in charts["Return"].series}
    assert lines["blended"].x == [1, 2]
    assert lines["blended"].y == pytest.approx(blended["return_mean"].tolist(), rel=1e-5)
    assert lines["blended"].low == pytest.approx(blended["return_low"].tolist(), rel=1e-5)
    correct = {line.name: line for line in charts["Correct choices"].series}
    assert correct["blended"].y == pytest.approx((100 * blended["correct_ratio"]).tolist(), rel=1e-5)
    assert correct["blended"].high == pytest.approx((100 * blended["correct_ratio_high"]).tolist(), rel=1e-5)
    assert {"Cost", "Average loss and its bound", "Who drove", "Learned weights (theta)"} < set(charts)


def test_the_page_contains_the_figure_and_its_provenance(folder, data):
    assert data.section("figure").source.startswith("data:image/png;base64,")
    facts = dict(data.section("provenance").facts)
    assert facts["command"].startswith("blendctl reproduce --worlds PointGoal1")
    assert "mujoco" in facts["versions"]
    assert len(build_report(folder)) < 5_000_000


def test_the_replay_equals_the_experiment(folder, data):
    rows = pyarrow.parquet.read_table(folder / "episodes.parquet").to_pylist()
    last = [row for row in rows if row["role"] == "blended" and row["data_point"] == 1]
    replay = data.section("replay")
    assert [episode.seed for episode in replay.episodes] == [row["seed"] for row in last]
    recorded = read_reproduce_run(open_run_dir(folder), replays=2).recording.episodes
    for sums, row in zip(recorded, last, strict=True):
        assert (sums.steps, sums.total_return, sums.cost) == (
            row["length"], pytest.approx(row["return"], rel=1e-12), row["cost"],
        )  # fmt: skip
    assert replay.scenery["kinds"]
    assert replay.note.startswith("PointGoal1, data point 2")


def test_without_its_units_there_is_no_replay(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "published", ignore=shutil.ignore_patterns("units"))
    data = page_of(tmp_path / "published", replays=2)
    assert data.section("replay") is None
    assert len(data.section("table").rows) == 4
    assert page_of(folder, replays=0).section("replay") is None
    shutil.copytree(folder, tmp_path / "edited")
    about = json.loads((folder / "run.json").read_text())
    about["identity"]["luck"] = 7
    (tmp_path / "edited" / "run.json").write_text(json.dumps(about))
    assert page_of(tmp_path / "edited", replays=2).section("replay") is None


def test_an_unfinished_experiment_has_a_banner(folder, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(folder, cut)
    for name in ("verdict.json", "figure.png"):
        (cut / name).unlink()
    data = page_of(cut, replays=1)
    assert "has not finished" in data.headline.banner[0]
    assert len(data.section("table").rows) == 4  # from the episodes that exist
    assert data.section("figure") is None
    for name in ("points.parquet", "episodes.parquet"):
        (cut / name).unlink()
    assert page_of(cut, replays=1).headline.verdict == "No data point is finished yet."
    (cut / "points.parquet").write_bytes(b"PAR1")
    with pytest.raises(FileFormatError, match="damaged"):
        build_report(cut)


def test_tables_newer_than_the_verdict_take_precedence(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "on")
    words = ["reproduce", "--worlds", "PointGoal1", "--data-points", "3", "--episodes", "2", "--steps", "40"]
    with pytest.raises(SystemExit):
        main([*words, "--engine", "inline", "--out", str(tmp_path / "on")])
    assert page_of(tmp_path / "on", replays=0).headline.banner == []
    shutil.copy(folder / "verdict.json", tmp_path / "on")  # as it was while the third data point was driven
    data = page_of(tmp_path / "on", replays=0)
    assert "has not finished" in data.headline.banner[0]
    assert data.section("charts")[0].series[-1].x == [1, 2, 3]
    points = pyarrow.parquet.read_table(tmp_path / "on" / "points.parquet").to_pandas()
    blended = points[points["role"] == "blended"]
    row = next(row for row in data.section("table").rows if row.name == "blended")
    assert row.returns[0] == pytest.approx(blended["return_mean"].mean())


def test_bands_are_intervals_over_traces(tmp_path):
    words = ["reproduce", "--worlds", "PointGoal1", "--data-points", "1", "--episodes", "2", "--steps", "40"]
    with pytest.raises(SystemExit):
        main([*words, "--traces", "3", "--engine", "inline", "--out", str(tmp_path)])
    points = pyarrow.parquet.read_table(tmp_path / "points.parquet").to_pandas()
    data = page_of(tmp_path, replays=0)
    means = points[points["role"] == "blended"]["return_mean"].to_numpy()
    line = next(line for line in data.section("charts")[0].series if line.name == "blended")
    assert [line.low[0], line.high[0]] == pytest.approx(mean_interval(means), rel=1e-5)
    row = next(row for row in data.section("table").rows if row.name == "blended")
    assert row.loss == pytest.approx(points[points["role"] == "blended"]["max_loss_mean"].mean())


def test_another_experiment_has_no_page(folder, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"experiment": "certify", "identity": {}}))
    with pytest.raises(FileFormatError, match="not an output of"):
        build_report(tmp_path)
