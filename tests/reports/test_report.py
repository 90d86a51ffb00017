"""The report of a blend as data and as a file: complete, cut short, damaged, foreign, with malicious names."""

import base64
import gzip
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.dataset
import pytest
from short_drive import blend_to

from blendctl.blender import Blender, run
from blendctl.cli import main
from blendctl.errors import FileFormatError, InputError
from blendctl.reports import build_report
from blendctl.reports.blend_page import BLEND_PAGE
from blendctl.reports.blend_run import BlendRun, read_blend_run, true_loss
from blendctl.reports.blend_verdict import verdict_sentence
from blendctl.reports.page_warnings import blend_warnings, explained_by_context
from blendctl.reports.run_data import read_stages
from blendctl.reports.run_dir import open_run_dir


def page_of(folder, *, replays=10):
    return BLEND_PAGE.data(read_blend_run(open_run_dir(folder), replays=replays))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return blend_to(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def data(folder):
    return page_of(folder)


def columns(data):
    """Unpack the columns of the replay, as the page does."""
    replay = data.section("replay")
    raw = gzip.decompress(base64.b64decode(replay.blob))
    kinds = {"f": "<f4", "i": "<i4", "b": "i1"}
    out = {}
    for name, (kind, start, count) in replay.columns.items():
        if kind == "t":
            out[name] = json.loads(raw[start : start + count])
            continue
        size = np.dtype(kinds[kind]).itemsize
        planes = np.frombuffer(raw, np.uint8, count * size, start).reshape(size, count)
        out[name] = np.ascontiguousarray(planes.T).view(kinds[kind])[:, 0]
    return out


def test_the_replay_equals_the_record(folder, data):
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
    reasons = [packed["reason"][i] for i in packed["reason#"]]
    recorded = table["reason"].to_pylist()
    assert all(one == other for one, other in zip(reasons, recorded, strict=True) if other is not None)
    assert all(text.startswith(("bold: ", "wary: ")) for text in reasons)
    episodes = data.section("replay").episodes
    assert [episode.steps for episode in episodes] == [150, 150]
    assert [episode.seed for episode in episodes] == [8, 9]
    assert packed["start"].tolist() == [*range(1, 151)] * 2


def test_the_table_and_the_verdict_agree_with_the_summary(folder, data):
    summary = json.loads((folder / "summary.json").read_text())
    rows = data.section("table").rows
    assert [row.name for row in rows] == ["bold", "wary", "mixing", "blended"]
    bold = summary["alone"]["bold"]
    assert rows[0].returns == (bold["return_mean"], *bold["return_ci95"])
    assert rows[3].costs == (summary["cost_mean"], *summary["cost_ci95"])
    assert data.section("table").judged == summary["judged"] == "the next 20 ms"
    verdict = data.headline.verdict
    assert verdict == verdict_sentence(summary, ["bold", "wary"])
    assert verdict.count(".") - len(re.findall(r"\d\.\d", verdict)) == 1  # one sentence
    facts = dict(data.section("provenance").facts)
    assert facts["command"].startswith("blendctl blend PointGoal1 ")
    assert " --controllers pure-pursuit potential-field " in facts["command"]
    assert facts["seeds"] == "8 to 9"
    assert "mujoco" in facts["versions"]


def test_moments_cover_all_costs_of_the_record(folder, data):
    table = pyarrow.dataset.dataset(folder / "record").to_table().to_pandas()
    moments = data.section("moments")
    costs = [moment.cost for moment in moments]
    assert sum(costs) == table["cost"].sum() > 0
    assert costs == sorted(costs, reverse=True)
    for moment in moments:
        rows = table[table["episode"] == moment.episode]["cost"].to_numpy()
        inside = rows[moment.step - 1 : moment.until]
        assert inside.sum() == moment.cost
        assert inside[0] > 0 < inside[-1]


def test_charts_end_at_the_values_of_the_summary(folder, data):
    summary = json.loads((folder / "summary.json").read_text())
    charts = {chart.title: chart for chart in data.section("charts")}
    assert list(charts) == [
        "Return", "Cost", "Correct choices, judged by the next 20 ms", "Average loss in the next 20 ms, and its bound",
        "Who drove", "Learned weights (theta)",
    ]  # fmt: skip
    correct, loss = list(charts)[2:4]
    assert charts["Return"].series[-1].y == pytest.approx(summary["returns"], rel=1e-5)
    assert charts[correct].series[0].y[-1] == pytest.approx(100 * summary["correct_ratio"], rel=1e-4)
    bound, loss = charts[loss].series
    assert loss.y[-1] == pytest.approx(summary["average_loss"], rel=1e-4)
    assert bound.y[-1] == pytest.approx(summary["loss_bound"], rel=1e-4)
    stages = read_stages(open_run_dir(folder).record)
    assert np.nanmean(true_loss(stages)) == pytest.approx(summary["average_loss"])


def test_a_run_that_crashed_gets_a_page_with_a_banner(folder, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(folder, cut)
    (cut / "summary.json").unlink()
    (cut / "bandit.safetensors").unlink()
    for part in sorted((cut / "track").glob("*"))[1:]:
        part.unlink()
    data = page_of(cut)
    assert any("did not finish" in line for line in data.headline.banner)
    names = ["bold", "wary", "mixing", "blended"]  # as of run.json
    assert [row.name for row in data.section("table").rows] == names
    assert [episode.pose_at for episode in data.section("replay").episodes] == [0, None]
    assert dict(data.section("provenance").facts)["command"]
    assert build_report(cut).startswith("<!doctype html>")


def test_a_crash_within_an_episode_keeps_what_was_written(folder, tmp_path):
    cut = tmp_path / "cut"
    (cut / "record").mkdir(parents=True)
    shutil.copy(folder / "run.json", cut)
    table = pyarrow.dataset.dataset(folder / "record").to_table().slice(0, 100)
    pyarrow.parquet.write_table(table, cut / "record" / "part-000001.parquet")
    data = page_of(cut)
    assert "0 of 2 episodes ended; 100 stages were recorded." in data.headline.banner
    assert data.headline.verdict.startswith("Before the first episode ended: return ")
    assert data.section("replay").episodes[0].steps == 100
    assert not data.section("replay").episodes[0].complete


def test_damaged_files_are_left_out_and_named_in_the_banner(folder, tmp_path):
    bad = tmp_path / "bad"
    shutil.copytree(folder, bad)
    part = next((bad / "track").glob("*"))
    part.write_bytes(part.read_bytes()[:200])
    data = page_of(bad)
    assert f"Unreadable files of the track were left out: {part.name}." in data.headline.banner
    for part in (bad / "record").glob("*"):
        part.write_bytes(b"PAR1 no longer")
    with pytest.raises(FileFormatError, match="none of the 1 files of the record"):
        build_report(bad)


def test_a_foreign_directory_is_refused_in_one_line(tmp_path, capsys):
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"not an output of .*actually it holds: holiday.jpg"):
        build_report(tmp_path)
    with pytest.raises(InputError, match="is not a directory"):
        build_report(tmp_path / "nowhere")
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(FileFormatError, match="damaged or not JSON"):
        build_report(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["report", str(tmp_path / "nowhere")])
    assert stopped.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_record_from_python_in_any_world_has_a_report_without_a_map(tmp_path):
    controllers = [lambda o: np.array(0), lambda o: np.array(1)]
    options = {"objectives": ["reward"], "record": tmp_path / "record", "fallback": "left", "seed": 0}
    with Blender(controllers, ["left", "right"], **options) as blender:
        for _ in run("CartPole-v1", blender, episodes=2, seed=0):
            pass
    data = page_of(tmp_path)
    replay = data.section("replay")
    assert replay.scenery is None
    assert data.headline.title == "Recorded run"
    assert [row.name for row in data.section("table").rows] == ["blended"]
    assert sum(columns(data)["reward"]) == sum(episode.steps for episode in replay.episodes)


def test_stages_of_several_steps_are_laid_out_by_step(tmp_path):
    folder = blend_to(tmp_path, "--hold", 7, "--no-alone", "--no-counterfactual", episodes=1, steps=30)
    data = page_of(folder)
    assert columns(data)["start"].tolist() == [1, 8, 15, 22, 29]
    assert data.section("replay").episodes[0].steps == len(columns(data)["reward"]) == 30
    assert not any(chart.title.startswith("Correct choices") for chart in data.section("charts"))


def test_only_the_costliest_episodes_are_replayed(folder):
    data = page_of(folder, replays=1)
    table = pyarrow.dataset.dataset(folder / "record").to_table().to_pandas()
    replay = data.section("replay")
    assert [episode.number for episode in replay.episodes] == [table.groupby("episode")["cost"].sum().idxmax()]
    assert replay.note == "The 1 costliest of 2 episodes."


def test_names_with_html_stay_text(tmp_path):
    wicked = ('<img src=x onerror="alert(1)">', "</script><script>alert(2)</script>")
    folder = blend_to(tmp_path, "--no-alone", names=wicked, episodes=1, steps=20)
    page = build_report(folder)
    assert "<img src=x" not in page
    assert page.count("<script") == 2  # data and program
    assert json.loads(page.split('id="data">')[1].split("</script>")[0])["names"] == list(wicked)


def test_the_page_loads_nothing_from_the_network(folder):
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
        out, err = capsys.readouterr()
        assert stopped.value.code == 0, err
        assert "rec.v1.html" in out
        assert page.read_text().startswith("<!doctype html>")
        page.unlink()
    with pytest.raises(SystemExit) as stopped:
        main(["explain", str(bare_record), "--step", "5"])
    assert stopped.value.code == 0
    assert "stage 5, step 5, episode 0: " in capsys.readouterr().out
    assert {file.suffix for file in bare_record.iterdir()} == {".parquet"}
    assert len(pyarrow.dataset.dataset(bare_record).to_table()) == 30


def test_a_context_that_explains_little_is_a_warning(folder):
    run = read_blend_run(open_run_dir(folder), replays=0)
    shares = explained_by_context(run.stages)
    assert set(shares) == {"reward", "-cost"}
    warnings = blend_warnings(run)
    for name, share in shares.items():
        part = f"{100 * share:.0f}% of the {name.removeprefix('-')}"
        warning = f"The context explains {part}; do not expect the blend to help."
        assert (warning in warnings) == (share < 0.3)
    card = {"context": {"r2": [{"horizon": 1, "cost_blending": 0.05, "reward_blending": 0.9}]}}
    described = replace(run.folder, about={"cards": {"bold": card}})
    summary = {"failures": {"bold": 3}, "rescaled_features": 7, "budget_warning": "a budget is small"}
    assert blend_warnings(BlendRun(described, None, None, summary, None)) == [
        "A budget is small.",
        "bold failed 3 times and was benched.",
        "According to its card, the context of bold explains 5% of the cost; do not expect the blend to help.",
        "7 feature vectors were longer than the learner assumes and were rescaled; "
        "the bound on the loss does not account for this.",
    ]
