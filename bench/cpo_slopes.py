"""Measure how much of a CPO step's predicted change of return and cost appears on other rollouts.

Collect several rollouts of one policy. Compute the steps H^-1 g (return) and H^-1 b (cost) on the first, then the
slopes of return and cost along them on the first and on the others, which are independent of the step.
`--controller PointGoal1/cpo`, `--rollouts 6`, `--steps 250 1000` (of 32 worlds each).
"""

from __future__ import annotations

import argparse

import numpy as np

from blendctl.controllers import load
from blendctl.training import TrainConfig, Trainer
from blendctl.training.algorithm import standardised
from blendctl.training.trust_region import conjugate_gradient, fisher_product, gradient, surrogate


def main() -> None:
    """Print a table with one row per rollout size and slope."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--controller", default="PointGoal1/cpo")
    parser.add_argument("--rollouts", type=int, default=6)
    parser.add_argument("--steps", type=int, nargs="+", default=[250, 1000])
    options = parser.parse_args()
    world = options.controller.partition("/")[0]
    print("| rows | slope of | along the step for | on its own rows | on other rows: mean, standard error |")
    print("|---|---|---|---|---|")
    for steps in options.steps:
        config = TrainConfig.from_dict({"world": world, "algo": "cpo", "rollout": steps})
        run = Trainer(config, start_from=load(options.controller))
        run.collector.rollout(1000, discount=config.discount, gae=config.gae)  # leave the initial states
        policy = run.policy
        slopes = []
        for index in range(options.rollouts):
            batch = run.collector.rollout(steps, discount=config.discount, gae=config.gae)
            cost = batch.cost_advantages - batch.cost_advantages.mean()
            advantages = {"return": standardised(batch.advantages), "cost": cost}
            slopes.append({name: gradient(surrogate(policy, batch, a), policy) for name, a in advantages.items()})
            if index == 0:
                product = fisher_product(policy, batch, rows=config.fisher_rows, damping=config.damping)
                directions = {
                    name: conjugate_gradient(product, slope, steps=config.cg_steps) for name, slope in slopes[0].items()
                }
        for aim, direction in directions.items():
            for name in ("return", "cost"):
                same, *others = (float(slope[name] @ direction) for slope in slopes)
                error = np.std(others, ddof=1) / np.sqrt(len(others))
                print(f"| {32 * steps:,} | {name} | {aim} | {same:.4f} | {np.mean(others):.4f} ± {error:.4f} |")


if __name__ == "__main__":
    main()
