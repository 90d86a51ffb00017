"""PPO-Lagrangian and TRPO-Lagrangian: the plain algorithm on return minus multiplier times cost.

The penalised objective is that of Ray et al. (2019), the update of the multiplier that of Stooke et al. (2020).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from blendctl.training.algorithm import Algorithm, Metrics, standardised
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.multiplier import Multiplier
from blendctl.training.policy import Policy
from blendctl.training.ppo import PPO
from blendctl.training.trpo import TRPO


class _Lagrangian(Algorithm):
    """Maximise reward advantage - multiplier * cost advantage; the multiplier keeps the cost at its limit."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        super().__init__(policy, config)
        self.multiplier = Multiplier(config)

    def advantages(self, batch: RolloutBatch) -> tuple[Tensor, Metrics]:
        """Update the multiplier; return the penalised advantages (rows,)."""
        multiplier = self.multiplier.update(batch.episode_cost)
        # Standardise the difference, not its parts: the multiplier stays the return that one unit of cost is worth.
        return standardised(batch.advantages - multiplier * batch.cost_advantages), {"multiplier": multiplier}

    def state(self) -> dict[str, Any]:
        """Return the state of the multiplier."""
        return {"multiplier": self.multiplier.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        self.multiplier.restore(state["multiplier"])


class PPOLagrangian(_Lagrangian, PPO):
    """PPO on the penalised advantages."""


class TRPOLagrangian(_Lagrangian, TRPO):
    """TRPO on the penalised advantages."""
