"""Run units on an engine: skip finished ones, repeat lost ones, respect their order, store the results."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from blendctl.errors import BlendctlError, InputError, did_you_mean
from blendctl.experiments.store import Store, decode, encode
from blendctl.experiments.units import Result, Unit, run_unit

State = Literal["stored", "started", "done", "lost", "failed"]

ENGINES = ("processes", "ray", "inline")
ATTEMPTS = 4  # runs of a unit whose worker dies


@dataclass(frozen=True)
class FinishedUnit:
    """A unit with its result."""

    unit: Unit
    result: Result
    stored: bool  # from an earlier session


@dataclass(frozen=True)
class ProgressEvent:
    """A change of a unit's state, for progress displays."""

    state: State
    unit: Unit
    done: int  # finished units, including stored ones
    total: int
    message: str = ""


class UnitsFailed(BlendctlError):
    """Some units could not be run; finished ones are kept."""


class Job(NamedTuple):
    """A unit for a worker, as plain bytes: the same on every engine."""

    number: int
    unit: bytes  # Unit.to_json()
    key: str
    before: bytes | None = None  # file of the unit that it follows
    before_key: str = ""


@dataclass(frozen=True)
class JobResult:
    """Outcome of a job."""

    number: int
    state: Literal["done", "failed", "lost"]  # failed: the unit raised; lost: its worker died
    data: bytes = b""  # content of the unit's file
    message: str = ""


class Engine(Protocol):
    """An engine that runs jobs."""

    def room(self) -> int:
        """Return how many more jobs it accepts now."""

    def submit(self, job: Job) -> None:
        """Start a job."""

    def wait(self) -> list[JobResult]:
        """Wait for at least one result."""

    def close(self) -> None:
        """Stop at once, including running jobs."""


def run_job(job: Job) -> JobResult:
    """Run a job in this process, as workers do."""
    try:
        before = None if job.before is None else decode(job.before, key=job.before_key)
        return JobResult(job.number, "done", data=encode(job.key, job.unit, run_unit(job.unit, before)))
    except BlendctlError as error:
        return JobResult(job.number, "failed", message=str(error))
    except MemoryError:
        return JobResult(job.number, "lost", message="out of memory")
    except Exception as error:
        return JobResult(job.number, "failed", message=f"{type(error).__name__}: {error}")


