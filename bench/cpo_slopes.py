"""How much of what a CPO step promises do other rollouts see?

Several rollouts of one policy; the steps H^-1 g (return) and H^-1 b (cost) are made from the first, and the slopes of
return and cost along them are taken on the first and on the others, where they are free of the step's own luck.
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
    """Print a table, a row per size of the rollouts and slope."""
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
        run.collector.rollout(1000, discount=config.discount, gae=config.gae)  # away from the starts
        policy = run.policy
        slopes = []
        for index in range(options.rollouts):
            batch = run.collector.rollout(steps, discount=config.discount, gae=config.gae)
            harm = batch.cost_advantages - batch.cost_advantages.mean()
            gains = {"return": standardised(batch.advantages), "cost": harm}
            slopes.append({name: gradient(surrogate(policy, batch, a), policy) for name, a in gains.items()})
            if index == 0:
                product = fisher_product(policy, batch, rows=config.fisher_rows, damping=config.damping)
                ways = {
                    name: conjugate_gradient(product, slope, steps=config.cg_steps) for name, slope in slopes[0].items()
                }
        for aim, way in ways.items():
            for name in ("return", "cost"):
                own, *others = (float(slope[name] @ way) for slope in slopes)
                error = np.std(others, ddof=1) / np.sqrt(len(others))
                print(f"| {32 * steps:,} | {name} | {aim} | {own:.4f} | {np.mean(others):.4f} ± {error:.4f} |")


if __name__ == "__main__":
    main()
