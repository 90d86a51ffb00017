"""PPO: proximal policy optimisation (Schulman et al. 2017), for return alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from blendctl.training.algorithm import Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.critics import fit_critics
from blendctl.training.policy import Policy
from blendctl.training.ppo_update import clipped_steps, standardised

__all__ = ["PPO"]


class PPO:
    """Climb the reward advantages in clipped steps. The cost critic learns, but nothing heeds it."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        self.policy = policy
        self.config = config
        self.optimisers = {
            "policy": torch.optim.Adam(policy.policy_parameters(), lr=config.policy_lr, eps=1e-5),
            "critics": torch.optim.Adam(policy.value_parameters(), lr=config.value_lr, eps=1e-5),
        }

    def update(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Improve policy and critics from one rollout."""
        gain = standardised(batch.advantages)
        moved = clipped_steps(
            self.policy, self.optimisers["policy"], batch=batch, gain=gain, config=self.config, rng=rng
        )
        fitted = fit_critics(self.policy, self.optimisers["critics"], batch=batch, config=self.config, rng=rng)
        return moved | fitted

    def state(self) -> dict[str, Any]:
        """PPO has no state besides networks and optimisers."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`: nothing to do."""
