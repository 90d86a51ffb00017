"""`blendctl reproduce`: from the command to figure, tables and verdict."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from PIL import Image

from blendctl.cli import command_line
from blendctl.errors import InputError, StateError

SMALL = ("--worlds", "PointGoal1", "--data-points", 2, "--episodes", 2, "--steps", 12, "--engine", "inline")


def call(*args):
    result = CliRunner().invoke(command_line, ["reproduce", *map(str, args)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduce") / "out"
    return out, call(*SMALL, "--out", out)


def test_one_command_writes_figure_tables_and_verdict(finished):
    out, result = finished
    assert result.exit_code == 0
    points, episodes = pq.read_table(out / "points.parquet"), pq.read_table(out / "episodes.parquet")
    assert (points.num_rows, episodes.num_rows) == (8, 16)
    summary = json.loads((out / "verdict.json").read_text())
    assert summary["PointGoal1"]["claims"]["correct_above_random"].keys() >= {"holds", "ci95", "confidence"}
    with Image.open(out / "figure.png") as figure:
        assert min(figure.size) > 600
    assert (out / "figure.pdf").read_bytes().startswith(b"%PDF")
    assert b"<svg" in (out / "figure.svg").read_bytes()
    session = json.loads((out / "run.json").read_text())["sessions"][0]
    assert "reproduce --worlds PointGoal1 --data-points 2" in session["command"]
    assert session["milliseconds_per_iteration"]["PointGoal1"]["paper"] == 2.0


def test_the_verdict_is_printed_in_plain_words(finished):
    text = finished[1].stdout
    assert "the blended controller" in text
    assert "those of random switching" in text
    assert "the paper reports 2 ms" in text


def test_a_second_call_runs_nothing_and_has_the_same_verdict(finished, tmp_path):
    out, _ = finished
    before = (out / "points.parquet").read_bytes()
    verdict = tmp_path / "verdict.json"
    result = call(*SMALL, "--out", out, "--json", verdict)
    assert result.exit_code == 0
    assert (out / "points.parquet").read_bytes() == before
    assert json.loads(verdict.read_text()) == json.loads((out / "verdict.json").read_text())


def test_another_seed_or_pair_in_the_same_directory_is_rejected(finished):
    out, _ = finished
    with pytest.raises(InputError, match="seed 0 there, 1 now"):
        call(*SMALL, "--seed", 1, "--out", out)
    swapped = ("PointGoal1/ppo-lagrangian", "PointGoal1/ppo")
    with pytest.raises(InputError, match=r'"PointGoal1/ppo", .* there, \["PointGoal1/ppo-lagrangian"'):
        call(*SMALL, "--controllers", *swapped, "--out", out)


def test_changed_weights_under_the_same_name_are_rejected(tmp_path):
    pair = [tmp_path / "one.py", tmp_path / "two.py"]
    for path in pair:
        path.write_text("def drive(observation): return [0.0, 0.0]\n")
    words = (*SMALL, "--controllers", *[f"{path}:drive" for path in pair], "--features", "one-hot")
    out = tmp_path / "out"
    call(*words, "--out", out)
    before = (out / "points.parquet").read_bytes()
    pair[0].write_text("def drive(observation): return [1.0, 0.0]\n")
    with pytest.raises(InputError, match=r"PointGoal1 digests .* there, .* now"):
        call(*words, "--out", out)
    assert (out / "points.parquet").read_bytes() == before


def test_wrong_options_are_reported_before_anything_is_written(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InputError, match='did you mean "PointGoal1"'):
        call("--worlds", "PointGaol1", "--out", out)
    with pytest.raises(InputError, match="--controllers are for a single world"):
        call("--controllers", "pure-pursuit", "stop", "--out", out)
    with pytest.raises(InputError, match="regularization must be >= max"):
        call("--worlds", "PointGoal1", "--regularization", 0.5, "--out", out)
    with pytest.raises(InputError, match="has no context networks"):
        call(*SMALL, "--controllers", "pure-pursuit", "stop", "--out", out)
    with pytest.raises(InputError, match="there is no engine"):
        call(*SMALL, "--engine", "threads", "--out", out)
    assert not out.exists()


def test_ctrl_c_keeps_finished_units_and_prints_how_to_resume(tmp_path):
    script = (
        "import os, signal\n"
        "from blendctl.experiments import reproduce\n"
        "write = reproduce.Reproduction._write_tables\n"
        "def once(self):\n"
        "    write(self)\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "reproduce.Reproduction._write_tables = once\n"
        "from blendctl.cli import main\n"
        f"main(['reproduce', *{[str(word) for word in SMALL]!r}, '--out', {str(tmp_path)!r}])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 130, done.stderr
    assert "the same command resumes the run" in done.stderr
    assert f"--out {tmp_path}" in done.stderr
    assert len(list((tmp_path / "units").iterdir())) == 1
    assert "PointGoal1" in json.loads((tmp_path / "verdict.json").read_text())
    assert (tmp_path / "figure.png").is_file()
    assert json.loads((tmp_path / "run.json").read_text())["sessions"][0]["seconds"] > 0


def test_a_run_without_finished_units_only_reports_the_error(tmp_path, monkeypatch, capsys):
    def lost(*args, **kwargs):
        raise StateError("the cluster is gone")
        yield

    monkeypatch.setattr("blendctl.experiments.reproduce.run_units", lost)
    with pytest.raises(StateError, match="the cluster is gone"):
        call(*SMALL, "--out", tmp_path)
    assert "wrote" not in capsys.readouterr().out
    assert not (tmp_path / "figure.png").exists()
