"""The doctor finds what is missing and what is broken, and says which command helps."""

import json
import os
import subprocess
import sys

import pytest

from blendctl.cli import diagnostics
from blendctl.cli.diagnostics import Part, installed_parts, try_everything
from blendctl.cli.smoke_checks import TRIALS


def doctor(*args, **environment):
    return subprocess.run(
        [sys.executable, "-m", "blendctl", "doctor", *args],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def test_a_healthy_installation_is_well_and_a_broken_package_is_not(tmp_path):
    broken = tmp_path / "onnxruntime"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')\n")
    done = doctor("--quick", "--json", str(tmp_path / "found.json"), PYTHONPATH=str(tmp_path))
    found = json.loads((tmp_path / "found.json").read_text())
    trials = {trial["trial"]: trial for trial in found["trials"]}
    assert set(trials) == set(TRIALS)
    assert trials["onnx"]["verdict"] == "broken"
    assert "libgomp" in trials["onnx"]["words"]
    assert "libgomp" in done.stdout
    assert done.returncode == 1
    assert found["ok"] is False
    for name in ("physics", "drawing", "compiling", "zoo", "records", "torch"):
        assert trials[name]["verdict"] == "works", trials[name]
    for name in ("ray", "camera", "sb3"):
        assert trials[name]["verdict"] in ("skipped", "missing"), "left out by --quick"
    assert found["machine"]["cores"] >= 1
    assert {part["package"] for part in found["parts"]} >= {"numpy", "mujoco", "torch", "ray"}


def test_what_is_missing_is_named_with_the_command_that_brings_it(monkeypatch):
    monkeypatch.setattr(diagnostics, "TRIALS", {name: TRIALS[name] for name in ("records", "torch", "ray")})
    parts = [
        Part(p.package, None if p.package in ("ray", "torch") else p.version, p.wanted, p.extra)
        for p in installed_parts()
    ]
    findings = {finding.trial: finding for finding in try_everything(parts)}
    assert findings["records"].verdict == "works"
    assert findings["torch"].verdict == findings["ray"].verdict == "missing"
    assert findings["torch"].command == 'pip install "blendctl[train]"'
    assert findings["ray"].command == 'pip install "blendctl[ray]"'
    assert "more than one machine" in findings["ray"].words


def test_a_package_that_is_too_old_does_not_fit():
    assert Part("numpy", "2.1.0", ">=2.0", None).fit
    assert not Part("numpy", "1.26.4", ">=2.0", None).fit
    assert not Part("numpy", None, ">=2.0", None).fit


def test_a_trial_that_hangs_is_broken_not_waited_for(monkeypatch):
    monkeypatch.setattr(diagnostics, "PATIENCE", 0.01)
    finding = next(try_everything(installed_parts()))
    assert finding.verdict == "broken"
    assert "no answer" in finding.words


def test_every_trial_needs_a_package_that_is_declared():
    declared = {part.package for part in installed_parts()}
    assert {trial.package for trial in TRIALS.values()} <= declared


def test_ray_is_really_started():
    pytest.importorskip("ray")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "blendctl.cli.smoke_checks", "ray"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs a task" in done.stdout.splitlines()[-1]
