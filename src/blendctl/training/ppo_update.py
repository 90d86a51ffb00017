"""PPO's policy step: many small gradient steps on a surrogate that stops paying for large changes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from blendctl.training.algorithm import Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.critics import minibatches
from blendctl.training.policy import Policy

__all__ = ["clipped_steps", "standardised"]


def standardised(advantages: Tensor) -> Tensor:
    """Shift and scale to mean 0 and standard deviation 1."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def clipped_steps(
    policy: Policy,
    optimiser: torch.optim.Adam,
    *,
    batch: RolloutBatch,
    gain: Tensor,  # (rows,) the advantages to climb, standardised
    config: TrainConfig,
    rng: np.random.Generator,
) -> Metrics:
    """Climb E[min(ratio * gain, clip(ratio) * gain)]; stop early once the policy has moved far enough."""
    parameters = policy.policy_parameters()
    divergence = 0.0
    passes = 0
    for _ in range(config.passes):
        seen, total = 0, 0.0
        for rows in minibatches(len(gain), config.minibatch, rng):
            log_prob = policy.log_prob(policy.actor(batch.inputs[rows]), batch.actions[rows])
            log_ratio = log_prob - batch.log_probs[rows]
            ratio = torch.exp(log_ratio)
            allowed = torch.clamp(ratio, 1.0 - config.clip, 1.0 + config.clip)
            surrogate = torch.min(ratio * gain[rows], allowed * gain[rows]).mean()
            loss = -surrogate - config.entropy * policy.entropy()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch ships it untyped
            torch.nn.utils.clip_grad_norm_(parameters, config.max_grad)
            optimiser.step()
            # Schulman's estimate of the divergence: unbiased, never negative.
            total += float((ratio.detach() - 1.0 - log_ratio.detach()).sum())
            seen += len(rows)
        divergence = total / seen
        passes += 1
        if divergence > config.target_kl:
            break
    return {"kl": divergence, "policy_passes": float(passes), "entropy": float(policy.entropy().detach())}
