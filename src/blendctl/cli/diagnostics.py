"""Find out what is installed, what is missing, and whether what is there works."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from blendctl._version import __version__
from blendctl.cli.smoke_checks import EXIT_UNAVAILABLE, TRIALS, Trial

__all__ = ["Part", "Diagnosis", "Verdict", "installed_parts", "try_everything", "machine"]

PATIENCE = 180.0  # s; the first compilation of everything on a slow machine takes half a minute
EXTRAS = {  # extra -> what it is for; extras for developers are left out
    "train": "training",
    "ray": "more than one machine",
    "onnx": "ONNX controllers",
    "sb3": "stable-baselines3 models",
    "video": "MP4 films",
}
Verdict = Literal["works", "broken", "missing", "skipped"]


@dataclass(frozen=True)
class Part:
    """A package that blendctl uses."""

    package: str
    version: str | None  # installed, None if it is missing
    wanted: str  # such as ">=2.0"
    extra: str | None  # that brings it, None if blendctl cannot do without

    @property
    def fit(self) -> bool:
        """Whether it is there, in a version that blendctl can use."""
        from packaging.specifiers import SpecifierSet

        return self.version is not None and SpecifierSet(self.wanted).contains(self.version, prereleases=True)

    @property
    def command(self) -> str:
        """What installs it."""
        return 'pip install "blendctl' + (f'[{self.extra}]"' if self.extra else '"')


@dataclass(frozen=True)
class Diagnosis:
    """What came of a trial."""

    trial: str
    verdict: Verdict
    words: str
    seconds: float
    command: str | None = None  # that would help


def installed_parts() -> list[Part]:
    """List what blendctl declares to need, and whether it is there."""
    parts = []
    for line in importlib.metadata.requires("blendctl") or []:
        requirement, _, marker = line.partition(";")
        match = re.match(r"([A-Za-z0-9_.-]+)(.*)", requirement.strip())
        extra = re.search(r'extra == ["\'](\w+)["\']', marker)
        if match is None or (extra and extra[1] not in EXTRAS):
            continue
        name, wanted = match.groups()
        parts.append(Part(name, _version(name), wanted.strip(), extra[1] if extra else None))
    return parts


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def try_everything(parts: list[Part], *, quick: bool = False) -> Iterator[Diagnosis]:
    """Run every trial whose package is installed, each in a process of its own."""
    by_name = {part.package: part for part in parts}
    for trial in TRIALS.values():
        part = by_name.get(trial.package)
        if part is not None and part.version is None:
            needed = f"{part.package} is not installed"
            told = f"{needed}; it is for {EXTRAS[part.extra]}" if part.extra else needed
            yield Diagnosis(trial.name, "missing", told, 0.0, part.command)
        elif quick and trial.slow:
            yield Diagnosis(trial.name, "skipped", "slow; run without --quick to try it", 0.0)
        else:
            yield _try(trial)


def _try(trial: Trial) -> Diagnosis:
    command = [sys.executable, "-W", "ignore", "-m", "blendctl.cli.smoke_checks", trial.name]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as child:
        try:
            out, err = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return Diagnosis(trial.name, "broken", f"no answer within {PATIENCE:.0f} s", PATIENCE)
        except BaseException:  # Ctrl-C: leave nothing behind
            child.terminate()
            raise
    seconds = round(time.perf_counter() - started, 2)
    lines = (out.strip() or err.strip()).splitlines()
    words = lines[-1].strip() if lines else ""
    if child.returncode == 0:
        return Diagnosis(trial.name, "works", words, seconds)
    if child.returncode == EXIT_UNAVAILABLE:
        return Diagnosis(trial.name, "missing", words, seconds)
    return Diagnosis(trial.name, "broken", words or f"its process ended with code {child.returncode}", seconds)


def machine() -> dict[str, str | int]:
    """Say what this runs on."""
    return {
        "blendctl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }
