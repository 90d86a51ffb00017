"""TRPO-Lagrangian: TRPO on return minus multiplier times cost (Ray et al. 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from blendctl.training.algorithm import Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.critics import fit_critics
from blendctl.training.multiplier import Multiplier
from blendctl.training.policy import Policy
from blendctl.training.ppo_update import standardised
from blendctl.training.trpo import natural_step

__all__ = ["TRPOLagrangian"]


class TRPOLagrangian:
    """Step in a trust region along return - multiplier * cost; the multiplier holds the cost at its limit."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        self.policy = policy
        self.config = config
        self.multiplier = Multiplier(
            config.cost_limit,
            integral=config.multiplier,
            p=config.multiplier_p,
            i=config.multiplier_i,
            d=config.multiplier_d,
            largest=config.multiplier_max,
        )
        self.optimisers = {"critics": torch.optim.Adam(policy.value_parameters(), lr=config.value_lr, eps=1e-5)}

    def update(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Improve multiplier, policy and critics from one rollout."""
        price = self.multiplier.update(batch.episode_cost)
        gain = standardised(batch.advantages - price * batch.cost_advantages)
        moved = natural_step(self.policy, batch, gain=gain, config=self.config)
        fitted = fit_critics(self.policy, self.optimisers["critics"], batch=batch, config=self.config, rng=rng)
        return {"multiplier": price} | moved | fitted

    def state(self) -> dict[str, Any]:
        """Give the multiplier's state."""
        return {"multiplier": self.multiplier.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.multiplier.restore(state["multiplier"])
