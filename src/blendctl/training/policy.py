"""The networks in torch: Gaussian actor, reward critic, cost critic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from blendctl.controllers import NetworkController
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import Encoding
from blendctl.errors import InputError


def mlp(
    sizes: Iterable[int],
    *,
    generator: torch.Generator,
    last_gain: float = 1.0,
    activation: type[nn.Module] = nn.Tanh,
) -> nn.Sequential:
    """Build affine layers with an activation between them, initialised orthogonally, the last scaled by `last_gain`."""
    widths = list(sizes)
    layers: list[nn.Module] = []
    for index, (n, m) in enumerate(pairwise(widths)):
        last = index == len(widths) - 2
        layer = nn.Linear(n, m)
        nn.init.orthogonal_(layer.weight, gain=last_gain if last else math.sqrt(2.0), generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer] if last else [layer, activation()]
    return nn.Sequential(*layers)


def relu_layers(sizes: Sequence[int]) -> nn.Sequential:
    """Build affine layers with max(0, x) between them."""
    layers: list[nn.Module] = []
    for n, m in pairwise(sizes):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Policy(nn.Module):
    """Actor, reward critic and cost critic, each with its own layers; inputs are encoded observations."""

    def __init__(
        self,
        encoding: Encoding,
        action_size: int,
        *,
        hidden: tuple[int, ...],
        log_std: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoding = encoding
        sizes = (encoding.size, *hidden)
        self.actor = mlp((*sizes, action_size), generator=generator, last_gain=0.01)
        self.log_std = nn.Parameter(torch.full((action_size,), log_std))
        self.critic = mlp((*sizes, 1), generator=generator)
        self.cost_critic = mlp((*sizes, 1), generator=generator)

    def policy_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of the actor and its noise."""
        return [*self.actor.parameters(), self.log_std]

    def value_parameters(self) -> list[nn.Parameter]:
        """Return the parameters of both critics."""
        return [*self.critic.parameters(), *self.cost_critic.parameters()]

    def log_prob(self, mean: Tensor, actions: Tensor) -> Tensor:
        """Return log-probabilities (n,) of actions (n, action_size) under means (n, action_size)."""
        z = (actions - mean) * torch.exp(-self.log_std)
        constant = 0.5 * math.log(2.0 * math.pi) * actions.shape[1]
        return -0.5 * (z * z).sum(1) - self.log_std.sum() - constant

    def entropy(self) -> Tensor:
        """Return the entropy of the action noise."""
        return self.log_std.sum() + 0.5 * math.log(2.0 * math.pi * math.e) * self.log_std.numel()

    def values(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return reward and cost values, (n,) each."""
        return self.critic(inputs).squeeze(1), self.cost_critic(inputs).squeeze(1)

    def to_controller(self, name: str) -> NetworkController:
        """Return the networks as a controller that runs without torch."""
        return NetworkController(
            name,
            self.encoding,
            to_dense(self.actor),
            self.log_std.detach().numpy().astype(np.float32),
            critic=to_dense(self.critic),
            cost_critic=to_dense(self.cost_critic),
        )

    def copy_from(self, controller: NetworkController) -> None:
        """Copy the weights of a trained controller of the same shape."""
        if controller.encoding != self.encoding:
            raise InputError(
                f"controller {controller.name!r} has another encoding than this policy; they must be equal"
            )
        with torch.no_grad():
            for name in ("actor", "critic", "cost_critic"):
                dense, layers = getattr(controller, name), _linear_layers(getattr(self, name))
                if [tuple(layer.weight.T.shape) for layer in layers] != [w.shape for w in dense.weights]:
                    raise InputError(f"controller {controller.name!r} has other layer sizes; set hidden to match")
                for layer, weight, bias in zip(layers, dense.weights, dense.biases, strict=True):
                    layer.weight.copy_(torch.from_numpy(weight.T.copy()))
                    layer.bias.copy_(torch.from_numpy(bias.copy()))
            self.log_std.copy_(torch.from_numpy(controller.log_std.copy()))


def to_dense(module: nn.Sequential) -> Dense:
    """Convert a torch network to one that runs without torch."""
    layers = _linear_layers(module)
    return Dense(
        tuple(np.ascontiguousarray(layer.weight.detach().numpy().T, np.float32) for layer in layers),
        tuple(layer.bias.detach().numpy().astype(np.float32) for layer in layers),
        "relu" if any(isinstance(layer, nn.ReLU) for layer in module) else "tanh",
    )


def _linear_layers(module: nn.Sequential) -> list[nn.Linear]:
    return [layer for layer in module if isinstance(layer, nn.Linear)]


def flat(tensors: Iterable[Tensor]) -> Tensor:
    """Concatenate tensors into one vector."""
    return torch.cat([t.reshape(-1) for t in tensors])


def write_flat(parameters: Iterable[nn.Parameter], vector: Tensor) -> None:
    """Write one vector back into parameters."""
    at = 0
    with torch.no_grad():
        for parameter in parameters:
            count = parameter.numel()
            parameter.copy_(vector[at : at + count].view_as(parameter))
            at += count
