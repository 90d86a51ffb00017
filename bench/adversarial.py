"""Measure regret and loss when the assumptions of the bounds break, with and without forgetting, against EXP4.

    python bench/adversarial.py [--learners 32] [--stages 2000] [--json bench/results/adversarial.json]

Worlds: stationary (nothing breaks); drift (theta turns round every 400 stages); adversary (the sign of theta is chosen
at every stage against the arm that the learner prefers, among contexts along its largest error); heavy tails (Student's
t with 2 degrees of freedom); unexplained (half of the feedback is not in the context). Learners: the rule of the paper,
the same with discount 0.99, EXP4 with an expert per feature and sign, and random arms. "noticed" is the share of lives
in which the check of the bound's assumptions raised an alarm.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blendctl import BanditBatch, pareto
from blendctl.blender.bound_check import BoundCheck

FloatArray = NDArray[np.float64]
WORLDS = ("stationary", "drift", "adversary", "heavy tails", "unexplained")
D, M, ARMS, NOISE, TURN = 3, 2, 4, 0.1, 400


class Exp4:
    """EXP4: exponential weights over experts, each of which recommends the arm with the largest or smallest feature."""

    def __init__(self, learners: int, stages: int, rng: np.random.Generator) -> None:
        self.rng, self.logs = rng, np.zeros((learners, 2 * D))
        self.rate = np.sqrt(2.0 * np.log(2 * D) / (stages * ARMS))

    def decide(self, psi: FloatArray) -> NDArray[np.intp]:
        """Draw an arm per learner for contexts (B, arms, D)."""
        advice = np.concatenate([psi.argmax(axis=1), psi.argmin(axis=1)], axis=1)  # (B, 2 D)
        weights = np.exp(self.logs - self.logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        self.hits = advice[:, :, None] == np.arange(ARMS)  # (B, experts, arms)
        chance = (weights[:, :, None] * self.hits).sum(axis=1)
        self.chance = (1 - ARMS * self.rate) * chance + self.rate
        return np.asarray([self.rng.choice(ARMS, p=row / row.sum()) for row in self.chance])

    def update(self, arm: NDArray[np.intp], feedback: FloatArray) -> None:
        """Learn from the mean of the objectives (B, M), scaled to [0, 1]."""
        rows = np.arange(len(arm))
        reward = np.clip(0.5 + feedback.mean(axis=1) / 4, 0, 1)
        self.logs += self.rate * self.hits[rows, :, arm] * (reward / self.chance[rows, arm])[:, None]


def live(world: str, learner: str, *, learners: int, stages: int, seed: int) -> dict[str, float]:
    """Run learners in a world; return the means per stage."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(learners, M, D))
    theta /= np.linalg.norm(theta, axis=-1, keepdims=True)
    options = {"discount": 0.99} if learner == "forgetting" else {}
    rule = "random" if learner == "random" else "maximal-loss"
    batch = BanditBatch(learners, D, M, noise=NOISE, theta_bound=1.0, seed=seed, rule=rule, **options)
    exp4 = Exp4(learners, stages, rng) if learner == "EXP4" else None
    checks = [BoundCheck(batch.learner(i)) for i in range(learners)]
    rows, sums, exceeded = np.arange(learners), np.zeros((3, learners)), np.zeros(learners, bool)
    for stage in range(stages):
        psi = rng.normal(size=(learners, ARMS, D))
        if world == "adversary":
            error = (batch.theta - theta)[:, 0]
            psi = error[:, None] * rng.choice([-1.0, 1.0], size=(learners, ARMS, 1)) + 0.3 * psi
        psi /= np.maximum(np.linalg.norm(psi, axis=-1, keepdims=True), 1e-9)
        sign = np.ones((learners, 1, 1))
        mean = np.einsum("bad,bmd->bam", psi, theta)
        if world == "drift":
            sign[:] = -1.0 if (stage // TURN) % 2 else 1.0
        elif world == "adversary":
            liked = np.einsum("bad,bmd->bam", psi, batch.theta).sum(axis=-1).argmax(axis=1)
            sign[:, 0, 0] = -np.sign(mean[rows, liked].sum(axis=-1) - mean.mean(axis=1).sum(axis=-1))
        mean = mean * sign
        if world == "unexplained":
            mean = mean + 0.5 * rng.normal(size=mean.shape)
        noise = rng.standard_t(2, size=(learners, M)) if world == "heavy tails" else rng.normal(size=(learners, M))
        decisions = batch.decide(psi)
        arm = decisions.arm if exp4 is None else exp4.decide(psi)
        feedback = mean[rows, arm] + NOISE * noise
        for i, check in enumerate(checks):
            check.observe(decisions[i], int(arm[i]), feedback[i])
        batch.update(psi[rows, arm], feedback)
        if exp4 is not None:
            exp4.update(arm, feedback)
        sums += [
            pareto.suboptimality_gap(mean)[rows, arm],
            pareto.maximal_loss(mean)[rows, arm],
            decisions.loss_bounds[rows, arm],
        ]
        exceeded |= sums[1] > sums[2]
    gap, loss, bound = sums.mean(axis=1) / stages
    noticed = np.mean([check.reason is not None for check in checks])
    return {
        "regret": float(gap), "loss": float(loss), "bound": float(bound),
        "exceeded": float(exceeded.mean()), "noticed": float(noticed),
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--learners", type=int, default=32)
    parser.add_argument("--stages", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results: dict[str, dict[str, dict[str, float]]] = {}
    print("| world | learner | Pareto regret per stage | loss | bound | lives above the bound | noticed |")
    print("|---|---|---|---|---|---|---|")
    for world in WORLDS:
        for learner in ("paper", "forgetting", "EXP4", "random"):
            row = live(world, learner, learners=args.learners, stages=args.stages, seed=args.seed)
            results.setdefault(world, {})[learner] = row
            shares = f"{row['exceeded']:.0%} | {row['noticed']:.0%}"
            print(
                f"| {world} | {learner} | {row['regret']:.4f} | {row['loss']:.3f} | {row['bound']:.3f} | {shares} |",
                flush=True,
            )
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        about = {"command": vars(args) | {"json": str(args.json)}, "platform": platform.platform()}
        args.json.write_text(json.dumps(about | {"results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
