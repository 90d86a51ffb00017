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
    """Compile the kernels first, which takes longer than the waits here."""
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


def has_worker(session):
    """Return whether a worker process of a session exists; at first it imports."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and b"spawn_main" in words:
            return True
    return False


def wait_until(condition, process):
    while not condition():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)


def start(command, folder):
    return subprocess.Popen(
        [sys.executable, "-m", "blendctl", *LONG[command]],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupt(process):
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the whole group
    return process.communicate(timeout=60)


def end(process):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def check(process, command, out, err, folder):
    assert process.returncode == 130, (out, err)
    assert "Traceback" not in out + err
    assert err.splitlines()[-1] == "blendctl: interrupted"
    assert {path.name for path in folder.iterdir()} <= ALLOWED.get(command, set())
    assert not [path for path in folder.rglob("*") if path.name.endswith(".part")]
    patience = time.monotonic() + 20
    while worked(process.pid) and time.monotonic() < patience:
        time.sleep(0.1)  # multiprocessing's resource tracker ends a moment later
    assert worked(process.pid) == 0, "a process was left behind"


# Moments of the early life of a command: seconds of CPU time, which do not depend on the load of the machine, or the
# start of the first worker.
EARLY = [
    *[("fit", seconds) for seconds in (0.3, 0.6, 1.0, 1.6)],
    ("certify", 0.4),
    *[(command, "worker") for command in ("fit", "compare", "reproduce", "certify")],
]
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processor time from /proc")


@needs_proc
@pytest.mark.parametrize(("command", "moment"), EARLY)
def test_ctrl_c_in_the_first_seconds_is_one_line_and_130(command, moment, tmp_path):
    process = start(command, tmp_path)
    try:
        if moment == "worker":
            wait_until(lambda: has_worker(process.pid), process)
        else:
            wait_until(lambda: worked(process.pid) >= moment, process)
        out, err = interrupt(process)
    finally:
        end(process)
    check(process, command, out, err, tmp_path)


@needs_proc
@pytest.mark.parametrize("command", LONG)
def test_ctrl_c_is_one_line_and_130(command, tmp_path):
    process = start(command, tmp_path)
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
            seconds = 6.0 if command in ("reproduce", "compare", "certify", "fit") else 3.0
            wait_until(lambda: worked(process.pid) >= seconds, process)
        out, err = interrupt(process)
    finally:
        end(process)
    check(process, command, out, err, tmp_path)
    if command == "train":
        assert "--resume" in out
        assert (tmp_path / "run" / "checkpoint.safetensors").stat().st_size > 0
    if command == "demo":
        assert not list((tmp_path / "out").iterdir())
