"""Measure the effect of a handover on return, cost and jumps of the action.

    python bench/handover.py [--episodes 20] [--json bench/results/handover.json]

The shipped pairs drive the same episodes with a cost budget of 25 and mean actions, without and with a handover. Jerk
is the mean change of the action between two control steps.
"""

from __future__ import annotations

import argparse
import json
import platform
from contextlib import closing
from pathlib import Path

import numpy as np

from blendctl import Blender
from blendctl.controllers import load
from blendctl.controllers.zoo import PAIRS
from blendctl.envs import SingleWorld
from blendctl.episodes import drive_blend
from blendctl.statistics import mean_interval

HANDOVERS = (None, "slew:0.1", "fade:5")
SEED = 5000


def measure(world: str, handover: str | None, episodes: int) -> dict[str, object]:
    """Return means over the episodes, with 95% intervals of return and cost."""
    pair = [load(name) for name in PAIRS[world]]
    options = {"cost_budget": 25.0, "fallback": "safe", "stochastic": False, "handover": handover}
    with closing(SingleWorld(world)) as env:
        rows = [
            drive_blend(env, Blender(pair, ["fast", "safe"], seed=seed, **options), seed=SEED + seed)[0]
            for seed in range(episodes)
        ]
    columns = {
        name: np.array([row[name] for row in rows]) for name in ("return", "cost", "switches", "moved", "length")
    }
    return {
        "world": world,
        "handover": handover or "none",
        "return_mean": float(columns["return"].mean()),
        "return_ci95": mean_interval(columns["return"]),
        "cost_mean": float(columns["cost"].mean()),
        "cost_ci95": mean_interval(columns["cost"]),
        "switches": float(columns["switches"].mean()),
        "jerk": float((columns["moved"] / (columns["length"] - 1)).mean()),
    }


def main() -> None:
    """Print a line per world and handover, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "handover.json")
    options = parser.parse_args()
    results = []
    for world in PAIRS:
        for handover in HANDOVERS:
            row = measure(world, handover, options.episodes)
            results.append(row)
            print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    about = {"command": "python bench/handover.py", "python": platform.python_version(), "episodes": options.episodes}
    options.json.write_text(json.dumps(about | {"results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
