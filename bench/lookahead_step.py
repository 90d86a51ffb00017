"""Measure the time of looking ahead: one act + observe of look-ahead blends and of the paper's next-step blend.

    python bench/lookahead_step.py [--steps 500] [--rounds 5] [--json bench/results/lookahead_step.json]

All blenders see the same observations of PointGoal1, recorded before; no physics is measured. Of every step the
fastest round counts. A look-ahead blender decides once per stage, so steps that decide and steps that do not are
reported apart. `ratio` is to the step of the next-step blend. The loading time is that of `Blender(...)`, which finds
and reads the networks by their digests.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from blendctl import Blender
from blendctl.controllers import load, open_controller
from blendctl.controllers.zoo import LOOKAHEAD_SETS, PAIRS
from blendctl.envs import SingleWorld

WARM_UP = 50  # steps that do not count


def observed(steps: int) -> np.ndarray:
    """Return the observations of an episode driven by the performant controller, (steps, observation_size)."""
    world, driver = SingleWorld("PointGoal1", max_episode_steps=10**9), load(PAIRS["PointGoal1"][0])
    rows = [world.reset(seed=0)[0]]
    while len(rows) < steps:
        rows.append(world.step(driver.act(rows[-1]))[0])
    world.close()
    return np.array(rows)


def microseconds(observations: np.ndarray, rounds: int, names: Sequence[str], **options: object) -> dict[str, float]:
    """Measure act + observe: the mean of a control step, and of those that decide and those that do not."""
    controllers = [open_controller(name, world="PointGoal1") for name in names]
    best = np.full(len(observations), np.inf)
    decides = np.zeros(len(observations), bool)
    loading = np.inf
    for _ in range(rounds):
        begun = time.perf_counter()
        blender = Blender(controllers, names, fallback=names[-1], seed=0, **options)
        loading = min(loading, time.perf_counter() - begun)
        for at, observation in enumerate(observations):
            begun = time.perf_counter()
            blender.act(observation)
            blender.observe(0.01, 0.0)
            best[at] = min(best[at], time.perf_counter() - begun)
            decides[at] = blender.choice.step == blender.step
    counted, decided = best[WARM_UP:] * 1e6, decides[WARM_UP:]
    held = counted[~decided]
    return {
        "step_us": float(counted.mean()),
        "deciding_step_us": float(counted[decided].mean()),
        **({"held_step_us": float(held.mean())} if len(held) else {}),
        "deciding_step_p99_us": float(np.percentile(counted[decided], 99)),
        "loading_ms": loading * 1e3,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, default=Path(__file__).parent / "results" / "lookahead_step.json")
    arguments = parser.parse_args()
    observations = observed(arguments.steps)
    pair, everyone = PAIRS["PointGoal1"], LOOKAHEAD_SETS["PointGoal1"]
    results = {
        "predictions": microseconds(observations, arguments.rounds, pair, features="predictions"),
        "lookahead": microseconds(observations, arguments.rounds, pair, features="lookahead", cost_budget=40.0),
        f"lookahead of {len(everyone)}": microseconds(
            observations, arguments.rounds, everyone, features="lookahead", cost_budget=40.0
        ),
    }
    for name, figures in results.items():
        figures["ratio"] = figures["step_us"] / results["predictions"]["step_us"]
        print(f"{name:14} " + ", ".join(f"{key} {value:.1f}" for key, value in figures.items()))
    about = {"command": "python bench/lookahead_step.py", "python": platform.python_version(), "numpy": np.__version__}
    arguments.json.write_text(json.dumps(about | results, indent=2) + "\n")


if __name__ == "__main__":
    main()
