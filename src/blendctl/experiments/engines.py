"""Run units on an engine: skip what is done, run again what was lost, follow chains, keep what is finished."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, Protocol

from blendctl.errors import BlendctlError, InputError, did_you_mean
from blendctl.experiments.store import Store, decode, encode
from blendctl.experiments.units import Result, Unit, perform

__all__ = ["run_units", "Finished", "Event", "UnitsFailed", "ENGINES", "Engine", "Answer", "Task", "do_task"]

ENGINES = ("processes", "ray", "inline")
ATTEMPTS = 4  # how often a unit is tried whose worker died


@dataclass(frozen=True)
class Finished:
    """A unit with its result."""

    unit: Unit
    result: Result
    stored: bool  # it was done before


@dataclass(frozen=True)
class Event:
    """Something that happened, for whoever shows progress."""

    what: Literal["stored", "started", "done", "lost", "failed"]
    unit: Unit
    done: int  # units so far, stored ones included
    total: int
    words: str = ""


class UnitsFailed(BlendctlError):
    """Some units could not be run; what is finished is kept."""


# What flows between the scheduler and its workers: plain bytes, the same on every engine.
Task = tuple[int, bytes, str, bytes | None, str]  # number, order, key, file of the unit before, its key


@dataclass(frozen=True)
class Answer:
    """What became of a task."""

    number: int
    state: Literal["done", "failed", "lost"]  # failed: it raised, and would again; lost: its worker died
    data: bytes = b""  # of the unit's file
    words: str = ""


class Engine(Protocol):
    """Where tasks run."""

    def room(self) -> int:
        """How many more tasks it takes now."""

    def submit(self, task: Task) -> None:
        """Take a task."""

    def wait(self) -> list[Answer]:
        """Wait until something is known of a task."""

    def close(self) -> None:
        """Stop at once, also what is under way."""


def do_task(task: Task) -> Answer:
    """Run a task here: what a worker does, wherever it is."""
    number, order, key, before, before_key = task
    try:
        earlier = None if before is None else decode(before, key=before_key)
        result = perform(order, earlier)
        return Answer(number, "done", data=encode(key, order, result))
    except BlendctlError as error:
        return Answer(number, "failed", words=str(error))
    except MemoryError:
        return Answer(number, "lost", words="out of memory")
    except Exception as error:
        return Answer(number, "failed", words=f"{type(error).__name__}: {error}")


def run_units(
    units: Sequence[Unit],
    *,
    store: Store,
    engine: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    progress: Callable[[Event], None] | None = None,
) -> Generator[Finished, None, None]:
    """Run units and yield each as it finishes; those that the store holds come first, without running.

    engine: "processes" on this machine, "ray" on many, "inline" here and now; the results are the same to the bit.
    workers: processes, or CPUs of the Ray that is started if there is no `address`; every core by default. address:
    of a Ray cluster. Earlier units of the list go first; a unit waits for the one that it is `after`. A unit whose
    worker dies is run again, up to four times in all; one that raises fails, and with it what follows it. The
    others run to their end, and only then `UnitsFailed` tells.
    """
    made = make_engine(engine, workers=workers, address=address)  # refuses wrong options before anything runs
    return _Schedule(units, store, progress or _silent).run(made)


def make_engine(name: str, *, workers: int | None, address: str | None) -> Callable[[], Engine]:
    """Check the options of an engine; give what starts it."""
    if name not in ENGINES:
        raise InputError(f'there is no engine "{name}"; {did_you_mean(name, ENGINES)}')
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise InputError(f"workers must be a whole number >= 1, actually: {workers!r}")
    if address is not None and name != "ray":
        raise InputError(f'an address is for the engine "ray", actually: "{name}"')
    if address is not None and workers is not None:
        raise InputError("a Ray cluster has its own workers; give an address or a number of workers, not both")
    if name == "inline":
        return Inline
    count = workers or os.cpu_count() or 1
    if name == "ray":
        from blendctl.experiments.ray_engine import RayEngine, expect_ray

        expect_ray()
        return lambda: RayEngine(address, workers=count)
    from blendctl.experiments.processes import Processes

    return lambda: Processes(count)


class Inline:
    """The simplest engine: one task at a time, in this process."""

    def __init__(self) -> None:
        self.task: Task | None = None

    def room(self) -> int:
        return int(self.task is None)

    def submit(self, task: Task) -> None:
        self.task = task

    def wait(self) -> list[Answer]:
        task, self.task = self.task, None
        return [] if task is None else [do_task(task)]

    def close(self) -> None:
        self.task = None


class _Schedule:
    """Which units are ready, under way, done and failed."""

    def __init__(self, units: Sequence[Unit], store: Store, tell: Callable[[Event], None]) -> None:
        self.units = list({unit.key: unit for unit in units}.values())
        self.store, self.tell = store, tell
        numbers = {unit.key: number for number, unit in enumerate(self.units)}
        self.ready: list[int] = []  # a heap: earlier units first
        self.followers: dict[int, list[int]] = {}
        self.attempts = [0] * len(self.units)
        self.stored: set[int] = set()  # done before
        self.failed: dict[int, str] = {}
        self.done = 0
        for number, unit in enumerate(self.units):
            if unit.after is not None:
                if unit.after.key not in numbers:
                    raise InputError(f"unit {unit.key} follows {unit.after.key}, which is not in the list")
                self.followers.setdefault(numbers[unit.after.key], []).append(number)

    def run(self, start: Callable[[], Engine]) -> Generator[Finished, None, None]:
        yield from self._stored()
        if self.done == len(self.units):
            return
        under_way: set[int] = set()
        with closing(start()) as engine:
            while self.ready or under_way:
                while self.ready and engine.room() > 0:
                    number = heapq.heappop(self.ready)
                    engine.submit(self._task(number))
                    under_way.add(number)
                    self._say("started", number)
                for answer in engine.wait():
                    under_way.discard(answer.number)
                    finished = self._settle(answer)
                    if finished is not None:
                        yield finished
        if self.failed:
            self._raise()

    def _stored(self) -> Iterator[Finished]:
        """Yield what is done; make ready what can begin."""
        for number, unit in enumerate(self.units):
            result = self.store.get(unit)
            if result is not None:
                self.stored.add(number)
                self.done += 1
                self._say("stored", number)
                yield Finished(unit, result, stored=True)
        keys = {self.units[number].key for number in self.stored}
        for number, unit in enumerate(self.units):
            if number not in self.stored and (unit.after is None or unit.after.key in keys):
                heapq.heappush(self.ready, number)

    def _task(self, number: int) -> Task:
        unit = self.units[number]
        self.attempts[number] += 1
        if unit.after is None:
            return number, unit.order(), unit.key, None, ""
        before = self.store.read(unit.after)
        return number, unit.order(), unit.key, before, unit.after.key

    def _settle(self, answer: Answer) -> Finished | None:
        number, unit = answer.number, self.units[answer.number]
        if answer.state == "done":
            result = self.store.put(unit, answer.data)
            self.done += 1
            for follower in self.followers.get(number, ()):
                if follower not in self.stored:  # it is, if only this unit's file was damaged
                    heapq.heappush(self.ready, follower)
            self._say("done", number)
            return Finished(unit, result, stored=False)
        if answer.state == "lost" and self.attempts[number] < ATTEMPTS:
            heapq.heappush(self.ready, number)
            self._say("lost", number, answer.words)
            return None
        words = answer.words
        if answer.state == "lost":
            words = f"its worker died {self.attempts[number]} times ({words})"
        self.failed[number] = words
        self._say("failed", number, words)
        return None

    def _raise(self) -> None:
        number, words = next(iter(self.failed.items()))
        unit = self.units[number]
        left = len(self.units) - self.done
        told = ", ".join(f"{name} {value}" for name, value in unit.parameters.items() if isinstance(value, str | int))
        raise UnitsFailed(
            f"{left} of {len(self.units)} units could not be run. {unit.kind.rpartition(':')[2]} ({told}): {words}. "
            f"What is finished is kept in {self.store.directory}; the same command goes on from there"
        )

    def _say(self, what: Literal["stored", "started", "done", "lost", "failed"], number: int, words: str = "") -> None:
        self.tell(Event(what, self.units[number], self.done, len(self.units), words))


def _silent(event: Event) -> None:
    pass
