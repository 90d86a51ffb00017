"""The paper's whole experiment: run its units, and keep tables and verdict up to date on disk."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from blendctl.experiments.engines import run_units
from blendctl.experiments.protocol import PAPER_MILLISECONDS, Settings, UnitLocation, plan
from blendctl.experiments.store import Store
from blendctl.experiments.tables import Tables, as_parquet
from blendctl.experiments.verdict import verdict

SHARE = 50  # writing tables takes at most 1 / SHARE of the wall time


@dataclass(frozen=True)
class Update:
    """A finished data point, of this run or an earlier one."""

    places: list[UnitLocation]
    return_mean: float
    cost_mean: float
    stored: bool


class Reproduction:
    """One run of the experiment in its directory."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.units, self.places = plan(settings)
        self.tables = Tables(settings)
        self._due = 0.0  # when the tables may be written again
        # (world, run in an earlier session?) -> seconds and iterations of the blended controller
        self._iterations: dict[tuple[str, bool], list[float]] = {}

    @property
    def total(self) -> int:
        """The number of units."""
        return len({unit.key for unit in self.units})

    def run(self, **engine_settings: Any) -> Generator[Update, None, None]:
        """Run the missing units; the tables on disk follow in seconds. engine_settings: arguments of `run_units`."""
        running = run_units(self.units, store=self.store, **engine_settings)
        try:
            for finished in running:
                places, result = self.places[finished.unit.key], finished.result
                self.tables.add(places, result)
                if places[0].role == "blended":
                    sums = self._iterations.setdefault((places[0].world, finished.stored), [0.0, 0.0])
                    sums[0] += result.timing["seconds"]
                    sums[1] += result.timing["iterations"]
                if not finished.stored and time.monotonic() >= self._due:
                    self._write_tables()
                assert result.table is not None
                return_mean, cost_mean = (float(result.table[name].to_numpy().mean()) for name in ("return", "cost"))
                yield Update(places, return_mean, cost_mean, stored=finished.stored)
        finally:
            self._write_tables()

    def _write_tables(self) -> None:
        started = time.monotonic()
        self.store.write("episodes.parquet", as_parquet(self.tables.episodes()))
        self.store.write("points.parquet", as_parquet(self.tables.points()))
        self._due = time.monotonic() + SHARE * (time.monotonic() - started)

    def milliseconds(self) -> dict[str, dict[str, float | None]]:
        """Return the blended controller's time per iteration, counterfactual steps included, and the paper's.

        It is measured on this session's data points; without any, on those of earlier sessions.
        """
        times: dict[str, dict[str, float | None]] = {}
        for world in dict.fromkeys(world for world, _ in self._iterations):
            here = self._iterations.get((world, False)) or self._iterations[world, True]
            times[world] = {"measured": 1e3 * here[0] / here[1], "paper": PAPER_MILLISECONDS.get(world)}
        return times

    def verdict(self) -> dict[str, Any]:
        """Test the claims on the finished units, and write verdict.json."""
        result = verdict(self.tables.episodes(), self.tables.points())
        for world, times in self.milliseconds().items():
            result[world]["milliseconds_per_iteration"] = times
        self.store.write_json("verdict.json", result)
        return result
