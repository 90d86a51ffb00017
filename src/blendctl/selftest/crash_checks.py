"""Checks of crash safety: kill and resume, a full disk, a read-only directory, SIGTERM."""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from blendctl.selftest.checks import Check

READ_ONLY = "/sys/blendctl-selftest"  # no directory can be made there
END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux
SMALL_FILES = (600, 5_000)  # largest size of a file on the "full disk", bytes


_running: set[int] = set()  # children that were not waited for


@dataclass(frozen=True)
class Command:
    """A command that can be killed: how to start it, how to resume it, and how to read its result."""

    words: tuple[str, ...]
    state: str  # file that a resumed run needs; without it, the run starts again
    resume: tuple[str, ...]
    results: Callable[[Path], dict[str, str]]  # digests that must be equal, by name
    extend: tuple[str, ...] = ()  # the command that continues a finished run


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _table(*parts: Path) -> str:
    from blendctl.table_parts import read_table

    text = repr([read_table(path).to_pylist() for path in parts])
    return _digest(text.encode())


def _plain(path: Path, *dropped: str) -> str:
    """Return the digest of a JSON object without times."""
    data: dict[str, Any] = json.loads(path.read_bytes())
    return _digest(json.dumps({key: value for key, value in data.items() if key not in dropped}).encode())


def _blend_results(out: Path) -> dict[str, str]:
    from blendctl.table_parts import list_parts

    return {
        "record": _table(*list_parts(out / "record")),
        "track": _table(*list_parts(out / "track")),
        "learner": _digest((out / "bandit.safetensors").read_bytes()),
    }


def _reproduce_results(out: Path) -> dict[str, str]:
    return {name: _table(out / f"{name}.parquet") for name in ("points", "episodes")}


def _train_results(out: Path) -> dict[str, str]:
    from blendctl.controllers import read_controller

    rows = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    timeless = [{key: value for key, value in row.items() if "second" not in key} for row in rows]
    return {"weights": read_controller(out / "controller.safetensors").digest, "progress": repr(timeless)}


def _lookahead_results(out: Path) -> dict[str, str]:
    """Return the number of decisions: a resumed training continues in new episodes, so its weights differ."""
    from blendctl.controllers import read_lookahead
    from blendctl.training.lookahead_checkpoint import read_checkpoint, read_decisions

    read_lookahead(out)
    sizes = sum(len(decisions.inputs) for decisions in read_decisions(out))
    return {"decisions": str(sizes), "steps": str(read_checkpoint(out).done)}


def _fit_results(out: Path) -> dict[str, str]:
    return {
        "card": _plain(out / "card.json", "seconds", "sessions", "command"),
        "networks": _digest((out / "lookahead.safetensors").read_bytes()),
        "blend": _digest((out / "blend.safetensors").read_bytes()),
    }


PAIR = ("--controllers", "PointGoal1/ppo", "PointGoal1/ppo-lagrangian")
REPRODUCE = ("reproduce", "--worlds", "PointGoal1", "--episodes", "2", "--steps", "60", "--engine", "inline")
COMMANDS = {
    "blend": Command(
        ("blend", "PointGoal1", *PAIR, "--features", "predictions", "--episodes", "3", "--steps", "400", "--no-alone",
         "--no-counterfactual"),
        "", ("--replace",), _blend_results,
    ),
    "reproduce": Command(
        (*REPRODUCE, "--data-points", "3"),
        "", (), _reproduce_results, (*REPRODUCE, "--data-points", "4"),
    ),
    "train": Command(
        ("train", "PointGoal1", "--steps", "800", "--worlds", "2", "--rollout", "50", "--minibatch", "50",
         "--threads", "1", "--every", "0.01", "--eval-episodes", "0"),
        "checkpoint.safetensors", ("--resume",), _train_results, ("train", "PointGoal1", "--resume", "--steps", "1600"),
    ),
    "train-lookahead": Command(
        ("train-lookahead", "PointGoal1", *PAIR, "--steps", "4000", "--worlds", "4", "--threads", "1",
         "--dial-episodes", "0", "--checkpoint-every", "0.2"),
        "checkpoint.safetensors", ("--resume",), _lookahead_results,
    ),
    "fit": Command(
        ("fit", "PointGoal1", "--controllers", "pure-pursuit", "potential-field", "--episode-steps", "40",
         "--steps", "400", "--hold", "5", "--episodes", "4", "--workers", "1", "--replace"),
        "", (), _fit_results,
    ),
}  # fmt: skip


def start(words: tuple[str, ...], out: str | Path, *, log: Path, file_limit: int | None = None) -> int:
    """Run a command in a forked child and return its process id; the modules are imported already."""
    child = os.fork()
    if child:
        _running.add(child)
        return child
    try:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL)
        os.setsid()
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        if file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
        # The commands are in a higher layer, so they are found by name, as in a shell.
        importlib.import_module("blendctl.cli").main([*words, "--out", str(out)])
    except SystemExit as exit_:
        sys.stdout.flush()
        os._exit(exit_.code if isinstance(exit_.code, int) else 1)
    finally:
        os._exit(70)


def finish(child: int) -> int:
    """Wait for a child; return its exit code, negative if a signal ended it."""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _running.discard(child)
    return code


