"""The report as data and as a file: complete, cut short, damaged, foreign, and with names that would do harm."""

import base64
import gzip
import json
import re
import shutil

import numpy as np
import pyarrow.dataset
import pytest
from short_drive import blend_to

from blendctl.blender import Blender, run
from blendctl.cli import main
from blendctl.errors import FileFormatError, InputError
from blendctl.reports import build_report
from blendctl.reports.blend_page import blend_page
from blendctl.reports.blend_verdict import verdict_of
from blendctl.reports.charts import true_loss
from blendctl.reports.page_warnings import cautions_of, explained_by_context
from blendctl.reports.run_data import read_stages
from blendctl.reports.run_dir import look_into


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_to(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def data(folder):
    return blend_page(look_into(folder), replays=10)


def columns(data):
    """Undo the packing, as the page does."""
    raw = gzip.decompress(base64.b64decode(data["blob"]))
    kinds = {"f": "<f4", "i": "<i4", "b": "i1"}
    out = {}
    for name, (kind, start, count) in data["columns"].items():
        if kind == "t":
            out[name] = json.loads(raw[start : start + count])
            continue
        size = np.dtype(kinds[kind]).itemsize
        planes = np.frombuffer(raw, np.uint8, count * size, start).reshape(size, count)
        out[name] = np.ascontiguousarray(planes.T).view(kinds[kind])[:, 0]
    return out


def test_the_page_holds_what_the_record_holds(folder, data):
    packed, table = columns(data), pyarrow.dataset.dataset(folder / "record").to_table()
    assert packed["arm"].tolist() == table["arm"].to_pylist()
    assert packed["reward"] == pytest.approx(table["reward"].to_numpy(), abs=1e-7)
    assert packed["cost"].tolist() == table["cost"].to_pylist()
    for name, column in (
        ("loss_1", "loss_wary"),
        ("ucb_0_1", "ucb_bold_minus_cost"),
        ("estimate_1_0", "estimate_wary_reward"),
    ):
        assert packed[name] == pytest.approx(table[column].to_numpy(), rel=3e-4, abs=1e-12)
    told = [packed["reason"][i] for i in packed["reason#"]]
    kept = table["reason"].to_pylist()
    assert all(one == other for one, other in zip(told, kept, strict=True) if other is not None)
    assert all(text.startswith(("bold: ", "wary: ")) for text in told)
    assert [episode["steps"] for episode in data["episodes"]] == [150, 150]
    assert [episode["seed"] for episode in data["episodes"]] == [8, 9]
    assert packed["start"].tolist() == [*range(1, 151)] * 2


def test_the_table_and_the_verdict_are_those_of_the_summary(folder, data):
    summary = json.loads((folder / "summary.json").read_text())
    assert [row["name"] for row in data["table"]] == ["bold", "wary", "blended"]
    assert data["table"][0]["return"] == [
        summary["alone"]["bold"]["return_mean"],
        *summary["alone"]["bold"]["return_ci95"],
    ]
    assert data["table"][2]["cost"] == [summary["cost_mean"], *summary["cost_ci95"]]
    assert data["verdict"] == verdict_of(summary, ["bold", "wary"])
    assert data["verdict"].count(".") - len(re.findall(r"\d\.\d", data["verdict"])) == 1  # one sentence
    facts = dict(data["provenance"]["facts"])
    assert facts["command"].startswith("blendctl blend PointGoal1 --controllers pure-pursuit potential-field")
    assert facts["seeds"] == "8 to 9"
    assert "mujoco" in facts["versions"]


def test_moments_are_the_costs_of_the_record(folder, data):
    table = pyarrow.dataset.dataset(folder / "record").to_table().to_pandas()
    assert sum(moment["cost"] for moment in data["moments"]) == table["cost"].sum() > 0
    costs = [moment["cost"] for moment in data["moments"]]
    assert costs == sorted(costs, reverse=True)
    for moment in data["moments"]:
        rows = table[table["episode"] == moment["episode"]]["cost"].to_numpy()
        inside = rows[moment["step"] - 1 : moment["until"]]
        assert inside.sum() == moment["cost"]
        assert inside[0] > 0 < inside[-1]


def test_charts_end_where_the_summary_does(folder, data):
    summary = json.loads((folder / "summary.json").read_text())
    charts = {chart["title"]: chart for chart in data["charts"]}
    assert list(charts) == [
        "Return", "Cost", "Correct choices", "Average loss under its bound", "Who drove", "What it learned, theta",
    ]  # fmt: skip
    assert charts["Return"]["series"][-1]["y"] == pytest.approx(summary["returns"], rel=1e-5)
    assert charts["Correct choices"]["series"][0]["y"][-1] == pytest.approx(100 * summary["correct_ratio"], rel=1e-4)
    bound, loss = charts["Average loss under its bound"]["series"]
    assert loss["y"][-1] == pytest.approx(summary["average_loss"], rel=1e-4)
    assert bound["y"][-1] == pytest.approx(summary["loss_bound"], rel=1e-4)
    drive = read_stages(look_into(folder).record)
    assert np.nanmean(true_loss(drive)) == pytest.approx(summary["average_loss"])


def test_a_run_that_crashed_gets_a_page_with_a_banner(folder, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(folder, cut)
    (cut / "summary.json").unlink()
    (cut / "bandit.safetensors").unlink()
    for part in sorted((cut / "track").glob("*"))[1:]:
        part.unlink()
    data = blend_page(look_into(cut), replays=10)
    assert any("did not end" in line for line in data["banner"])
    assert [row["name"] for row in data["table"]] == ["bold", "wary", "blended"]  # what was written before
    assert [episode["pose_at"] for episode in data["episodes"]] == [0, None]
    assert dict(data["provenance"]["facts"])["command"]
    assert build_report(cut).startswith("<!doctype html>")


def test_a_crash_within_an_episode_leaves_what_was_written(folder, tmp_path):
    cut = tmp_path / "cut"
    (cut / "record").mkdir(parents=True)
    shutil.copy(folder / "run.json", cut)
    table = pyarrow.dataset.dataset(folder / "record").to_table().slice(0, 100)
    pyarrow.parquet.write_table(table, cut / "record" / "part-000001.parquet")
    data = blend_page(look_into(cut), replays=10)
    assert "0 of 2 episodes ended, 100 stages were recorded." in data["banner"]
    assert data["verdict"].startswith("Before its first episode ended the blend brought")
    assert data["episodes"][0]["steps"] == 100
    assert not data["episodes"][0]["complete"]


def test_damaged_files_are_left_out_and_told(folder, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(folder, bad)
    part = next((bad / "track").glob("*"))
    part.write_bytes(part.read_bytes()[:200])
    data = blend_page(look_into(bad), replays=10)
    assert f"Damaged files of the track were left out: {part.name}." in data["banner"]
    for part in (bad / "record").glob("*"):
        part.write_bytes(b"PAR1 no longer")
    with pytest.raises(FileFormatError, match="none of the 1 files of the record"):
        build_report(bad)


def test_a_foreign_directory_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"no output of .*actually it holds: holiday.jpg"):
        build_report(tmp_path)
    with pytest.raises(InputError, match="is no directory"):
        build_report(tmp_path / "nowhere")
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(FileFormatError, match="cannot be read as JSON"):
        build_report(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(tmp_path / "nowhere")])
    assert stopped.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_record_from_python_in_any_world_has_a_report_without_a_map(tmp_path):
    controllers = [lambda o: np.array(0), lambda o: np.array(1)]
    with Blender(controllers, ["left", "right"], record=tmp_path / "record", fallback="left", seed=0) as blender:
        for _ in run("CartPole-v1", blender, episodes=2, seed=0):
            pass
    data = blend_page(look_into(tmp_path), replays=10)
    assert data["scenery"] is None
    assert data["title"] == "A drive"
    assert [row["name"] for row in data["table"]] == ["blended"]
    assert sum(columns(data)["reward"]) == sum(episode["steps"] for episode in data["episodes"])


def test_stages_of_several_steps_are_laid_out_by_step(tmp_path):
    folder = blend_to(tmp_path, "--hold", 7, "--no-alone", "--no-counterfactual", episodes=1, steps=30)
    data = blend_page(look_into(folder), replays=10)
    assert columns(data)["start"].tolist() == [1, 8, 15, 22, 29]
    assert data["episodes"][0]["steps"] == len(columns(data)["reward"]) == 30
    assert not any(chart["title"] == "Correct choices" for chart in data["charts"])


def test_only_so_many_episodes_are_replayed_and_the_costliest(folder):
    data = blend_page(look_into(folder), replays=1)
    table = pyarrow.dataset.dataset(folder / "record").to_table().to_pandas()
    assert [episode["number"] for episode in data["episodes"]] == [table.groupby("episode")["cost"].sum().idxmax()]
    assert data["left_out"] == 1


def test_names_with_html_in_them_stay_text(tmp_path):
    wicked = ('<img src=x onerror="alert(1)">', "</script><script>alert(2)</script>")
    folder = blend_to(tmp_path, "--no-alone", names=wicked, episodes=1, steps=20)
    page = build_report(folder)
    assert "<img src=x" not in page
    assert page.count("<script") == 2  # data and program
    assert json.loads(page.split('id="data">')[1].split("</script>")[0])["names"] == list(wicked)


def test_nothing_comes_from_elsewhere(folder):
    page = build_report(folder)
    page = page.split('id="data">')[0] + page.split('id="data">')[1].split("</script>", 1)[1]
    addresses = set(re.findall(r"https?://[^\s\"'`)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a vocabulary, never fetched
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_the_command_writes_the_file_it_names(folder, tmp_path, capsys):
    for words, file in (
        (["-o", str(tmp_path / "r.html")], tmp_path / "r.html"),
        ([], folder / "report.html"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(["report", str(folder), *words])
        assert stopped.value.code == 0
        assert f"wrote {file}" in capsys.readouterr().out
        assert file.read_text().startswith("<!doctype html>")


@pytest.fixture
def bare_record(tmp_path):
    """A record as `Blender(record=...)` leaves it: no output directory around it; the name has a dot."""
    path = tmp_path / "rec.v1"
    with Blender([lambda o: [1.0], lambda o: [0.2]], ["fast", "slow"], record=path, seed=0) as blender:
        for step in range(30):
            blender.act(np.zeros(3))
            blender.observe(reward=0.1, cost=0.0, done=step == 29)
    return path


def test_the_page_of_a_bare_record_goes_beside_it_and_the_record_stays_readable(bare_record, capsys, monkeypatch):
    page = bare_record.with_name("rec.v1.html")
    for folder, words in (
        (bare_record.parent, "rec.v1"),
        (bare_record.parent, "rec.v1/"),
        (bare_record, "."),
    ):
        monkeypatch.chdir(folder)
        with pytest.raises(SystemExit) as stopped:
            main(["report", words])
        told = capsys.readouterr()
        assert stopped.value.code == 0, told.err
        assert "rec.v1.html" in told.out
        assert page.read_text().startswith("<!doctype html>")
        page.unlink()
    with pytest.raises(SystemExit) as stopped:
        main(["explain", str(bare_record), "--step", "5"])
    assert stopped.value.code == 0
    assert "stage 5, step 5, episode 0: " in capsys.readouterr().out
    assert {file.suffix for file in bare_record.iterdir()} == {".parquet"}
    assert len(pyarrow.dataset.dataset(bare_record).to_table()) == 30


def test_a_context_that_explains_little_is_told(folder):
    drive = read_stages(look_into(folder).record)
    shares = explained_by_context(drive)
    assert set(shares) == {"reward", "-cost"}
    cautions = cautions_of({"episodes": 2}, drive, {})
    for name, share in shares.items():
        part = f"{100 * share:.0f}% of the {name.removeprefix('-')}"
        told = f"The context explains {part}; do not expect the blend to help."
        assert (told in cautions) == (share < 0.3)
    card = {"context": {"r2": [{"horizon": 1, "cost_blending": 0.05, "reward_blending": 0.9}]}}
    told = cautions_of({"failures": {"bold": 3}, "rescaled_features": 7}, None, {"bold": card})
    assert told == [
        "bold failed 3 times and was benched.",
        "By its card, the context of bold explains 5% of the cost; do not expect the blend to help.",
        "7 feature vectors were longer than the learner’s bound and were shortened to it; "
        "the bound on the loss assumes that they fit.",
    ]


@pytest.mark.parametrize(
    ("blend", "bold", "words"),
    [
        ([(10.0, 1.0)] * 4, [(10.0, 9.0)] * 4, "about as much return as bold (10.0 against 10.0)"),
        ([(10.0, 1.0), (12.0, 2.0)], [(3.0, 9.0), (2.9, 9.5)], "a return not shown to differ from bold’s"),
        ([(10.0, 1.0), (10.1, 1.0)], [(3.0, 9.0), (3.1, 9.0)], "more return than bold"),
        ([(1.0, 20.0), (1.1, 20.0)], [(3.0, 9.0), (3.2, 9.0)], "at a higher cost than wary"),
        ([(1.0, 20.0), (1.1, 20.0)], [(3.0, 9.0), (3.2, 9.0)], "more than bold’s 9.0."),
    ],
)
def test_the_verdict_says_only_what_the_episodes_show(blend, bold, words):
    def sums(rows):
        returns, costs = zip(*rows, strict=True)
        return {
            "episodes": len(rows), "returns": list(returns), "costs": list(costs),
            "return_mean": np.mean(returns), "cost_mean": np.mean(costs),
        }  # fmt: skip

    wary = sums([(5.0, 1.0 + 0.1 * i) for i in range(len(blend))])
    told = sums(blend) | {"alone": {"bold": sums(bold), "wary": wary}}
    assert words in verdict_of(told, ["bold", "wary"])
