"""The parts that all algorithms share: fit the critics, save and restore optimisers and state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.policy import Policy

Metrics = dict[str, float]


class Algorithm(ABC):
    """Update the policy, then both critics, from one rollout. A subclass implements `update_policy`."""

    def __init__(self, policy: Policy, config: TrainConfig) -> None:
        self.policy = policy
        self.config = config
        self.optimisers = {"critics": torch.optim.Adam(policy.value_parameters(), lr=config.value_lr, eps=1e-5)}

    def update(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Update policy and critics from one rollout; return the metrics to log."""
        return self.update_policy(batch, rng) | self.fit_critics(batch, rng)

    @abstractmethod
    def update_policy(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Update the policy; return the metrics to log."""

    def advantages(self, batch: RolloutBatch) -> tuple[Tensor, Metrics]:
        """Return the standardised advantages (rows,) that the policy maximises, with metrics to log."""
        return standardised(batch.advantages), {}

    def fit_critics(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Take `config.passes` passes of least squares towards the targets; report the fit before them."""
        policy, config, optimiser = self.policy, self.config, self.optimisers["critics"]
        with torch.no_grad():
            value, cost_value = policy.values(batch.inputs)
            metrics = {
                "value_r2": _r_squared(batch.returns, value),
                "cost_value_r2": _r_squared(batch.cost_returns, cost_value),
            }
        parameters = policy.value_parameters()
        for _ in range(config.passes):
            for rows in minibatches(len(batch.returns), config.minibatch, rng):
                value, cost_value = policy.values(batch.inputs[rows])
                loss = torch.mean((value - batch.returns[rows]) ** 2)
                loss = loss + torch.mean((cost_value - batch.cost_returns[rows]) ** 2)
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]  # torch ships it untyped
                torch.nn.utils.clip_grad_norm_(parameters, 10.0 * config.max_grad)
                optimiser.step()
        return metrics

    def state(self) -> dict[str, Any]:
        """Return what a resumed run needs besides networks and optimisers, as JSON data."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027  # most algorithms have no such state
        """Continue from `state`."""


def standardised(advantages: Tensor) -> Tensor:
    """Shift and scale to mean 0 and standard deviation 1."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def minibatches(rows: int, size: int, rng: np.random.Generator) -> list[Tensor]:
    """Split all rows into shuffled minibatches of about `size` rows."""
    order = torch.from_numpy(rng.permutation(rows))
    return list(torch.tensor_split(order, max(1, round(rows / size))))


def _r_squared(target: Tensor, estimate: Tensor) -> float:
    return float(1.0 - (target - estimate).var() / (target.var() + 1e-12))


def optimiser_tensors(optimiser: torch.optim.Adam) -> dict[str, Tensor]:
    """Return the state of an optimiser as named tensors."""
    state = optimiser.state_dict()["state"]
    return {f"{index}.{name}": tensor for index, slots in state.items() for name, tensor in slots.items()}


def restore_optimiser(optimiser: torch.optim.Adam, tensors: dict[str, Tensor]) -> None:
    """Restore the state that `optimiser_tensors` returned."""
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = tensor
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})