@atexit.register
def _end_children() -> None:
    """End the children that Ctrl-C would leave behind."""
    for child in _running:
        os.killpg(child, signal.SIGKILL)


def _preload(commands: Mapping[str, Command]) -> None:
    for name in commands:
        importlib.import_module(f"blendctl.cli.{name.replace('-', '_')}")
    modules = ["blendctl.bandit.kernels", "blendctl.blender.compiled_loop", "blendctl.envs.kernels", "pyarrow.parquet"]
    modules += ["blendctl.reports.figure", "blendctl.experiments.reproduce", "blendctl.controllers.network"]
    modules += ["blendctl.training.run", "blendctl.fitting"] if "train" in commands else []
    for module in modules:
        importlib.import_module(module)


def available() -> dict[str, Command]:
    """Return the commands that this installation can run."""
    torch = find_spec("torch") is not None and find_spec("tensorboard") is not None
    return {name: command for name, command in COMMANDS.items() if torch or not name.startswith(("train", "fit"))}


def kills(count: int) -> dict[str, float]:
    """Kill commands at random times, resume them, and compare; return the number of runs whose results differ."""
    rng = np.random.default_rng(0)
    commands = available()
    _preload(commands)
    differing, resumed = 0, 0
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        os.chdir(home)
        expected: dict[str, tuple[dict[str, str], float]] = {}
        for number in range(count):
            name = list(commands)[number % len(commands)]
            command, log = commands[name], home / f"{name}.log"
            if name not in expected:
                began = time.monotonic()
                code = finish(start(command.words, home / name, log=log))
                if code:
                    raise RuntimeError(f"{name} exited with code {code}: {log.read_text()[-2000:]}")
                expected[name] = command.results(home / name), time.monotonic() - began
            results, seconds = expected[name]
            out = home / f"{name}-{number}"
            child = start(command.words, out, log=log)
            time.sleep(seconds * rng.uniform(0.1, 0.95))
            os.kill(child, signal.SIGKILL)
            finish(child)
            goes_on = out.exists() and (out / command.state).exists()
            resumed += goes_on
            code = finish(start(command.words + (command.resume if goes_on else ()), out, log=log))
            if code or command.results(out) != results:
                differing += 1
                print(f"{name}, kill {number}: exit code {code}, {log.read_text()[-500:]}")
    print(f"{resumed} of {count} resumed from a saved state")
    return {"results that differ": float(differing)}


def refusals(limits: int) -> dict[str, float]:
    """Run commands on a full disk and in a read-only directory; return the number of unclear or unsafe ends.

    The message must be an error that names a file of the run, and earlier files must be unchanged.
    """
    commands = available()
    _preload(commands)
    unclear = 0
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        os.chdir(home)
        for name, command in commands.items():
            log = home / f"{name}.log"
            trials: list[tuple[tuple[str, ...], Path, int | None]] = [
                (command.words, home / f"{name}-{limit}", limit) for limit in SMALL_FILES[:limits]
            ]
            trials.append((command.words, Path(READ_ONLY), None))
            before, good = None, home / f"{name}-good"
            if command.extend:
                finish(start(command.words, good, log=log))
                before = _kept(command.results(good))
                trials += [(command.extend, good, limit) for limit in SMALL_FILES[:limits]]
            for words, out, limit in trials:
                code, text = finish(start(words, out, log=log, file_limit=limit)), log.read_text()
                parts = [path.name for path in home.rglob("*") if path.name.startswith(".")]
                if code != 1 or str(out) not in text or "Traceback" in text or parts:
                    unclear += 1
                    print(f"{name} in {out}, {limit} bytes: exit code {code}, left {parts}: {text[-800:]}")
            if command.extend and _kept(command.results(good)) != before:
                unclear += 1
                print(f"{name}: earlier files have changed")
    return {"unclear ends": float(unclear)}


def _kept(results: dict[str, str]) -> dict[str, str]:
    """Return the results that a failed run must not change; its progress log may have grown by whole lines."""
    return {name: value for name, value in results.items() if name != "progress"}


def terminations(count: int) -> dict[str, float]:
    """Send SIGTERM to running commands; return the seconds until the last of their processes had ended."""
    rng = np.random.default_rng(0)
    commands = available()
    _preload(commands)
    slowest = 0.0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for number in range(count):
            name = list(commands)[number % len(commands)]
            words = tuple("processes" if word == "inline" else word for word in commands[name].words)
            child = start(words, Path(place) / f"run-{number}", log=Path(place) / "log")
            time.sleep(rng.uniform(0.5, 3.0))
            began = time.monotonic()
            os.kill(child, signal.SIGTERM)
            finish(child)
            while _alive(child) and time.monotonic() - began < 30:
                time.sleep(0.01)
            slowest = max(slowest, time.monotonic() - began)
    return {"seconds to the end": slowest}


def _alive(session: int) -> bool:
    """Return whether a process of a session is running."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has just ended
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            return True
    return False


CHECKS = (
    Check("killed runs, resumed", {"results that differ": 0.0}, quick=2, full=52, measure=kills),
    Check("full disk, read-only place", {"unclear ends": 0.0}, quick=1, full=len(SMALL_FILES), measure=refusals),
    Check("SIGTERM to running commands", {"seconds to the end": 2.0}, quick=2, full=12, measure=terminations),
)
