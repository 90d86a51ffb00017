"""Train, resume and evaluate controllers in a real world; wrong input is reported."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

from blendctl.cli import command_line, main
from blendctl.controllers import load

pytest.importorskip("torch")

TINY = [
    "--worlds",
    "2",
    "--rollout",
    "50",
    "--hidden",
    "16",
    "--minibatch",
    "50",
    "--passes",
    "1",
    "--threads",
    "1",
]


def run(*words):
    result = CliRunner().invoke(command_line, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    run(
        "train",
        "PointGoal0",
        "--algo",
        "cpo",
        "--steps",
        "300",
        *TINY,
        "--eval-episodes",
        "2",
        "--out",
        str(out),
        "--quiet",
    )
    return out


def test_a_run_leaves_controller_card_logs_and_configuration(trained):
    names = {path.name for path in trained.iterdir()}
    files = {
        "config.json",
        "progress.jsonl",
        "checkpoint.safetensors",
        "controller.safetensors",
        "controller.json",
    }
    assert files | {"controller.md", "tensorboard"} <= names
    card = json.loads((trained / "controller.json").read_text())
    assert card["command"].startswith("blendctl train PointGoal0 --algo cpo --steps 300 --seed 0")
    assert card["evaluation"]["episodes"] == 2
    assert len((trained / "progress.jsonl").read_text().splitlines()) == 3


def test_a_configuration_file_repeats_the_run(trained, tmp_path):
    again = tmp_path / "again"
    run(
        "train",
        "PointGoal0",
        "--config",
        str(trained / "config.json"),
        "--eval-episodes",
        "0",
        "--out",
        str(again),
        "--quiet",
    )
    first = (trained / "progress.jsonl").read_text().splitlines()
    second = (again / "progress.jsonl").read_text().splitlines()
    for one, other in zip(first, second, strict=True):
        a, b = json.loads(one), json.loads(other)
        for clock in ("simulate_seconds", "learn_seconds"):
            a.pop(clock), b.pop(clock)
        assert a == b


def test_a_finished_run_is_extended_by_resuming_with_more_steps(tmp_path):
    out = str(tmp_path / "run")
    words = ["train", "PointGoal0", "--algo", "ppo", "--out", out, "--quiet", "--eval-episodes", "0"]
    run(*words, "--steps", "200", *TINY)
    run("train", "PointGoal0", "--algo", "ppo", "--out", out, "--quiet", "--steps", "400", "--resume")
    lines = (tmp_path / "run" / "progress.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [100, 200, 300, 400]


def test_ctrl_c_saves_says_how_to_resume_and_loses_nothing(tmp_path):
    whole, halved = tmp_path / "whole", tmp_path / "halved"
    words = [
        "PointGoal0",
        "--algo",
        "ppo",
        "--steps",
        "3000",
        *TINY,
        "--eval-episodes",
        "0",
        "--quiet",
        "--out",
    ]
    run("train", *words, str(whole))
    command = [sys.executable, "-m", "blendctl", "train", *words, str(halved)]
    log = halved / "progress.jsonl"
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while not (log.exists() and log.read_text().count("\n") >= 2):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert f"--out {halved} --resume" in output
    run("train", "PointGoal0", "--algo", "ppo", "--out", str(halved), "--resume", "--quiet")
    assert (whole / "controller.safetensors").is_file()
    rows = np.random.default_rng(0).random((5, 28))
    assert np.array_equal(load(whole).act(rows), load(halved).act(rows))


def test_evaluate_writes_its_results(trained, tmp_path):
    summary_file, table = tmp_path / "e.json", tmp_path / "e.csv"
    run(
        "evaluate",
        str(trained),
        "--episodes",
        "3",
        "--json",
        str(summary_file),
        "--csv",
        str(table),
        "--threads",
        "1",
    )
    summary = json.loads(summary_file.read_text())
    assert {"return_mean", "return_ci95", "cost_mean", "cost_ci95", "episodes"} <= set(summary)
    assert summary["episodes"] == 3
    assert len(table.read_text().splitlines()) == 4


def test_the_zoo_lists_the_shipped_controllers():
    assert "controller" in run("zoo")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "PointGaol1"], 'did you mean "PointGoal1"'),
        (["train", "PointGoal1", "--algo", "pppo"], 'did you mean "ppo"'),
        (["train", "PointGoal1", "--steps", "many"], "expected int"),
        (["train", "PointGoal1", "--every", "100"], "at most 60 seconds"),
        (["evaluate", "PointGoal1/nothing"], "there is no controller"),
    ],
)
def test_bad_input_ends_with_one_clear_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 1
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()
