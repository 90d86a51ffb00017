"""Fit the context network of one controller for horizons longer than a step, on windows that it drove."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from blendctl.controllers import ContextNetwork
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_fit import ContextDataset, minimise
from blendctl.training.encodings import WorldEncodings
from blendctl.training.policy import mlp, to_dense


def fit_longer(
    data: ContextDataset,
    *,
    driver: int,
    encodings: WorldEncodings,
    config: ContextConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> ContextNetwork:
    """Fit the network of controller number `driver` by weighted least squares on standardised sums."""
    windows = torch.nonzero((data.driver == driver) & (data.counts > 0).any(1))[:, 0]
    arm = min(driver, data.actions.shape[1] - 1)
    inputs = torch.cat([data.encoded[windows], data.actions[windows, arm]], dim=1)
    sums, counts = data.sums[windows], data.counts[windows]
    total = counts.sum(0).clamp(min=1.0)
    shift = (sums * counts).sum(0) / total
    scale = torch.sqrt((((sums - shift) * counts) ** 2).sum(0) / total).clamp(min=1e-6)
    # Longer horizons have fewer windows; each horizon gets the same total weight.
    weights = counts * len(counts) / total
    targets = (sums - shift) / scale
    network = mlp(
        (inputs.shape[1], *config.hidden_longer, targets.shape[1]), generator=torch.Generator().manual_seed(config.seed)
    )

    def loss(rows: Tensor) -> Tensor:
        error: Tensor = (network(inputs[rows]) - targets[rows]) ** 2 * weights[rows]
        return error.mean(1)

    minimise(network, loss, data.event[windows.numpy()], config=config, on_progress=on_progress)
    return ContextNetwork(
        to_dense(network),
        encodings.context,
        action_gains=encodings.action_gains,
        horizons=config.horizons[1:],
        discount=config.discount,
        scale=scale.numpy().astype(np.float32),
        shift=shift.numpy().astype(np.float32),
    )
