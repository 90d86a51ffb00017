"""Define checks, and run several of them: each in its own process, its figures against their limits."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

TIMEOUT = 3000.0  # s
PATIENCE = 1.0  # s until a process that was interrupted is killed
TERMINATED = 128 + signal.SIGTERM  # exit code, as in shells


@dataclass(frozen=True)
class Check:
    """Figures that must not exceed their limits, and how they are measured.

    Either `measure(repetitions)` returns the figures, or `command` is run, in which "{}" stands for the repetitions.
    The last line of its output is a JSON object with the figures, and "notes" if it has some: lines for the reader.
    Every check may have the limit "exit code".
    """

    name: str
    limits: Mapping[str, float]  # figure -> largest value that passes
    quick: int = 0  # repetitions in `blendctl selftest`; 0: not included
    full: int = 1  # repetitions in `make verify`
    measure: Callable[[int], Mapping[str, float]] | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    package: str | None = None  # must be installed, else the check is left out
    timed: bool = False  # it measures times or uses all cores: run nothing else meanwhile

    def words(self, repetitions: int) -> list[str]:
        """Return the command line that measures it."""
        if self.measure is not None:
            return [sys.executable, "-m", "blendctl.selftest.check_process", self.name, str(repetitions)]
        return [word.replace("{}", str(repetitions)) for word in self.command]


@dataclass(frozen=True)
class Measured:
    """One measured figure and its limit."""

    check: str
    repetitions: int
    name: str
    figure: float | None  # None: it could not be measured
    limit: float
    passed: bool
    seconds: float  # of the whole check
    message: str = ""  # why it could not be measured
    notes: tuple[str, ...] = ()  # of the whole check


class _Running:
    """The running processes, each with its own session; `stop` ends them and their children."""

    def __init__(self) -> None:
        self._children: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self._lock = threading.RLock()  # a signal handler may stop them at any instant

    def add(self, child: subprocess.Popen[str]) -> None:
        """Add a started process."""
        with self._lock:
            self._children.add(child)
            if self._stopped:
                _send(child, signal.SIGKILL)

    def discard(self, child: subprocess.Popen[str]) -> None:
        """Remove a process that has ended."""
        with self._lock:
            self._children.discard(child)

    def stop(self) -> None:
        """Interrupt all processes; kill those that still run after a second."""
        with self._lock:
            self._stopped = True
            children = list(self._children)
        for child in children:
            _send(child, signal.SIGINT)
        until = time.monotonic() + PATIENCE
        while any(child.poll() is None for child in children) and time.monotonic() < until:
            time.sleep(0.01)
        for child in children:
            _send(child, signal.SIGKILL)


def _send(child: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to a process and to all processes of its session."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


def run_check(check: Check, repetitions: int, *, running: _Running | None = None) -> list[Measured]:
    """Measure a check in its own process, which `running` lists meanwhile."""
    started = time.perf_counter()
    figures, notes, message = _measure(check, repetitions, running or _Running())
    seconds = round(time.perf_counter() - started, 1)
    results = []
    for name, limit in check.limits.items():
        figure = figures.get(name)
        passed = figure is not None and figure <= limit
        results.append(Measured(check.name, repetitions, name, figure, limit, passed, seconds, message, notes))
    return results


def _measure(check: Check, repetitions: int, running: _Running) -> tuple[dict[str, float], tuple[str, ...], str]:
    environment = os.environ | check.environment
    with subprocess.Popen(
        check.words(repetitions), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        env=environment, start_new_session=True,
    ) as child:  # fmt: skip
        running.add(child)
        try:
            out, err = child.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            _send(child, signal.SIGKILL)
            child.communicate()
            return {}, (), f"no answer within {TIMEOUT:.0f} s"
        finally:
            running.discard(child)
    lines = out.strip().splitlines()
    figures: dict[str, Any] = {}
    if lines and lines[-1].startswith("{"):
        figures = json.loads(lines[-1])
    elif child.returncode and check.measure is not None:
        return {}, (), (err.strip() or f"the process exited with code {child.returncode}").splitlines()[-1]
    message = "" if child.returncode == 0 else "\n".join((out + err).strip().splitlines()[-20:])
    notes = tuple(figures.pop("notes", ()))
    return figures | {"exit code": float(child.returncode)}, notes, message


def run_checks(checks: Sequence[Check], *, full: bool = False, workers: int = 1) -> Iterator[list[Measured]]:
    """Measure checks, `workers` at a time; yield the figures of each in the order of the checks.

    Ctrl-C and SIGTERM end the processes that measure.
    """
    running = _Running()

    def terminate(*_: object) -> None:
        running.stop()
        sys.exit(TERMINATED)

    in_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, terminate) if in_main else None
    pool = ThreadPoolExecutor(workers)
    try:
        sizes = [(check, check.full if full else check.quick) for check in checks]
        pending = [pool.submit(run_check, check, size, running=running) for check, size in sizes]
        for future in pending:
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        running.stop()
        pool.shutdown()
        if in_main:
            signal.signal(signal.SIGTERM, before)
