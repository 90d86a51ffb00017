"""Fit both critics to the targets of a rollout."""

from __future__ import annotations

import numpy as np
import torch

from blendctl.training.algorithm import Metrics
from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.policy import Policy

__all__ = ["fit_critics", "minibatches", "explained"]


def minibatches(rows: int, size: int, rng: np.random.Generator) -> list[torch.Tensor]:
    """Split all rows into shuffled minibatches of about `size` rows."""
    order = torch.from_numpy(rng.permutation(rows))
    return list(torch.tensor_split(order, max(1, round(rows / size))))


def fit_critics(
    policy: Policy,
    optimiser: torch.optim.Adam,
    *,
    batch: RolloutBatch,
    config: TrainConfig,
    rng: np.random.Generator,
) -> Metrics:
    """Take `config.passes` passes of least squares towards the targets; report the fit before them."""
    with torch.no_grad():
        value, cost_value = policy.values(batch.inputs)
        metrics = {
            "value_r2": explained(batch.returns, value),
            "cost_value_r2": explained(batch.cost_returns, cost_value),
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


def explained(target: torch.Tensor, estimate: torch.Tensor) -> float:
    """Give R², the share of the targets' variance that the estimate explains."""
    return float(1.0 - (target - estimate).var() / (target.var() + 1e-12))
