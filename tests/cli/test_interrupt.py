"""Ctrl-C on real processes: one line, exit code 130, no traceback, no incomplete file."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

LONG = {
    "demo": ["demo", "bandit", "--stages", "2000000", "--out", "out"],
    "play": ["play", "PointGoal1", "--steps", "1400", "--episodes", "50", "--out", "film.gif"],
    "evaluate": ["evaluate", "PointGoal1/ppo", "--episodes", "100000", "--json", "out.json", "--threads", "1"],
    "train": ["train", "PointGoal1", "--steps", "1e8", "--worlds", "2", "--rollout", "50", "--minibatch", "50",
              "--threads", "1", "--out", "run"],
    "blend": ["blend", "PointGoal1", "--episodes", "500", "--out", "out"],
    "reproduce": ["reproduce", "--worlds", "PointGoal1", "--scale", "paper", "--workers", "1", "--out", "out"],
    "compare": ["compare", "PointGoal1", "--episodes", "300", "--workers", "1", "--out", "out"],
    "certify": ["certify", "PointGoal1/ppo", "--budget", "25", "--episodes", "3000", "--workers", "1"],
    "fit": ["fit", "PointGoal1", "--controllers", "pure-pursuit", "potential-field", "--out", "out"],
    "serve": ["serve", "PointGoal1/ppo"],
    "doctor": ["doctor", "--json", "out.json"],
    "selftest": ["selftest", "--json", "out.json"],
}  # fmt: skip
ALLOWED = {
    "train": {"run"},
    "demo": {"out"},
    "blend": {"out"},
    "reproduce": {"out"},
    "compare": {"out"},
    "certify": {"out"},
    "fit": {"out"},
}  # files and directories that may remain


WARM_UP = [
    ["demo", "bandit", "--stages", "200", "--out", "demo"],
    ["play", "PointGoal1", "--steps", "5", "--out", "film.gif"],
    ["evaluate", "PointGoal1/ppo", "--episodes", "1", "--json", "out.json", "--threads", "1"],
    ["blend", "PointGoal1", "--episodes", "1", "--steps", "20", "--out", "blend"],
]


@pytest.fixture(scope="module", autouse=True)
def compiled(tmp_path_factory):
    """Compile the kernels first: numba drops an interrupt that arrives inside its callbacks."""
    for words in WARM_UP:
        folder = tmp_path_factory.mktemp("warm")
        subprocess.run([sys.executable, "-m", "blendctl", *words], cwd=folder, check=True, capture_output=True)


def worked(session):
    """Return the CPU time, in seconds, of all processes of a session."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until_busy(process, seconds):
    """Wait until the processes have used `seconds` of CPU time, which is more than the imports need."""
    while worked(process.pid) < seconds:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processor time from /proc")
@pytest.mark.parametrize("command", LONG)
def test_ctrl_c_is_one_line_and_130(command, tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "blendctl", *LONG[command]],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        if command == "serve":
            assert "serving" in process.stdout.readline()
        elif command == "train":
            assert "training" in process.stdout.readline()
            assert "steps/s" in process.stdout.readline(), "the first updates are done"
        elif command in ("doctor", "selftest"):
            while not any(path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/children")):
                time.sleep(0.05)  # until a check runs in its own process
        else:
            wait_until_busy(process, 9.0 if command in ("reproduce", "compare", "certify", "fit") else 3.0)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the whole group
        out, err = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    assert err.splitlines()[-1] == "blendctl: interrupted"
    assert {path.name for path in tmp_path.iterdir()} <= ALLOWED.get(command, set())
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]
    patience = time.monotonic() + 20
    while worked(process.pid) and time.monotonic() < patience:
        time.sleep(0.1)  # multiprocessing's resource tracker ends a moment later
    assert worked(process.pid) == 0, "a process was left behind"
    if command == "train":
        assert "--resume" in out
        assert (tmp_path / "run" / "checkpoint.safetensors").stat().st_size > 0
    if command == "demo":
        assert not list((tmp_path / "out").iterdir())
