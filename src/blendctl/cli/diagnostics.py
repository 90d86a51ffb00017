"""Check which packages are installed and whether they work."""

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
from pathlib import Path
from typing import Literal

from blendctl._version import __version__
from blendctl.cli.smoke_checks import CHECKS, EXIT_UNAVAILABLE, SmokeCheck

TIMEOUT = 180.0  # s; the first compilation takes half a minute on a slow machine
EXTRAS = {  # extra -> purpose; without the extras for developers
    "train": "training",
    "ray": "more than one machine",
    "onnx": "ONNX controllers",
    "export": "ONNX graphs of blends",
    "sb3": "stable-baselines3 models",
    "video": "MP4 films",
}
Verdict = Literal["works", "broken", "missing", "skipped"]


@dataclass(frozen=True)
class Dependency:
    """A package that blendctl uses."""

    package: str
    version: str | None  # installed version, None if missing
    wanted: str  # version specifier such as ">=2.0"
    extra: str | None  # extra that installs it, None if required

    @property
    def usable(self) -> bool:
        """Whether it is installed in a supported version."""
        from packaging.specifiers import SpecifierSet

        return self.version is not None and SpecifierSet(self.wanted).contains(self.version, prereleases=True)

    @property
    def command(self) -> str:
        """The command that installs it."""
        return 'pip install "blendctl' + (f'[{self.extra}]"' if self.extra else '"')


@dataclass(frozen=True)
class Diagnosis:
    """Result of a smoke check."""

    check: str
    verdict: Verdict
    message: str
    seconds: float
    command: str | None = None  # installs what is missing


def find_dependencies() -> list[Dependency]:
    """List the packages that blendctl declares, with the installed versions."""
    dependencies = []
    for line in importlib.metadata.requires("blendctl") or []:
        requirement, _, marker = line.partition(";")
        match = re.match(r"([A-Za-z0-9_.-]+)(.*)", requirement.strip())
        extra = re.search(r'extra == ["\'](\w+)["\']', marker)
        if match is None or (extra and extra[1] not in EXTRAS):
            continue
        name, wanted = match.groups()
        dependencies.append(Dependency(name, _version(name), wanted.strip(), extra[1] if extra else None))
    return dependencies


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_checks(dependencies: list[Dependency], *, quick: bool = False) -> Iterator[Diagnosis]:
    """Run the smoke checks whose packages are installed, each in its own process."""
    by_name = {dependency.package: dependency for dependency in dependencies}
    for check in CHECKS.values():
        dependency = by_name.get(check.package)
        if dependency is not None and dependency.version is None:
            purpose = f"; needed for {EXTRAS[dependency.extra]}" if dependency.extra else ""
            message = f"{dependency.package} is not installed{purpose}"
            yield Diagnosis(check.name, "missing", message, 0.0, dependency.command)
        elif quick and check.slow:
            yield Diagnosis(check.name, "skipped", "slow; run without --quick", 0.0)
        else:
            yield _run_check(check)


def _run_check(check: SmokeCheck) -> Diagnosis:
    command = [sys.executable, "-W", "ignore", "-m", "blendctl.cli.smoke_checks", check.name]
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    ) as child:
        try:
            out, err = child.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()
            return Diagnosis(check.name, "broken", f"no answer within {TIMEOUT:.0f} s", TIMEOUT)
        except BaseException:  # Ctrl-C: do not leave the process behind
            child.terminate()
            raise
    seconds = round(time.perf_counter() - started, 2)
    lines = (out.strip() or err.strip()).splitlines()
    message = lines[-1].strip() if lines else f"the process exited with code {child.returncode}"
    verdicts: dict[int, Verdict] = {0: "works", EXIT_UNAVAILABLE: "missing"}
    return Diagnosis(check.name, verdicts.get(child.returncode, "broken"), message, seconds)


def find_commit() -> str | None:
    """Return the commit of the source: the one recorded at the build, or that of the git checkout."""
    package = Path(__file__).parents[1]
    noted = package / "_commit.txt"
    if noted.is_file():
        return noted.read_text(encoding="utf-8").strip()
    if not (package.parents[1] / ".git").exists():
        return None
    words = ["git", "-C", str(package), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def describe_version() -> str:
    """Return the lines below the version: commit, Python and the dependencies with their versions."""
    installed = ", ".join(f"{d.package} {d.version}" for d in find_dependencies() if d.version is not None)
    return f"commit {find_commit() or 'unknown'}\nPython {platform.python_version()}, {installed}"


def describe_installation() -> dict[str, str | int]:
    """Return versions, platform and number of cores."""
    return {
        "blendctl": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }
