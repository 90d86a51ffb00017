"""The bandit demo: every rule in the same linear world, with its regret, its loss and their bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.bandit.batch import BanditBatch
from blendctl.bandit.linear_world import LinearWorld, play
from blendctl.bandit.rules import RULES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class RuleResult:
    """Results of one rule by stage, averaged over the learners."""

    rule: str
    regret: FloatArray  # (stages,) cumulative Pareto regret
    loss: FloatArray  # (stages,) average maximal loss so far
    loss_bound: FloatArray  # (stages,) its bound (Theorem 2)
    shares: FloatArray  # (arms,) share of pulls
    regret_bound: FloatArray | None  # (stages,) Theorem 1, for the rules that it bounds

    def summary(self) -> dict[str, Any]:
        """Return the final numbers as JSON data."""
        return {
            "pareto_regret": float(self.regret[-1]),
            "regret_bound": None if self.regret_bound is None else float(self.regret_bound[-1]),
            "average_loss": float(self.loss[-1]),
            "loss_bound": float(self.loss_bound[-1]),
            "arm_shares": [float(share) for share in self.shares],
        }


def run_demo(
    *,
    stages: int,
    learners: int,
    features: int,
    arms: int,
    objectives: int,
    noise: float,
    seed: int,
    progress: Callable[[str, int], None] = lambda rule, stage: None,
) -> list[RuleResult]:
    """Run every rule on the same draws of a linear world; progress(rule, stage) is called after every stage."""
    world = LinearWorld.draw(
        np.random.default_rng(seed), features=features, objectives=objectives, arms=arms, noise=noise
    )
    results = []
    for rule in RULES:
        batch = BanditBatch(
            learners, n_features=features, n_objectives=objectives, noise=noise, theta_bound=1.0, rule=rule, seed=seed
        )
        gap, loss, bound = np.zeros(stages), np.zeros(stages), np.zeros(stages)
        pulls = np.zeros(arms)
        for record in play(world, batch, stages=stages, rng=np.random.default_rng(seed + 1)):
            gap[record.stage] = record.gap.mean()
            loss[record.stage] = record.loss.mean()
            bound[record.stage] = record.bound.mean()
            pulls += np.bincount(record.arm, minlength=arms)
            progress(rule, record.stage)
        count, bandit = np.arange(1, stages + 1), batch.learner(0)
        bounds = [bandit.regret_bound(t) for t in range(1, stages + 1) if bandit.has_regret_bound]
        results.append(
            RuleResult(
                rule=rule,
                regret=np.cumsum(gap),
                loss=np.cumsum(loss) / count,
                loss_bound=np.cumsum(bound) / count,
                shares=pulls / pulls.sum(),
                regret_bound=np.array(bounds) if bounds else None,
            )
        )
    return results


def draw_demo(results: list[RuleResult]) -> Figure:
    """Draw regret under its bound, and average loss under its bound, on logarithmic axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    stages = np.arange(1, len(results[0].regret) + 1)
    styles = ["-", "--", "-.", ":"]
    palette = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#666666", "#AAAAAA", "#8B5A2B"]
    for i, result in enumerate(results):
        width = 2.4 if i == 0 else 1.2
        style = {"color": palette[i % len(palette)], "linestyle": styles[i % len(styles)], "linewidth": width}
        left.plot(stages, np.maximum(result.regret, 1e-3), label=result.rule, **style)
        right.plot(stages, result.loss, label=result.rule, **style)
    best = results[0]  # the paper's rule; the regret bound is the same for all rules that have one
    if best.regret_bound is not None:
        left.plot(stages, best.regret_bound, color="black", linewidth=1)
    right.plot(stages, best.loss_bound, color="black", linewidth=1, label=f"bounds of {best.rule}")
    left.set(xscale="log", yscale="log", xlabel="stage", ylabel="Pareto regret", title="Pareto regret")
    right.set(xscale="log", yscale="log", xlabel="stage", ylabel="average maximal loss", title="Average maximal loss")
    for axes in (left, right):
        axes.grid(alpha=0.25, which="both", linewidth=0.4)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*right.get_legend_handles_labels(), loc="outside right upper", fontsize=8, frameon=False)
    return figure
