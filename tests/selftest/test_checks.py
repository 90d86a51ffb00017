"""A check measures figures in its own process; one above its limit, or none, fails."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from blendctl.selftest import CHECKS
from blendctl.selftest.checks import Check, run_check, run_checks
from blendctl.selftest.file_checks import READERS, fuzz
from blendctl.selftest.learner_checks import coverage
from blendctl.selftest.worlds import FAMILIES, draw_worlds

BY_NAME = {check.name: check for check in CHECKS}


def says(text, *, code=0):
    return (sys.executable, "-c", f"print({text!r}); raise SystemExit({code})")


def test_a_figure_passes_up_to_its_limit():
    two = Check("a", {"x": 1.0, "y": 1.0}, command=says('{"x": 0.5, "y": 2}'))
    one = Check("b", {"x": 1.0}, command=says('{"x": 1}'))
    (low, high), (exact,) = run_checks([two, one], full=True, workers=2)
    assert (low.passed, low.figure, low.limit) == (True, 0.5, 1.0)
    assert not high.passed
    assert exact.passed


def test_a_process_that_fails_or_measures_nothing_fails_the_check():
    (none,) = run_check(Check("a", {"x": 1.0}, command=says("words")), 1)
    assert not none.passed
    assert none.figure is None
    (failed,) = run_check(Check("a", {"exit code": 0.0}, command=says("why", code=3)), 1)
    assert (failed.passed, failed.figure, failed.message) == (False, 3.0, "why")


def test_the_command_contains_the_repetitions_and_the_environment():
    code = "import os, sys; print('{\"n\": ' + sys.argv[1] + os.environ['ZERO'] + '}')"
    check = Check("a", {"n": 100.0}, command=(sys.executable, "-c", code, "{}"), environment={"ZERO": "0"})
    assert run_check(check, 7)[0].figure == 70.0


def test_selftest_prints_a_table_writes_json_and_exits_with_1(tmp_path):
    """Two quick checks, one of which cannot pass."""
    code = (
        "from dataclasses import replace; import blendctl.selftest as s; from blendctl.cli import main; "
        "one = next(c for c in s.CHECKS if c.name.startswith('changed bits')); "
        "s.CHECKS = (replace(one, quick=5), replace(one, name='nothing', quick=1)); "
        "main(['selftest', '--json', 'figures.json'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "unnoticed" in done.stdout
    assert "FAIL" in done.stdout
    written = json.loads((tmp_path / "figures.json").read_text())
    assert written["passed"] is False
    assert [figure["passed"] for figure in written["figures"]] == [True, False]
    assert written["figures"][0]["figure"] == 0.0
    assert written["machine"]["cores"] >= 1


def test_the_list_has_a_quick_and_a_full_size_for_every_check():
    assert len(BY_NAME) == len(CHECKS)
    assert all(0 < check.quick <= check.full for check in CHECKS)


def test_a_reader_that_lets_an_error_through_is_noticed(tmp_path):
    from dataclasses import replace

    def careless(path):
        return json.loads(path.read_bytes())["names"]

    done = fuzz(replace(READERS["blend"], read=careless), 50, folder=tmp_path, seed=0)
    assert done.escapes
    assert done.refused == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_worlds_keep_the_assumptions_of_the_bounds(family):
    rng = np.random.default_rng(0)
    worlds = draw_worlds(family, 50, rng, features=4, objectives=3, arms=5, noise=0.3)
    assert np.allclose(np.linalg.norm(worlds.theta, axis=-1), 1.0)
    for _ in range(5):
        psi = worlds.features(np.zeros_like(worlds.theta))
        assert psi.shape == (50, 5, 4)
        assert (np.linalg.norm(psi, axis=-1) <= 1.0).all()
    mean = np.zeros((50, 3))
    noise = np.stack([worlds.feedback(mean, psi[:, 0]) for _ in range(200)])
    assert abs(noise.mean()) < 0.02
    assert 0.01 < noise.std() < 0.31


def test_bounds_hold_in_every_kind_of_world():
    assert max(coverage(24).values()) <= 0.05


SMALL = {
    "learner, steps of a long life": 20_000,
    "blender, steps of failing controllers": 3_000,
    "blender, recorded steps of a long life": 20_000,
    "killed runs, resumed": 5,
    "full disk, read-only place": 1,
    "SIGTERM to running commands": 4,
}


@pytest.mark.parametrize("name", SMALL)
def test_small_versions_pass(name):
    """Figures of time are left to the whole runs."""
    figures = run_check(BY_NAME[name], SMALL[name])
    for figure in figures:
        if "p99" not in figure.name and "seconds" not in figure.name:
            assert figure.passed, figure
        assert figure.figure is not None, figure


WAITING = """
import sys
from blendctl.selftest.checks import Check, run_checks
deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)"
child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {deaf!r}, sys.argv[1]])"
check = Check("a", dict(x=1.0), command=(sys.executable, "-c", child, sys.argv[1] + "-child"))
list(run_checks([check], full=True))
"""


def processes(mark):
    """Return the command lines of running processes that contain a word."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found += [words for words in [file.read_bytes()] if mark.encode() in words]
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_check_and_what_it_started(number):
    mark = f"blendctl-test-{os.getpid()}-{number:d}"
    until = time.monotonic() + 60
    with subprocess.Popen([sys.executable, "-c", WAITING, mark], stderr=subprocess.PIPE) as parent:
        while len(processes(f"{mark}-child")) < 2 and time.monotonic() < until:  # the check, and what it started
            time.sleep(0.01)
        assert len(processes(f"{mark}-child")) == 2
        parent.send_signal(number)
        parent.wait(timeout=30)
    while processes(f"{mark}-child") and time.monotonic() < until:
        time.sleep(0.01)
    assert not processes(f"{mark}-child")
