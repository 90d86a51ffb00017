"""Compare the twin's rebuilt worlds with the true ones, with and without its memory.

The two controllers of a world take turns at random. At every decision the scene is rebuilt; counted are the objects
that have a rebuilt one within 5 cm. At every fourth decision both controllers are simulated in the true world and in
the twin; compared are the differences between the controllers, return - weight * cost. The true world with other
random draws shows what is noise.

    python bench/twin.py PointGoal1 --episodes 10 --decisions 60 --seed 500000
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
from gymnasium.vector import AutoresetMode
from rich.console import Console
from rich.progress import track
from rich.table import Table

from blendctl.controllers import load
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.card import versions
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import VectorWorld
from blendctl.features import SimulatedLookAhead, Twin

RESULTS = Path(__file__).parent / "results" / "twin.json"
NEAR = 0.05  # m
HOLD, TURN = 5, 4  # control steps per decision, decisions per turn and per simulation
SETTINGS: dict[str, Any] = {"horizon": 30, "samples": 1, "prefer": 0.5}


def offsets(plan: Any, worlds: Any, items: slice) -> np.ndarray:
    """Return the positions of items relative to the robot, (n, items, 2)."""
    places = [
        worlds.qpos[:, at : at + 2] if at >= 0 else worlds.xy[:, item]
        for item, at in enumerate(plan.qpos_at[items], start=items.start)
    ]
    return np.stack(places, axis=1) - worlds.position[:, None, :2]


def compare(name: str, *, episodes: int, decisions: int, seed: int) -> dict[str, Any]:
    """Return per simulator: the share of right objects by kind, correlation and agreement with the true world."""
    pair: list[Any] = [load(zoo_name) for zoo_name in PAIRS[name]]
    worlds = VectorWorld(name, episodes, autoreset_mode=AutoresetMode.DISABLED)
    observations, _ = worlds.reset(seed=seed)
    features: dict[str, Any] = {
        "true world": SimulatedLookAhead(worlds, **SETTINGS),
        "other draws": SimulatedLookAhead(worlds, seed=1, **SETTINGS),
        "memory": SimulatedLookAhead(Twin(name), **SETTINGS),
        "last observation": SimulatedLookAhead(Twin(name, memory=False), **SETTINGS),
    }
    bound: dict[str, Any] = {label: made.bind(pair, objectives=2) for label, made in features.items()}
    plan, rng, rows = worlds.batch.compiled_task, np.random.default_rng(seed), np.arange(episodes)
    ends = np.cumsum([1, *(kind.count for kind in worlds.task.objects)])
    items = {kind.name: slice(*ends[i : i + 2]) for i, kind in enumerate(worlds.task.objects)}
    right: dict[str, dict[str, list[float]]] = {label: {kind: [] for kind in items} for label in list(bound)[2:]}
    ahead: dict[str, list[np.ndarray]] = {label: [] for label in bound}
    arm = rng.integers(2, size=episodes)
    for decision in track(range(decisions), name, console=Console(stderr=True)):
        steps = np.full(episodes, decision * HOLD)
        for label, feature in bound.items():
            feature.begin_stage(np.zeros(episodes), steps)
            if label in right:
                rebuilt = feature._simulator.open(observations, rows, rows, steps).worlds
                for kind, where in items.items():
                    truth, found = offsets(plan, worlds.batch.worlds, where), offsets(plan, rebuilt, where)
                    apart = np.linalg.norm(truth[:, :, None] - found[:, None], axis=3).min(axis=2)
                    right[label][kind].append(float((apart < NEAR).mean()))
            if decision % TURN == TURN - 1:
                estimate = feature.simulate(observations)
                score = estimate.returns - feature.weight[:, None] * estimate.costs
                ahead[label].append(score[:, 0] - score[:, 1])
        if decision % TURN == 0:
            arm = rng.integers(2, size=episodes)
        for _ in range(HOLD):
            actions = np.stack([act_rows(controller, observations, rng) for controller in pair])
            observations, *_ = worlds.step(np.clip(actions[arm, rows], -1.0, 1.0))
            observations = observations.copy()
    worlds.close()
    truth = np.concatenate(ahead["true world"])
    figures: dict[str, Any] = {}
    for label in list(bound)[1:]:
        other = np.concatenate(ahead[label])
        figures[label] = {
            "right": {kind: float(np.mean(shares)) for kind, shares in right.get(label, {}).items()},
            "correlation": float(np.corrcoef(truth, other)[0, 1]),
            "same_choice": float(((truth > 0) == (other > 0)).mean()),
            "regret": float((np.maximum(truth, 0.0) - np.where(other > 0, truth, 0.0)).mean()),
        }
    return figures


@click.command()
@click.argument("names", nargs=-1)
@click.option("--episodes", default=10, show_default=True, help="Worlds in lock-step.")
@click.option("--decisions", default=60, show_default=True, help="Decisions per episode.")
@click.option("--seed", default=500_000, show_default=True, help="Random seed.")
@click.option("--json", "target", type=click.Path(path_type=Path), default=RESULTS, help="Write the figures there.")
def main(names: tuple[str, ...], episodes: int, decisions: int, seed: int, target: Path) -> None:
    """Compare scenes and choices in worlds by NAME (the paper's three by default)."""
    table = Table(title="the twin against the true world")
    for column in ("world", "futures from", "right within 5 cm", "correlation", "same choice", "regret"):
        table.add_column(column)
    figures = {}
    for name in names or tuple(PAIRS):
        figures[name] = compare(name, episodes=episodes, decisions=decisions, seed=seed)
        for label, f in figures[name].items():
            right = ", ".join(f"{kind} {share:.0%}" for kind, share in f["right"].items())
            table.add_row(name, label, right, *(f"{f[key]:.3f}" for key in ("correlation", "same_choice", "regret")))
    Console().print(table)
    about = {"command": "python " + " ".join(sys.argv), "versions": versions("numpy", "numba", "mujoco")}
    target.write_text(json.dumps(about | {"worlds": figures}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
