"""`blend` while it runs: terminal display, live page, Ctrl-C, and a report of the remains."""

import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from short_drive import blend_to

from blendctl.cli import main
from blendctl.reports.blend_page import BLEND_PAGE
from blendctl.reports.blend_run import read_blend_run
from blendctl.reports.run_dir import open_run_dir


def test_a_terminal_shows_progress_driver_and_costs_on_stderr(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes stderr for a terminal
    monkeypatch.setenv("COLUMNS", "100")
    blend_to(tmp_path, episodes=1, steps=300)
    out, err = capsys.readouterr()
    for words in ("bold alone", "blended", "drives", "● ", "costs", "%"):
        assert words in err
    assert "●" not in out
    assert "blended" in out  # the table


def test_without_a_terminal_stderr_stays_empty(tmp_path, capsys):
    blend_to(tmp_path, episodes=1, steps=20)
    assert capsys.readouterr().err == ""


def test_ctrl_c_on_a_live_drive_is_clean_and_leaves_a_report(tmp_path):
    words = [
        "blend",
        "PointGoal1",
        "--controllers",
        "pure-pursuit",
        "potential-field",
        "--no-alone",
        "--live",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "blendctl", *words, "--episodes", "500", "--steps", "50", "--out", "out"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        first = process.stderr.readline()
        assert first.startswith("live: http://127.0.0.1:")
        address = first.split()[1]
        with urllib.request.urlopen(f"{address}events", timeout=120) as stream:
            events = (line.decode().strip() for line in stream)
            seen = next(line for line in events if line.startswith("data:") and '"episode":2' in line)
            os.killpg(process.pid, signal.SIGINT)
            last = [line for line in events if line.startswith("event:")][-1]
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert json.loads(seen.removeprefix("data:"))["drive"] == "blended"
    assert last == "event: end"
    assert process.returncode == 130
    # On a busy machine it has driven five episodes by then, and warns that there was no cost.
    lines = [line for line in err.splitlines() if line and not line.startswith("the cost was 0 in every step")]
    assert (out, lines) == ("", ["blendctl: interrupted"])
    data = BLEND_PAGE.data(read_blend_run(open_run_dir(tmp_path / "out"), replays=2))
    assert "The run did not finish" in data.headline.banner[0]
    episodes = data.section("replay").episodes
    assert len(episodes) == 2
    assert all(episode.pose_at is not None for episode in episodes)


def test_the_summary_of_an_older_run_is_removed_at_the_start(tmp_path, monkeypatch):
    blend_to(tmp_path, "--no-alone", episodes=1, steps=10)
    assert (tmp_path / "summary.json").exists()

    def crash(*args, **options):
        raise MemoryError("of the machine")

    monkeypatch.setattr("blendctl.cli.blend_drive.DriveSession.drive", crash)
    with pytest.raises(SystemExit) as stopped:
        main(
            [
                "blend",
                "PointGoal1",
                "--controllers",
                "stop",
                "pure-pursuit",
                "--no-alone",
                "--replace",
                "--out",
                str(tmp_path),
            ]
        )
    assert stopped.value.code == 1
    assert not (tmp_path / "summary.json").exists()
    assert json.loads((tmp_path / "run.json").read_text())["names"] == ["stop", "pure-pursuit"]
