"""TRPO: trust region policy optimisation (Schulman et al. 2015), for return alone."""

from __future__ import annotations

import numpy as np
import torch

from blendctl.training import trust_region as region
from blendctl.training.algorithm import Algorithm, Metrics
from blendctl.training.collector import RolloutBatch


class TRPO(Algorithm):
    """Step along the natural gradient of the return to the edge of a trust region."""

    def update_policy(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Maximise the surrogate within divergence `target_kl`.

        The step is sqrt(2 delta / x'Fx) x with F x = g; the line search makes sure that the real surrogate
        improves and the real divergence stays within 1.5 delta.
        """
        policy, config = self.policy, self.config
        advantages, metrics = self.advantages(batch)
        g = region.gradient(region.surrogate(policy, batch, advantages) + config.entropy * policy.entropy(), policy)
        product = region.fisher_product(policy, batch, rows=config.fisher_rows, damping=config.damping)
        direction = region.conjugate_gradient(product, g, steps=config.cg_steps)
        curvature = float(direction @ product(direction))
        fraction = divergence = 0.0
        # A flat surrogate has no step; the trainer reports NaN.
        if curvature > 1e-16:
            step = (2.0 * config.target_kl / curvature) ** 0.5 * direction
            before = float(advantages.mean())

            def accepts() -> bool:
                better = float(region.surrogate(policy, batch, advantages)) > before
                return better and float(region.mean_divergence(policy, batch)) <= 1.5 * config.target_kl

            fraction = region.line_search(policy, step, accepts=accepts, config=config)
            with torch.no_grad():
                divergence = float(region.mean_divergence(policy, batch))
        entropy = float(policy.entropy().detach())
        return metrics | {"kl": divergence, "step_fraction": fraction, "entropy": entropy}
