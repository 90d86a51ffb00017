"""`blendctl doctor` finds missing and broken packages and names the commands that install them."""

import json
import os
import subprocess
import sys

import pytest

from blendctl.cli import diagnostics
from blendctl.cli.diagnostics import Dependency, find_dependencies, run_checks
from blendctl.cli.smoke_checks import CHECKS


def doctor(*args, **environment):
    return subprocess.run(
        [sys.executable, "-m", "blendctl", "doctor", *args],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | environment,
    )


def test_a_broken_package_is_reported_and_the_others_work(tmp_path):
    broken = tmp_path / "onnxruntime"
    broken.mkdir()
    (broken / "__init__.py").write_text("raise OSError('libgomp.so.1: cannot open shared object file')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = doctor("--quick", "--json", str(tmp_path / "doctor.json"), PYTHONPATH=path)
    diagnosis = json.loads((tmp_path / "doctor.json").read_text())
    checks = {check["check"]: check for check in diagnosis["checks"]}
    assert set(checks) == set(CHECKS)
    assert checks["onnx"]["verdict"] == "broken"
    assert "libgomp" in checks["onnx"]["message"]
    assert "libgomp" in done.stdout
    assert done.returncode == 1
    assert diagnosis["ok"] is False
    for name in ("physics", "drawing", "compiling", "zoo", "records", "torch"):
        assert checks[name]["verdict"] == "works", checks[name]
    for name in ("ray", "camera", "sb3"):
        assert checks[name]["verdict"] in ("skipped", "missing"), "left out by --quick"
    assert diagnosis["machine"]["cores"] >= 1
    assert {part["package"] for part in diagnosis["dependencies"]} >= {"numpy", "mujoco", "torch", "ray"}


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(diagnostics, "CHECKS", {name: CHECKS[name] for name in ("records", "torch", "ray")})
    dependencies = [
        Dependency(p.package, None if p.package in ("ray", "torch") else p.version, p.wanted, p.extra)
        for p in find_dependencies()
    ]
    results = {result.check: result for result in run_checks(dependencies)}
    assert results["records"].verdict == "works"
    assert results["torch"].verdict == results["ray"].verdict == "missing"
    assert results["torch"].command == 'pip install "blendctl[train]"'
    assert results["ray"].command == 'pip install "blendctl[ray]"'
    assert "more than one machine" in results["ray"].message


def test_a_package_that_is_too_old_is_not_usable():
    assert Dependency("numpy", "2.1.0", ">=2.0", None).usable
    assert not Dependency("numpy", "1.26.4", ">=2.0", None).usable
    assert not Dependency("numpy", None, ">=2.0", None).usable


def test_a_check_that_hangs_is_reported_as_broken(monkeypatch):
    monkeypatch.setattr(diagnostics, "TIMEOUT", 0.01)
    result = next(run_checks(find_dependencies()))
    assert result.verdict == "broken"
    assert "no answer" in result.message


def test_every_check_needs_a_declared_package():
    declared = {part.package for part in find_dependencies()}
    assert {check.package for check in CHECKS.values()} <= declared


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
