"""Fit the next-step context network of a set of controllers: levels, and differences at the same state.

A choice between controllers depends on the difference of their next steps. Its typical size is 1e-5 to 1e-3, a
thousandth of the spread of the rewards, so a loss on the rewards themselves would ignore it. The reward is a level,
which depends on the observation alone, plus a part that also depends on the action and is fitted to differences, in
units of their median size. The cost lies between 0 and the largest observed cost. Errors beyond these limits do not
count, and predictions are clipped to them: two actions whose cost is certain then have the same predicted cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from blendctl.controllers import ContextNetwork
from blendctl.controllers.dense import Dense
from blendctl.errors import StateError
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_data import Drives, sums_ahead
from blendctl.training.encodings import WorldEncodings

EVENT_SHARE = 0.4  # share of each minibatch drawn from the rows of rare events
BLIND_SHARE = 0.5  # share of the hidden units that do not see the action
DIFFERENCE_UNIT = 0.5  # in medians of the absolute differences; small, so that nearly all errors count linearly
CERTAIN = 0.05  # a predicted cost closer than this share of the largest to a limit counts as the limit
COST_DIFFERENCE_WEIGHT = 0.5  # of squared errors of a difference of costs, relative to those of the costs


@dataclass(frozen=True)
class ContextDataset:
    """Training data of the context networks of one or more controllers."""

    encoded: Tensor  # (rows, encoding.size)
    actions: Tensor  # (rows, arms, action_size * gains) actions whose feedback is known
    next_step: Tensor  # (rows, arms, 2) their reward and cost
    sums: Tensor  # (rows, 2 * (horizons - 1)) reward and cost of each longer horizon, under the driver
    counts: Tensor  # (rows, 2 * (horizons - 1)) 1 where the sum is defined
    driver: Tensor  # (rows,) controller that drove
    event: NDArray[np.bool_]  # (rows,) rare: the cost changes or differs between controllers, or a goal is met


def context_dataset(drives: Drives, *, encodings: WorldEncodings, config: ContextConfig) -> ContextDataset:
    """Build the data of the networks from collected drives."""
    rows, arms = drives.rewards.size, drives.truth.shape[2]
    proposals = drives.proposals.reshape(rows, arms, -1)
    actions = [np.clip(proposals * gain, -1.0, 1.0) for gain in encodings.action_gains]
    sums, counts = [np.empty((rows, 0), np.float32)], [np.empty((rows, 0), np.bool_)]
    for horizon in config.horizons[1:]:
        rewards, costs, valid = sums_ahead(drives, horizon, discount=config.discount)
        sums.append(np.stack([rewards.ravel(), costs.ravel()], axis=1))
        counts.append(np.stack([valid.ravel()] * 2, axis=1))
    before = np.concatenate([drives.costs[:1], drives.costs[:-1]])
    usual = np.median(drives.rewards), drives.rewards.std()
    event = (drives.costs != before) | (np.abs(drives.rewards - usual[0]) > 3.0 * usual[1] + 1e-9)
    event |= np.ptp(drives.truth[..., 1], axis=2) > 0
    return ContextDataset(
        torch.from_numpy(encodings.context(drives.observations.reshape(rows, -1))),
        torch.from_numpy(np.concatenate(actions, axis=2, dtype=np.float32)),
        torch.from_numpy(drives.truth.reshape(rows, arms, 2)),
        sums=torch.from_numpy(np.concatenate(sums, axis=1)),
        counts=torch.from_numpy(np.concatenate(counts, axis=1).astype(np.float32)),
        driver=torch.from_numpy(drives.driver.ravel().astype(np.int64)),
        event=event.ravel(),
    )


class NextStepNetwork(nn.Module):
    """Hidden tanh layers; outputs: the level of the reward, the part that depends on the action, and the cost.

    The first units of every hidden layer get only the observation, and the level of the reward depends only on them.
    With a single controller there are no differences, and every unit gets all inputs.
    """

    def __init__(
        self,
        encoded: int,
        actions: int,
        *,
        hidden: tuple[int, ...],
        arms: int,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.arms = arms
        sizes = (encoded + actions, *hidden, 3)
        self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in pairwise(sizes))
        sighted = torch.arange(sizes[0]) >= encoded
        self.masks: list[Tensor] = []  # (outputs, inputs) each
        for index, layer in enumerate(self.layers):
            last = index == len(self.layers) - 1
            assert isinstance(layer, nn.Linear)
            nn.init.orthogonal_(layer.weight, gain=1.0 if last else math.sqrt(2.0), generator=generator)
            nn.init.zeros_(layer.bias)
            blind = 0 if arms == 1 else 1 if last else round(BLIND_SHARE * layer.out_features)
            outputs = torch.arange(layer.out_features) >= blind
            self.masks.append((outputs[:, None] | ~sighted[None, :]).float())
            sighted = outputs

    def forward(self, encoded: Tensor, actions: Tensor) -> Tensor:
        """Return the outputs (arms, n, outputs) for encoded observations (n, encoded) and actions (n, arms, ...)."""
        arms = actions.shape[1]
        x = torch.cat([encoded.repeat(arms, 1), actions.transpose(0, 1).flatten(0, 1)], dim=1)
        for index, (weight, bias) in enumerate(self.parts()):
            x = nn.functional.linear(x if index == 0 else torch.tanh(x), weight, bias)
        return x.view(arms, len(encoded), -1)

    def parts(self) -> list[tuple[Tensor, Tensor]]:
        """Return weights (outputs, inputs) and biases of every layer."""
        return [
            (layer.weight * mask, layer.bias)
            for layer, mask in zip(self.layers, self.masks, strict=True)
            if isinstance(layer, nn.Linear)
        ]

    def to_dense(self, *, ratio: float) -> Dense:
        """Return the network of reward and cost; `ratio`: the unit of differences divided by that of levels."""
        parts = [(w.detach().numpy().T, b.detach().numpy()) for w, b in self.parts()]
        weight, bias = parts[-1]
        share = ratio if self.arms > 1 else 0.0
        parts[-1] = (
            np.column_stack([weight[:, 0] + share * weight[:, 1], weight[:, 2]]),
            np.array([bias[0] + share * bias[1], bias[2]]),
        )
        return Dense(
            tuple(np.ascontiguousarray(w, np.float32) for w, _ in parts),
            tuple(np.ascontiguousarray(b, np.float32) for _, b in parts),
        )


def fit_next_step(
    data: ContextDataset,
    *,
    encodings: WorldEncodings,
    config: ContextConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> ContextNetwork:
    """Fit one network for all controllers of the data: the next step follows from state and action alone."""
    loss_of = _Loss(data)
    network = NextStepNetwork(
        data.encoded.shape[1],
        data.actions.shape[2],
        hidden=config.hidden,
        arms=data.actions.shape[1],
        generator=torch.Generator().manual_seed(config.seed),
    )

    def loss(rows: Tensor) -> Tensor:
        return loss_of(network(data.encoded[rows], data.actions[rows]), data.next_step[rows])

    minimise(network, loss, data.event, config=config, on_progress=on_progress)
    stretch = 1.0 / (1.0 - 2.0 * CERTAIN)
    return ContextNetwork(
        network.to_dense(ratio=loss_of.unit / loss_of.spread),
        encodings.context,
        action_gains=encodings.action_gains,
        horizons=(1,),
        discount=config.discount,
        scale=np.array([loss_of.spread, stretch], np.float32),
        shift=np.array([loss_of.mean, -stretch * CERTAIN * loss_of.largest], np.float32),
        limits=np.array([[-np.inf, np.inf], [0.0, loss_of.largest]], np.float32),
    )


class _Loss:
    """The loss per row: every part is an error relative to the spread of its target."""

    def __init__(self, data: ContextDataset) -> None:
        rewards, costs = data.next_step[..., 0], data.next_step[..., 1]
        self.mean, self.spread = float(rewards.mean()), max(float(rewards.std()), 1e-6)
        apart = (rewards - rewards.mean(1, keepdim=True)).abs()
        apart = apart[apart > 1e-9]
        self.unit = DIFFERENCE_UNIT * float(apart.median()) if len(apart) else self.spread
        self.largest = float(costs.max())
        self.cost_variance = max(float(costs.var()), 1e-6)

    def __call__(self, out: Tensor, next_step: Tensor) -> Tensor:
        """Return the loss (n,) of the outputs (arms, n, 3) for reward and cost (n, arms, 2)."""
        reward, cost = next_step[..., 0].T, next_step[..., 1].T  # (arms, n)
        level, apart, predicted = out[..., 0], out[..., 1], out[..., 2]
        wanted = (reward - self.mean) / self.spread
        if len(out) > 1:
            # The level is fitted to the remainder of the mean over the controllers.
            wanted = wanted - self.unit / self.spread * apart.detach()
            errors = (apart - apart.mean(0)) - (reward - reward.mean(0)) / self.unit
            loss = nn.functional.smooth_l1_loss(errors, torch.zeros_like(errors), reduction="none").mean(0)
            loss = loss + (level.mean(0) - wanted.mean(0)) ** 2
        else:
            loss = (level - wanted).square().mean(0)
        beyond = ((cost <= 0.0) & (predicted < 0.0)) | ((cost >= self.largest) & (predicted > self.largest))
        error = torch.where(beyond, 0.0, predicted - cost)
        apart_cost = error - error.mean(0)
        return loss + (error**2 + COST_DIFFERENCE_WEIGHT * apart_cost**2).mean(0) / self.cost_variance


def minimise(
    network: nn.Module,
    loss: Callable[[Tensor], Tensor],
    event: NDArray[np.bool_],
    *,
    config: ContextConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> None:
    """Minimise the mean of loss(rows) (n,) over all rows.

    Rows of a rare event (rows,) are sampled more often than they occur and weighted down accordingly: the estimate of
    the mean stays unbiased, and its gradient is less noisy.
    """
    torch.set_num_threads(config.threads)
    picks = _Minibatches(event, config.minibatch, rng=np.random.default_rng([config.seed, 4]))
    updates = max(1, config.passes * len(event) // config.minibatch)
    optimiser = torch.optim.Adam(network.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    for update in range(updates):
        mean: Tensor = (loss(picks.draw()) * picks.weights).mean()
        optimiser.zero_grad()
        mean.backward()  # type: ignore[no-untyped-call]  # torch ships it untyped
        optimiser.step()
        schedule.step()
        if update % 50 == 0:
            if not torch.isfinite(mean):
                raise StateError("the context networks diverged (NaN); try a smaller learning rate")
            on_progress(update / updates)


class _Minibatches:
    """Draw minibatches with a fixed share of rare events; `weights` correct for the share."""

    def __init__(self, event: NDArray[np.bool_], size: int, *, rng: np.random.Generator) -> None:
        self.events, self.others, self.size, self.rng = np.flatnonzero(event), np.flatnonzero(~event), size, rng
        share = EVENT_SHARE if len(self.events) and len(self.others) else float(len(self.events) > 0)
        self.drawn = round(share * size)
        self.weights = torch.full((size,), len(self.others) / len(event) / max(1.0 - share, 1e-9))
        self.weights[: self.drawn] = len(self.events) / len(event) / max(share, 1e-9)

    def draw(self) -> Tensor:
        """Return the rows of a minibatch."""
        chosen = [self.rng.choice(self.events, self.drawn)] if self.drawn else []
        chosen += [self.rng.choice(self.others, self.size - self.drawn)] if self.drawn < self.size else []
        return torch.from_numpy(np.concatenate(chosen))
