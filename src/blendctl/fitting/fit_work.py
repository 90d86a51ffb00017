"""Run the units of a fit: in worker processes with results on disk, or in this process with the user's objects."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from blendctl.errors import InputError
from blendctl.experiments.engines import Engine, make_engine, run_units
from blendctl.experiments.store import Store
from blendctl.experiments.units import Result, Unit, run_unit
from blendctl.file_reading import read_json_object
from blendctl.fitting.plan import FitPlan
from blendctl.fitting.unit_progress import ProgressListener

UNFINISHED = "fitting"  # directory of the finished units, until the fit is written
PLAN_FILE = "plan.json"
OnDone = Callable[[float, int], None]  # units done, units in total


class Work:
    """Run units in this process, and keep their results in memory."""

    workers = 1
    sessions = 1

    def __init__(self) -> None:
        self.results: dict[str, Result] = {}
        self._listener = ProgressListener()

    def run(self, units: Sequence[Unit], on_done: OnDone) -> list[Result]:
        """Run units and their predecessors; return the results in the order of `units`."""
        needed = with_predecessors([unit for unit in units if unit.key not in self.results])
        done = 0

        def finish(count: int) -> None:
            nonlocal done
            done = count
            on_done(done, len(needed))

        if needed:
            with self._listener.every_second(lambda shares: on_done(done + shares, len(needed))):
                self._run(needed, finish)
        return [self.results[unit.key] for unit in units]

    def _run(self, needed: Sequence[Unit], finish: Callable[[int], None]) -> None:
        for number, unit in enumerate(needed):
            finish(number)
            if unit.key not in self.results:
                before = None if unit.after is None else self.results[unit.after.key]
                self.results[unit.key] = run_unit(unit.to_json(), before)

    def keep_plan(self, plan: FitPlan) -> FitPlan:
        """Return the plan of an earlier session if there is one, else this one."""
        return plan

    def finish(self) -> None:
        """Remove temporary files."""
        self.results.clear()

    def close(self) -> None:
        """Stop."""
        self._listener.close()


class StoredWork(Work):
    """Run units on an engine, and store their results in a directory, so that the same command resumes."""

    def __init__(
        self,
        directory: Path,
        *,
        identity: Mapping[str, Any],
        replace: bool,
        command: str,
        engine: str,
        workers: int | None,
        address: str | None,
    ) -> None:
        name = "inline" if engine == "processes" and workers == 1 else engine
        self._start = make_engine(name, workers=workers, address=address)  # raises before anything is written
        self._engine: Engine | None = None
        self.workers = 1 if name == "inline" else workers or os.cpu_count() or 1
        self.directory = directory
        try:
            self.store = Store(directory, "fit", identity=identity, command=command)
        except InputError as error:
            if not replace:
                raise InputError(f"{error}; --replace starts again") from error
            _remove(directory)
            self.store = Store(directory, "fit", identity=identity, command=command)
        super().__init__()
        self.sessions = len(read_json_object(directory / "run.json")["sessions"])

    def _run(self, needed: Sequence[Unit], finish: Callable[[int], None]) -> None:
        self._engine = self._engine or self._start()
        stream = run_units(
            needed, store=self.store, engine=self._engine, progress=lambda event: finish(event.done)
        )  # fmt: skip
        with closing(stream):
            for finished in stream:
                self.results[finished.unit.key] = finished.result

    def keep_plan(self, plan: FitPlan) -> FitPlan:
        file = self.directory / PLAN_FILE
        if file.exists():
            saved = read_json_object(file)
            return FitPlan(**saved | {"holds": tuple(saved["holds"])})
        self.store.write_json(PLAN_FILE, json.loads(json.dumps(asdict(plan))))
        return plan

    def finish(self) -> None:
        super().finish()
        self.close()
        _remove(self.directory)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()
        self._engine = None
        self.store.close()
        super().close()


def with_predecessors(units: Sequence[Unit]) -> list[Unit]:
    """Return units and their predecessors, predecessors first."""
    found: dict[str, Unit] = {}
    for unit in units:
        if unit.after is not None:
            found.setdefault(unit.after.key, unit.after)
        found.setdefault(unit.key, unit)
    return list(found.values())


def _remove(directory: Path) -> None:
    """Remove a directory, and leftovers of an earlier removal: a kill may leave a hidden one, never a partial one."""
    hidden = directory.with_name(f".{directory.name}")
    shutil.rmtree(hidden, ignore_errors=True)
    if directory.exists():
        shutil.rmtree(directory.rename(hidden))
