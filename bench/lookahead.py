"""Time simulated look-ahead against the naive rollout and against real time, and score the gain of more simulation.

One robot decides every `hold` control steps. The same decisions are simulated three times in the same run: the futures
side by side on all cores, as `SimulatedLookAhead` does, the same on one core, and naively, one future after another in
a second world that is restored from a snapshot. The real-time factor is the time of a stage divided by the time of its
decision; 1 or more drives a robot.
With --episodes, the corner score follows, against samples, horizon and cadence, one of them changed at a time.

    python bench/lookahead.py PointGoal1 --decisions 20
    python bench/lookahead.py PointGoal1 --episodes 40 --seed 0
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from blendctl.controllers import load
from blendctl.controllers.card import versions
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import SingleWorld
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.thread_pool import available_cores
from blendctl.episodes import Episodes, run_episodes
from blendctl.experiments.corner import score_episodes
from blendctl.features import SimulatedLookAhead
from blendctl.switches import METHODS, open_worlds

RESULTS = Path(__file__).parent / "results" / "lookahead.json"
# One setting changes at a time, the others are the defaults.
SWEEP = {"samples": (1, 3, 6), "horizon": (10, 20, 40, 60), "hold": (5, 10, 20)}


def naive(world: SingleWorld, second: SingleWorld, pair: list[Any], *, horizon: int, samples: int) -> None:
    """Roll out every controller, one future after another."""
    start = world.snapshot()
    for sample in range(samples):
        for controller in pair:
            second.restore(start)
            second.batch.seed(0, sample)
            observation, rng = second.observation, np.random.default_rng(sample)
            for _ in range(horizon):
                observation, _, terminated, truncated, _ = second.step(controller.act(observation, rng))
                if terminated or truncated:
                    break


def time_decisions(name: str, *, decisions: int, seed: int, samples: int, horizon: int) -> dict[str, float]:
    """Return milliseconds per decision (median, 95% quantile), on one core and naively, and the real-time factor."""
    pair: list[Any] = [load(zoo_name) for zoo_name in PAIRS[name]]
    world, second = SingleWorld(name), SingleWorld(name)
    second.reset(seed=0)
    observation, _ = world.reset(seed=seed)
    made = SimulatedLookAhead(world, horizon=horizon, samples=samples, following="same")
    bound: Any = made.bind(pair, objectives=2)
    alone: Any = replace(made, threads=1).bind(pair, objectives=2)
    ours, single, plain = [], [], []
    for number in range(decisions + 1):  # the first one compiles
        for feature, times in ((bound, ours), (alone, single)):
            begin = time.perf_counter()
            feature.simulate(observation[None])
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        naive(world, second, pair, horizon=horizon, samples=samples)
        plain.append(time.perf_counter() - begin)
        for _ in range(made.hold):
            observation, *_ = world.step(pair[number % 2].act(observation))
    stage = 1e3 * world.batch.compiled_task.timestep * SUBSTEPS * made.hold
    median, one_core, slow = (1e3 * np.median(times[1:]) for times in (ours, single, plain))
    return {
        "stage_ms": stage,
        "decision_ms": float(median),
        "decision_ms_q95": float(1e3 * np.quantile(ours[1:], 0.95)),
        "one_core_ms": float(one_core),
        "faster_than_one_core": float(one_core / median),
        "naive_ms": float(slow),
        "faster_than_naive": float(slow / median),
        "real_time_factor": float(stage / median),
        "steps_per_decision": bound.simulated_steps / (decisions + 1),
    }


def drive(name: str, pair: list[Any], *, episodes: int, seed: int, make: Callable[..., Any]) -> Episodes:
    """Run the episodes of a method in lock-step."""
    worlds = open_worlds(name, episodes, threads=None)
    try:
        return run_episodes(worlds, pair, make=make, seed=seed)
    finally:
        worlds.close()


def scores(name: str, *, episodes: int, seed: int) -> list[dict[str, Any]]:
    """Return the corner score of every setting of the sweep, on the same episodes."""
    pair: list[Any] = [load(zoo_name) for zoo_name in PAIRS[name]]

    def run(method: str, setting: dict[str, Any]) -> Episodes:
        made = METHODS[method]
        return drive(name, pair, episodes=episodes, seed=seed, make=lambda context: made.make(context, setting, {}))

    alone = [run("performant", {}), run("safe", {})]
    rows = []
    default = METHODS["simulated"].settings[0]
    settings = [default, *(default | {key: v} for key, values in SWEEP.items() for v in values if v != default[key])]
    for setting in settings:
        begin = time.perf_counter()
        found = run("simulated", setting)
        tables = [np.stack([one.returns, one.costs], axis=1) for one in (found, *alone)]
        score = score_episodes(*tables, rng=np.random.default_rng(0))
        rows.append(
            setting
            | {"return": float(found.returns.mean()), "cost": float(found.costs.mean())}
            | {"corner": score.value, "ci95": score.interval, "seconds": time.perf_counter() - begin}
        )
        Console(stderr=True).print(rows[-1])
    return rows


@click.command()
@click.argument("names", nargs=-1)
@click.option("--decisions", default=30, show_default=True, help="Decisions that are timed.")
@click.option(
    "--samples", default=SimulatedLookAhead.samples, show_default=True, help="Futures per controller at most."
)
@click.option("--horizon", default=SimulatedLookAhead.horizon, show_default=True, help="Control steps of a future.")
@click.option("--episodes", default=0, show_default=True, help="Episodes per setting of the corner score; 0: none.")
@click.option("--seed", default=0, show_default=True, help="Random seed.")
@click.option("--json", "target", type=click.Path(path_type=Path), default=RESULTS, help="Write the figures there.")
def main(
    names: tuple[str, ...], decisions: int, samples: int, horizon: int, episodes: int, seed: int, target: Path
) -> None:
    """Time decisions in worlds by NAME (the paper's three by default)."""
    table = Table(title=f"simulated look-ahead, {available_cores()} cores: ms per decision")
    columns = ("stage", "decision", "95%", "one core", "naive", "x one core", "x naive", "real-time factor")
    for column in ("world", *columns):
        table.add_column(column, justify="left" if column == "world" else "right")
    figures: dict[str, Any] = {}
    for name in names or tuple(PAIRS):
        t = time_decisions(name, decisions=decisions, seed=seed, samples=samples, horizon=horizon)
        figures[name] = t
        table.add_row(
            name,
            *(f"{t[key]:.1f}" for key in ("stage_ms", "decision_ms", "decision_ms_q95", "one_core_ms", "naive_ms")),
            *(f"{t[key]:.2f}" for key in ("faster_than_one_core", "faster_than_naive", "real_time_factor")),
        )
        if episodes:
            figures[name] |= {"episodes": episodes, "seed": seed, "scores": scores(name, episodes=episodes, seed=seed)}
    Console().print(table)
    about = {
        "command": "python " + " ".join(sys.argv),
        "cores": available_cores(),
        "versions": versions("numpy", "numba", "mujoco"),
    }
    target.write_text(json.dumps(about | {"worlds": figures}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
