"""TRPO: trust region policy optimisation (Schulman et al. 2015), for return alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from blendctl.training.algorithm import Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.critics import fit_critics
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

__all__ = ["TRPO", "natural_step"]


class TRPO:
    """Step along the natural gradient of the return to the edge of a trust region."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        self.policy = policy
        self.config = config
        self.optimisers = {"critics": torch.optim.Adam(policy.value_parameters(), lr=config.value_lr, eps=1e-5)}

    def update(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Improve policy and critics from one rollout."""
        moved = natural_step(self.policy, batch, gain=standardised(batch.advantages), config=self.config)
        fitted = fit_critics(self.policy, self.optimisers["critics"], batch=batch, config=self.config, rng=rng)
        return moved | fitted

    def state(self) -> dict[str, Any]:
        """TRPO has no state besides networks and optimiser."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`: nothing to do."""


def natural_step(policy: Policy, batch: RolloutBatch, *, gain: Tensor, config: TrainConfig) -> Metrics:
    """Maximise the surrogate within divergence `target_kl`.

    The step is sqrt(2 delta / x'Fx) x with F x = g; the line search makes sure that the real surrogate
    improves and the real divergence keeps its bound.
    """
    g = gradient(surrogate(policy, batch, gain) + config.entropy * policy.entropy(), policy)
    product = fisher_product(policy, batch, rows=config.fisher_rows, damping=config.damping)
    direction = conjugate_gradient(product, g, steps=config.cg_steps)
    curvature = float(direction @ product(direction))
    if not curvature > 1e-16:  # a flat surrogate, or NaN, which the trainer reports
        return {"kl": 0.0, "step_fraction": 0.0, "entropy": float(policy.entropy().detach())}
    step = (2.0 * config.target_kl / curvature) ** 0.5 * direction
    before = float(gain.mean())

    def accepts() -> bool:
        better = float(surrogate(policy, batch, gain)) > before
        return better and float(mean_divergence(policy, batch)) <= 1.5 * config.target_kl

    fraction = line_search(policy, step, accepts=accepts, backtracks=config.backtracks, backtrack=config.backtrack)
    with torch.no_grad():
        divergence = float(mean_divergence(policy, batch))
    return {"kl": divergence, "step_fraction": fraction, "entropy": float(policy.entropy().detach())}
