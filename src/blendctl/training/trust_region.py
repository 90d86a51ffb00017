"""Building blocks of a trust-region step: divergence, Fisher products, conjugate gradient, line search."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.policy import Policy, flat, write_flat


def mean_divergence(policy: Policy, batch: RolloutBatch, *, rows: slice = slice(None)) -> Tensor:
    """Return the mean KL divergence from the policy of the rollout to the present one."""
    mean = policy.actor(batch.inputs[rows])
    old, new = batch.log_std, policy.log_std
    ratio = torch.exp(2.0 * (old - new)) + ((batch.means[rows] - mean) * torch.exp(-new)) ** 2
    divergence: Tensor = (new - old + 0.5 * ratio - 0.5).sum(1).mean()
    return divergence


def surrogate(policy: Policy, batch: RolloutBatch, advantages: Tensor) -> Tensor:
    """Return E[ratio * advantage]: to first order, the improvement over the policy of the rollout."""
    log_prob = policy.log_prob(policy.actor(batch.inputs), batch.actions)
    return (torch.exp(log_prob - batch.log_probs) * advantages).mean()


def gradient(value: Tensor, policy: Policy) -> Tensor:
    """Return the gradient of a scalar over the policy's parameters, as one vector."""
    return flat(torch.autograd.grad(value, policy.policy_parameters())).detach()


def fisher_product(policy: Policy, batch: RolloutBatch, *, rows: int, damping: float) -> Callable[[Tensor], Tensor]:
    """Return v -> (F + damping) v, with F the Hessian of the divergence at the policy of the rollout.

    F is estimated on about `rows` rows spread over the rollout. Use as many rows as the gradient does: directions in
    which only omitted rows change would seem to have no divergence, and the line search would shorten the step.
    """
    stride = slice(None, None, max(1, len(batch.inputs) // rows))
    parameters = policy.policy_parameters()
    slope = flat(torch.autograd.grad(mean_divergence(policy, batch, rows=stride), parameters, create_graph=True))

    def product(vector: Tensor) -> Tensor:
        curved = torch.autograd.grad(slope @ vector, parameters, retain_graph=True)
        return flat(curved).detach() + damping * vector

    return product


def conjugate_gradient(
    product: Callable[[Tensor], Tensor], target: Tensor, *, steps: int, tolerance: float = 1e-10
) -> Tensor:
    """Solve product(x) = target for a symmetric positive operator.

    >>> matrix = torch.tensor([[4.0, 1.0], [1.0, 3.0]])
    >>> conjugate_gradient(lambda v: matrix @ v, torch.tensor([1.0, 2.0]), steps=5)
    tensor([0.0909, 0.6364])
    """
    x = torch.zeros_like(target)
    residual = target.clone()
    direction = residual.clone()
    size = residual @ residual
    for _ in range(steps):
        if size < tolerance * tolerance:
            break
        curved = product(direction)
        length = size / (direction @ curved)
        x = x + length * direction
        residual = residual - length * curved
        new_size = residual @ residual
        direction = residual + (new_size / size) * direction
        size = new_size
    return x


def line_search(policy: Policy, step: Tensor, *, accepts: Callable[[], bool], config: TrainConfig) -> float:
    """Try the step, then shorter ones, until `accepts` holds; return the fraction taken, 0 if none was accepted."""
    parameters = policy.policy_parameters()
    start = flat(p.detach() for p in parameters)
    fraction = 1.0
    for _ in range(config.backtracks):
        write_flat(parameters, start + fraction * step)
        with torch.no_grad():
            if accepts():
                return fraction
        fraction *= config.backtrack
    write_flat(parameters, start)
    return 0.0
