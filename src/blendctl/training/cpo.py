"""CPO: constrained policy optimisation (Achiam et al. 2017)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from blendctl.training.algorithm import Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.critics import fit_critics
from blendctl.training.dual import solve_dual
from blendctl.training.policy import Policy
from blendctl.training.ppo_update import standardised
from blendctl.training.trust_region import (
    conjugate_gradient,
    fisher_product,
    gradient,
    line_search,
    mean_divergence,
    surrogate,
)

__all__ = ["CPO"]


class CPO:
    """Maximise the return in a trust region of policies whose cost, to first order, keeps its limit."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        self.policy = policy
        self.config = config
        self.optimisers = {"critics": torch.optim.Adam(policy.value_parameters(), lr=config.value_lr, eps=1e-5)}
        self.margin = 0.0  # cost per episode by which the limit is tightened
        self.recovering = False  # whether the latest step could do no more against the cost

    def update(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Improve policy and critics from one rollout."""
        moved = self.constrained_step(batch)
        fitted = fit_critics(self.policy, self.optimisers["critics"], batch=batch, config=self.config, rng=rng)
        return moved | fitted

    def constrained_step(self, batch: RolloutBatch) -> Metrics:
        """Solve the quadratic model of the constrained problem, then search along its solution."""
        policy, config = self.policy, self.config
        gain = standardised(batch.advantages)
        # Centred, not scaled: its size is what ties it to the limit.
        harm = batch.cost_advantages - batch.cost_advantages.mean()
        # Cost per step above its limit, the unit of the surrogate of the cost.
        over = batch.episode_cost - config.cost_limit
        # Of what a step promises on the rows it was made from, other rows see a small part: steps that keep the
        # limit by their own estimate leave the true cost above it. So a lasting excess tightens the limit, until
        # steps do nothing but reduce the cost: more margin would only have to be undone later.
        if over < 0.0 or not self.recovering:
            self.margin = max(self.margin + config.margin_rate * over, 0.0)
        excess = (over + self.margin) / batch.episode_length

        g = gradient(surrogate(policy, batch, gain) + config.entropy * policy.entropy(), policy)
        b = gradient(surrogate(policy, batch, harm), policy)
        product = fisher_product(policy, batch, rows=config.fisher_rows, damping=config.damping)
        v = conjugate_gradient(product, g, steps=config.cg_steps)  # H⁻¹ g
        w = conjugate_gradient(product, b, steps=config.cg_steps)  # H⁻¹ b
        q, r, s = float(v @ product(v)), float(v @ product(w)), float(w @ product(w))
        dual = solve_dual(q, r, s, c=excess, delta=config.target_kl)
        step = dual.along_gain * v + dual.along_cost * w
        self.recovering = dual.case == "recovery"

        gain_before, harm_before = float(gain.mean()), float(harm.mean())

        def accepts() -> bool:
            if not float(mean_divergence(policy, batch)) <= 1.5 * config.target_kl:
                return False
            # While the cost is too high, it must not rise, and the return may be given up.
            harm_allowed = harm_before + max(-excess, 0.0)
            if float(surrogate(policy, batch, harm)) > harm_allowed:
                return False
            return excess > 0.0 or float(surrogate(policy, batch, gain)) > gain_before

        fraction = line_search(policy, step, accepts=accepts, backtracks=config.backtracks, backtrack=config.backtrack)
        with torch.no_grad():
            divergence = float(mean_divergence(policy, batch))
        cases = {f"case_{name}": float(dual.case == name) for name in ("bound", "inactive", "recovery", "degenerate")}
        return {
            "kl": divergence,
            "step_fraction": fraction,
            "multiplier": min(dual.price, config.multiplier_max),
            "margin": self.margin,
            "entropy": float(policy.entropy().detach()),
        } | cases

    def state(self) -> dict[str, Any]:
        """Give the margin and whether it may grow; the rest is in networks and optimiser."""
        return {"margin": self.margin, "recovering": self.recovering}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.margin = float(state.get("margin", 0.0))
        self.recovering = bool(state.get("recovering", False))
