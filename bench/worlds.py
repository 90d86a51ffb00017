"""Time the worlds against their own physics: everything included, as a share of MuJoCo's raw speed.

Raw is one thread's `mj_step` loop on the same model, over the same worlds and actions, divided by the number of
threads. Rounds alternate raw and ours with the same trajectories, and of every step the fastest round counts, so that a
busy moment does not decide. The vector form's time includes its resets, one in a thousand steps.

    python bench/worlds.py PointGoal1 CarButton1 --rounds 5
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import gymnasium
import mujoco
import numpy as np
from rich.console import Console
from rich.table import Table

from blendctl.envs import NAMES, VectorWorld, find_task, world_id
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.kernels import load_world
from blendctl.envs.physics import make_slot

GOALS = {
    "PointGoal1": (0.70, 3.0),
    "PointPush1": (0.80, None),
    "CarButton1": (0.80, 1.6),
}  # ratio, single form
EPISODE = 1000  # steps per reset


@dataclass(frozen=True)
class Timing:
    """Times in milliseconds per world-step."""

    raw: float  # one thread, divided by the number of threads
    vector: float  # with its share of a reset
    single: float
    reset: float  # ms per reset in the vector form, on all threads


def placed(worlds: VectorWorld, row: int) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a separate model and data with one world's layout and state."""
    slot, (model, data) = make_slot(worlds.batch.model)
    load_world(worlds.batch.compiled_task, slot, worlds.batch.worlds, row)
    return model, data


def time_raw(worlds: VectorWorld, actions: np.ndarray) -> np.ndarray:
    """Return seconds (n, steps) of a bare mj_step loop over actions (steps, n, act) from the worlds' first states."""
    worlds.reset(seed=0)
    steps, n = actions.shape[:2]
    times = np.empty((n, steps))
    for row in range(n):
        model, data = placed(worlds, row)
        for k, action in enumerate(actions[:, row]):
            start = time.perf_counter()
            data.ctrl[:] = action
            if model.nmocap:
                data.mocap_pos[:] = 0.35 * np.sin(data.time), 0.35 * np.cos(data.time), 0.1
            mujoco.mj_step(model, data, nstep=SUBSTEPS)
            times[row, k] = time.perf_counter() - start
    return times


def time_vector(worlds: VectorWorld, actions: np.ndarray) -> np.ndarray:
    """Return seconds (1 + steps,) of a reset and of the steps of all worlds."""
    clock = [time.perf_counter()]
    worlds.reset(seed=0)
    clock.append(time.perf_counter())
    for action in actions:
        worlds.step(action)
        clock.append(time.perf_counter())
    return np.diff(clock)


def time_single(name: str, actions: np.ndarray) -> np.ndarray:
    """Return seconds (n, steps) of the single form as gymnasium.make returns it, in one world after the other."""
    env = gymnasium.make(world_id(name))
    times = np.empty((actions.shape[1], actions.shape[0]))
    for row in range(actions.shape[1]):
        env.reset(seed=row)
        for k, action in enumerate(actions[:, row]):
            start = time.perf_counter()
            env.step(action)
            times[row, k] = time.perf_counter() - start
    return times


def time_world(name: str, *, num_envs: int, threads: int, steps: int, rounds: int) -> Timing:
    """Alternate raw, vector and single; every step's fastest round counts."""
    actions = np.random.default_rng(0).uniform(-1, 1, (steps, num_envs, 2))
    worlds = VectorWorld(find_task(name), num_envs, threads=threads)
    time_vector(worlds, actions[:2])  # compiles
    raws, vectors, singles = [], [], []
    for _ in range(rounds):
        raws.append(time_raw(worlds, actions))
        vectors.append(time_vector(worlds, actions))
        singles.append(time_single(name, actions))
    worlds.close()
    raw, vector, single = (1e3 * np.min(times, axis=0) for times in (raws, vectors, singles))
    reset = vector[0] / num_envs
    return Timing(raw.mean() / threads, vector[1:].mean() / num_envs + reset / EPISODE, single.mean(), reset)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--num-envs", default=64, show_default=True, help="Worlds in the vector form.")
@click.option("--threads", default=2, show_default=True, help="Threads of the vector form.")
@click.option("--steps", default=100, show_default=True, help="Steps of every world in a round.")
@click.option("--rounds", default=3, show_default=True, help="Rounds; the fastest counts.")
@click.option("--json", "target", type=click.Path(path_type=Path), help="Write the figures there.")
def main(names: tuple[str, ...], num_envs: int, threads: int, steps: int, rounds: int, target: Path | None) -> None:
    """Time worlds by NAME (all eighteen by default)."""
    table = Table(title=f"{num_envs} worlds, {threads} threads: ms per world-step, MuJoCo {mujoco.__version__}")
    for column in ("world", "raw", "vector", "ratio", "goal", "single", "x raw", "at most", "reset ms"):
        table.add_column(column, justify="left" if column == "world" else "right")
    figures = {}
    for name in names or NAMES:
        t = time_world(name, num_envs=num_envs, threads=threads, steps=steps, rounds=rounds)
        ratio, slower = t.raw / t.vector, t.single / (t.raw * threads)
        goal, limit = GOALS.get(name, (None, None))
        figures[name] = asdict(t) | {"ratio": ratio, "single_over_raw": slower}
        cells = [f"{t.raw:.4f}", f"{t.vector:.4f}", f"{ratio:.2f}", f"{goal or ''}"]
        cells += [f"{t.single:.4f}", f"{slower:.2f}", f"{limit or ''}", f"{t.reset:.3f}"]
        table.add_row(name, *cells)
        Console(stderr=True).print(f"{name}: ratio {ratio:.2f}, single {slower:.2f}x raw, reset {t.reset:.3f} ms")
    Console().print(table)
    if target is not None:
        target.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
