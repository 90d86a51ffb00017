"""What every algorithm is: an update from one rollout, and a state that can be saved."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch

from blendctl.training.collector import RolloutBatch
from blendctl.training.config import TrainConfig
from blendctl.training.policy import Policy

__all__ = ["Algorithm", "Metrics", "optimiser_tensors", "restore_optimiser"]

Metrics = dict[str, float]


class Algorithm(Protocol):
    """One of the five; built with (policy, config)."""

    policy: Policy
    config: TrainConfig
    optimisers: dict[str, torch.optim.Adam]

    def update(self, batch: RolloutBatch, rng: np.random.Generator) -> Metrics:
        """Improve policy and critics from one rollout; give what to log."""

    def state(self) -> dict[str, Any]:
        """Give what a resumed run needs besides networks and optimisers, as JSON data."""

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""


def optimiser_tensors(optimiser: torch.optim.Adam) -> dict[str, torch.Tensor]:
    """Give an optimiser's memory as named tensors."""
    state = optimiser.state_dict()["state"]
    return {f"{index}.{name}": tensor for index, slots in state.items() for name, tensor in slots.items()}


def restore_optimiser(optimiser: torch.optim.Adam, tensors: dict[str, torch.Tensor]) -> None:
    """Give an optimiser back its memory."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = tensor
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})
