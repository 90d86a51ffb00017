"""Time a sweep of units on 1 and 2 workers of each engine: seconds, efficiency, overhead per unit.

A unit is a tenth of a data point: one controller in 30 worlds of PointGoal1, 100 steps. Workers are warm when the clock
starts: as many units as there are workers run before. Efficiency is the time of one process, divided by workers
and time. The overhead is the scheduler's processor time, measured on units that do almost nothing.

    python bench/scaling.py --units 24 --json bench/results/scaling.json
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from blendctl.controllers.zoo import PAIRS
from blendctl.experiments import Store, Unit, run_units
from blendctl.experiments.protocol import first_seed

CLUSTERS = (10, 100, 1000)  # CPUs of the projection
SWEEP = 10_000  # units of the projection


def sweep(count: int, *, steps: int, trial: int) -> list[Unit]:
    """Make units that no store contains."""
    return [
        Unit(
            "blendctl.experiments.baseline_units:baseline",
            {
                "world": "PointGoal1",
                "controllers": [PAIRS["PointGoal1"][0]],
                "first_seed": first_seed(0, trial, number),
                "noise_seed": number,
                "episodes": 30 if steps > 1 else 1,
                "steps": steps,
            },
        )
        for number in range(count)
    ]


def timed(engine: str, workers: int, *, count: int, steps: int, trial: int, folder: Path) -> float:
    """Return the seconds for `count` units, measured after every worker has run one."""
    units = sweep(count + workers, steps=steps, trial=trial)
    store = Store(folder / f"{engine}{workers}-{trial}", "scaling", identity={})
    started = 0.0
    running = run_units(units, store=store, engine=engine, workers=workers)
    for number, _ in enumerate(running, start=1):
        if number == workers:
            started = time.perf_counter()
    return time.perf_counter() - started


def beside(count: int, folder: Path) -> float:
    """Return the scheduler's milliseconds of processor time per unit, on two processes."""
    units = sweep(count, steps=1, trial=99)
    store = Store(folder / "beside", "scaling", identity={})
    started = time.process_time()
    for _ in run_units(units, store=store, engine="processes", workers=2):
        pass
    return 1e3 * (time.process_time() - started) / count


@click.command()
@click.option("--units", default=24, show_default=True, help="Units per measurement.")
@click.option("--engines", default="processes,ray", show_default=True, help="Which engines.")
@click.option("--json", "target", type=click.Path(path_type=Path), help="Write the figures there.")
def main(units: int, engines: str, target: Path | None) -> None:
    """Time sweeps on 1 and 2 workers."""
    table = Table(title=f"{units} units of 3,000 steps")
    for column in ("engine", "workers", "seconds", "efficiency"):
        table.add_column(column, justify="right")
    figures: dict[str, object] = {"units": units}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        one = None
        for engine in engines.split(","):
            for workers in (1, 2):
                seconds = timed(engine, workers, count=units, steps=100, trial=workers, folder=folder)
                one = one or seconds
                efficiency = one / (workers * seconds)
                figures[f"{engine} {workers}"] = {"seconds": seconds, "efficiency": efficiency}
                table.add_row(engine, str(workers), f"{seconds:.2f}", f"{efficiency:.2f}")
        cost = beside(200, folder)
    figures["scheduler_ms_per_unit"] = cost
    Console().print(table)
    Console().print(f"the scheduler spends {cost:.2f} ms of processor time per unit")
    assert one is not None
    work = 10 * one / units  # seconds of a whole data point
    for cpus in CLUSTERS:
        hours = SWEEP * max(work / cpus, cost / 1e3) / 3600
        Console().print(f"{SWEEP:,} data points on {cpus:>5} CPUs: {hours:.2f} h, if CPUs are as fast as these")
    if target is not None:
        target.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
