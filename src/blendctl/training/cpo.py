"""CPO: constrained policy optimisation (Achiam et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from blendctl.training import trust_region as region
from blendctl.training.algorithm import Algorithm, Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.dual import solve_dual
from blendctl.training.policy import Policy


class CPO(Algorithm):
    """Maximise the return in a trust region of policies whose cost, to first order, stays within its limit."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        super().__init__(policy, config)
        self.margin = 0.0  # cost per episode by which the limit is tightened
        self.recovering = False  # whether the latest step only reduced the cost

    def update_policy(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Solve the quadratic model of the constrained problem, then search along its solution."""
        policy, config = self.policy, self.config
        advantages, _ = self.advantages(batch)
        # Centred, but not scaled: the limit is in the unit of the cost.
        cost_advantages = batch.cost_advantages - batch.cost_advantages.mean()
        over = batch.episode_cost - config.cost_limit
        # The decrease of cost that a step predicts on its own rollout is mostly noise: other rollouts show little
        # of it, and steps that meet the limit by their own estimate leave the true cost above it. So a lasting
        # excess tightens the limit. It stops growing in recovery, where a larger margin cannot change the step.
        if over < 0.0 or not self.recovering:
            self.margin = max(self.margin + config.margin_rate * over, 0.0)
        # The surrogate of the cost is per step, so the excess is too.
        excess = (over + self.margin) / batch.episode_length

        g = region.gradient(region.surrogate(policy, batch, advantages) + config.entropy * policy.entropy(), policy)
        b = region.gradient(region.surrogate(policy, batch, cost_advantages), policy)
        product = region.fisher_product(policy, batch, rows=config.fisher_rows, damping=config.damping)
        v = region.conjugate_gradient(product, g, steps=config.cg_steps)  # H⁻¹ g
        w = region.conjugate_gradient(product, b, steps=config.cg_steps)  # H⁻¹ b
        q, r, s = float(v @ product(v)), float(v @ product(w)), float(w @ product(w))
        dual = solve_dual(q, r, s, c=excess, delta=config.target_kl)
        step = dual.along_return * v + dual.along_cost * w
        self.recovering = dual.case == "recovery"

        before, cost_before = float(advantages.mean()), float(cost_advantages.mean())

        def accepts() -> bool:
            if not float(region.mean_divergence(policy, batch)) <= 1.5 * config.target_kl:
                return False
            # While the cost is too high it must not rise, and the return may fall.
            if float(region.surrogate(policy, batch, cost_advantages)) > cost_before + max(-excess, 0.0):
                return False
            return excess > 0.0 or float(region.surrogate(policy, batch, advantages)) > before

        fraction = region.line_search(policy, step, accepts=accepts, config=config)
        with torch.no_grad():
            divergence = float(region.mean_divergence(policy, batch))
        cases = {f"case_{name}": float(dual.case == name) for name in ("bound", "inactive", "recovery", "degenerate")}
        return {
            "kl": divergence,
            "step_fraction": fraction,
            "multiplier": min(dual.price, config.multiplier_max),
            "margin": self.margin,
            "entropy": float(policy.entropy().detach()),
        } | cases

    def state(self) -> dict[str, Any]:
        """Return the margin and whether the latest step was a recovery."""
        return {"margin": self.margin, "recovering": self.recovering}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.margin = float(state.get("margin", 0.0))
        self.recovering = bool(state.get("recovering", False))