def run_units(
    units: Sequence[Unit],
    *,
    store: Store,
    engine: str | Engine = "processes",
    workers: int | None = None,
    address: str | None = None,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Generator[FinishedUnit, None, None]:
    """Run units and yield each as it finishes, stored ones first.

    engine: "processes" on this machine, "ray" on a cluster, "inline" in this process; results are equal to the bit. An
    engine that the caller started stays open.
    workers: number of processes, or CPUs of a local Ray; all cores by default. address: Ray cluster address.
    Units start in the order of the list; a unit waits for its predecessor (`after`). A unit whose worker dies runs
    again, at most four times; a unit that raises fails, and its successors do not run. `UnitsFailed` is raised when
    all other units are finished.
    """
    if isinstance(engine, str):
        start_engine = make_engine(engine, workers=workers, address=address)  # raises before anything runs
    else:
        started = engine
        start_engine = lambda: _OpenEngine(started)  # noqa: E731  # a function as the others
    return _Schedule(units, store, progress or (lambda event: None)).run(start_engine)


def make_engine(name: str, *, workers: int | None, address: str | None) -> Callable[[], Engine]:
    """Check the options of an engine; return a function that starts it."""
    if name not in ENGINES:
        raise InputError(f'there is no engine "{name}"; {did_you_mean(name, ENGINES)}')
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers must be a whole number >= 1, actually: {workers!r}")
    if address is not None and name != "ray":
        raise InputError(f'only the engine "ray" takes an address, actually: "{name}"')
    if address is not None and workers is not None:
        raise InputError("a Ray cluster has its own workers; use an address or a number of workers, not both")
    if name == "inline":
        return InlineEngine
    count = workers or os.cpu_count() or 1
    if name == "ray":
        from blendctl.experiments.ray_engine import RayEngine, expect_ray

        expect_ray()
        return lambda: RayEngine(address, workers=count)
    from blendctl.experiments.processes import ProcessEngine

    return lambda: ProcessEngine(count)


class InlineEngine:
    """Run one job at a time in this process."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def room(self) -> int:
        return 1 - len(self.jobs)

    def submit(self, job: Job) -> None:
        self.jobs.append(job)

    def wait(self) -> list[JobResult]:
        return [run_job(self.jobs.pop())] if self.jobs else []

    def close(self) -> None:
        self.jobs.clear()


class _OpenEngine:
    """An engine that the caller owns: it stays open."""

    def __init__(self, engine: Engine) -> None:
        self.room, self.submit, self.wait = engine.room, engine.submit, engine.wait

    def close(self) -> None:
        """Leave it open."""


class _Schedule:
    """The state of all units: ready, running, done, failed."""

    def __init__(self, units: Sequence[Unit], store: Store, report: Callable[[ProgressEvent], None]) -> None:
        self.units = list({unit.key: unit for unit in units}.values())
        self.store, self.report = store, report
        numbers = {unit.key: number for number, unit in enumerate(self.units)}
        self.ready: list[int] = []  # a heap: earlier units first
        self.followers: dict[int, list[int]] = {}
        self.attempts = [0] * len(self.units)
        self.stored: set[int] = set()  # finished in an earlier session
        self.failed: dict[int, str] = {}
        self.done = 0
        for number, unit in enumerate(self.units):
            if unit.after is not None:
                if unit.after.key not in numbers:
                    raise InputError(f"unit {unit.key} follows {unit.after.key}, which is not in the list")
                self.followers.setdefault(numbers[unit.after.key], []).append(number)

    def run(self, start: Callable[[], Engine]) -> Generator[FinishedUnit, None, None]:
        yield from self._stored()
        if self.done == len(self.units):
            return
        running: set[int] = set()
        with closing(start()) as engine:
            while self.ready or running:
                while self.ready and engine.room() > 0:
                    number = heapq.heappop(self.ready)
                    engine.submit(self._job(number))
                    running.add(number)
                    self._report("started", number)
                for result in engine.wait():
                    running.discard(result.number)
                    finished = self._settle(result)
                    if finished is not None:
                        yield finished
        if self.failed:
            raise self._failure()

    def _stored(self) -> Iterator[FinishedUnit]:
        """Yield the stored units; mark those that can start as ready."""
        for number, unit in enumerate(self.units):
            result = self.store.get(unit)
            if result is not None:
                self.stored.add(number)
                self.done += 1
                self._report("stored", number)
                yield FinishedUnit(unit, result, stored=True)
        keys = {self.units[number].key for number in self.stored}
        for number, unit in enumerate(self.units):
            if number not in self.stored and (unit.after is None or unit.after.key in keys):
                heapq.heappush(self.ready, number)

    def _job(self, number: int) -> Job:
        unit = self.units[number]
        self.attempts[number] += 1
        if unit.after is None:
            return Job(number, unit.to_json(), unit.key)
        return Job(number, unit.to_json(), unit.key, self.store.read(unit.after), unit.after.key)

    def _settle(self, outcome: JobResult) -> FinishedUnit | None:
        number, unit = outcome.number, self.units[outcome.number]
        if outcome.state == "done":
            result = self.store.put(unit, outcome.data)
            self.done += 1
            for follower in self.followers.get(number, ()):
                if follower not in self.stored:  # stored already if only this unit's file was damaged
                    heapq.heappush(self.ready, follower)
            self._report("done", number)
            return FinishedUnit(unit, result, stored=False)
        if outcome.state == "lost" and self.attempts[number] < ATTEMPTS:
            heapq.heappush(self.ready, number)
            self._report("lost", number, outcome.message)
            return None
        message = outcome.message
        if outcome.state == "lost":
            message = f"its worker died {self.attempts[number]} times ({message})"
        self.failed[number] = message
        self._report("failed", number, message)
        return None

    def _failure(self) -> UnitsFailed:
        number, message = next(iter(self.failed.items()))
        unit = self.units[number]
        left = len(self.units) - self.done
        shown = (f"{name} {value}" for name, value in unit.parameters.items() if isinstance(value, str | int))
        return UnitsFailed(
            f"{left} of {len(self.units)} units could not be run. "
            f"{unit.kind.rpartition(':')[2]} ({', '.join(shown)}): {message}. "
            f"What is finished is kept in {self.store.directory}; the same command continues from there"
        )

    def _report(self, state: State, number: int, message: str = "") -> None:
        self.report(ProgressEvent(state, self.units[number], self.done, len(self.units), message))
