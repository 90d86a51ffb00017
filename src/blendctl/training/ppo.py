"""PPO: proximal policy optimisation (Schulman et al. 2017), for return alone."""

from __future__ import annotations

import numpy as np
import torch

from blendctl.training.algorithm import Algorithm, Metrics, minibatches
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.policy import Policy


class PPO(Algorithm):
    """Maximise the advantages by many small gradient steps on a clipped surrogate.

    The cost critic is trained too, but the policy update ignores it.
    """

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        super().__init__(policy, config)
        self.optimisers["policy"] = torch.optim.Adam(policy.policy_parameters(), lr=config.policy_lr, eps=1e-5)

    def update_policy(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Maximise E[min(ratio * advantage, clip(ratio) * advantage)]; stop early beyond `target_kl`."""
        policy, config, optimiser = self.policy, self.config, self.optimisers["policy"]
        advantages, metrics = self.advantages(batch)
        parameters = policy.policy_parameters()
        divergence = 0.0
        passes = 0
        for _ in range(config.passes):
            seen, total = 0, 0.0
            for rows in minibatches(len(advantages), config.minibatch, rng):
                log_prob = policy.log_prob(policy.actor(batch.inputs[rows]), batch.actions[rows])
                log_ratio = log_prob - batch.log_probs[rows]
                ratio = torch.exp(log_ratio)
                clipped = torch.clamp(ratio, 1.0 - config.clip, 1.0 + config.clip)
                surrogate = torch.min(ratio * advantages[rows], clipped * advantages[rows]).mean()
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
        entropy = float(policy.entropy().detach())
        return metrics | {"kl": divergence, "policy_passes": float(passes), "entropy": entropy}
