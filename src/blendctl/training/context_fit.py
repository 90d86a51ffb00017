"""Fit the next-step context network of a set of controllers: levels, and differences at the same state.

A choice between controllers depends on the difference of their next steps. Its typical size is 1e-5 to 1e-3, a
thousandth of the spread of the rewards, so a loss on the rewards themselves would ignore it. The reward is a level,
which depends on the observation alone, plus an inner product: the effects of an action on the robot, which depend on
the robot's own readings, times what each effect is worth at the observation. Without this form, a network would have to
learn the product for every direction of a goal. What touching an object changes is added by a part that sees
everything. All that depends on the action is fitted to differences, in units of their median size.
The cost is a probability, times the largest observed cost. Nearly certain ones are clipped: two actions whose cost is
certain then have the same predicted cost, and the reward decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import block_diag
from torch import Tensor, nn

from blendctl.controllers import ContextNetwork
from blendctl.controllers.dense import Dense
from blendctl.errors import StateError
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_data import Drives, sums_ahead
from blendctl.training.encodings import WorldEncodings
from blendctl.training.policy import mlp, to_dense

EVENT_SHARE = 0.4  # share of each minibatch drawn from the rows of rare events
FACTORS = 4  # effects of an action
SHARES = (0.15, 0.3, 0.2, 0.35)  # of the hidden units: level and worths, effects, touch, cost
DIFFERENCE_UNIT = 0.5  # in medians of the absolute differences; small, so that nearly all errors count linearly
CERTAIN = 0.01  # a predicted cost closer than this share of the largest to a limit counts as the limit
COST_DIFFERENCE_WEIGHT = 5.0  # of squared errors of a difference of probabilities, relative to the cross entropy


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
    """Four networks of max(0, x) units: level of the reward and worths of effects, effects, touch, and cost."""

    def __init__(
        self,
        encoded: int,
        actions: int,
        *,
        readings: int,
        hidden: tuple[int, ...],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.encoded, self.readings = encoded, readings
        wanted = ((encoded, 1 + FACTORS), (readings + actions, FACTORS), (encoded + actions, 1), (encoded + actions, 1))
        self.worth, self.effects, self.touch, self.cost = (
            mlp((n, *(max(1, round(share * m)) for m in hidden), out), generator=generator, activation=nn.ReLU)
            for share, (n, out) in zip(SHARES, wanted, strict=True)
        )

    def forward(self, encoded: Tensor, actions: Tensor) -> Tensor:
        """Return the outputs (arms, n, 3) for encoded observations (n, encoded) and actions (n, arms, ...).

        They are the level of the reward, the part that depends on the action, and the logit of the cost.
        """
        arms = actions.shape[1]
        repeated, flat = encoded.repeat(arms, 1), actions.transpose(0, 1).flatten(0, 1)
        worth = self.worth(encoded).repeat(arms, 1)
        effects = self.effects(torch.cat([repeated[:, : self.readings], flat], dim=1))
        everything = torch.cat([repeated, flat], dim=1)
        apart = (effects * worth[:, 1:]).sum(1, keepdim=True) + self.touch(everything)
        return torch.cat([worth[:, :1], apart, self.cost(everything)], dim=1).view(arms, len(encoded), -1)

    def to_dense(self, *, ratio: float) -> Dense:
        """Return the network of a `ContextNetwork` with factors; `ratio`: the unit of differences by that of levels.

        Its layers hold the four networks as blocks: more than half of their weights are 0. One format serves all.
        """
        parts = [to_dense(network) for network in (self.worth, self.effects, self.touch, self.cost)]
        weights = [block_diag(*(part.weights[layer] for part in parts)) for layer in range(len(parts[0].weights))]
        biases = [np.concatenate([part.biases[layer] for part in parts]) for layer in range(len(weights))]
        # The parts share the inputs, encoded observation and actions, and the outputs, see `ContextNetwork`.
        inputs = np.arange(parts[2].inputs)
        own = (inputs[: self.encoded], np.r_[inputs[: self.readings], inputs[self.encoded :]], inputs, inputs)
        weights[0] = (np.concatenate(own) == inputs[:, None]) @ weights[0]
        level, cost, effects, worths = 0, 1, 2 + np.arange(FACTORS), 2 + FACTORS + np.arange(FACTORS)
        collect = np.zeros((3 + 2 * FACTORS, 2 + 2 * FACTORS))  # from the outputs of the parts, in their order
        collect[np.arange(1 + 2 * FACTORS), np.r_[level, worths, effects]] = np.r_[
            np.ones(1 + FACTORS), [ratio] * FACTORS
        ]
        collect[-2:, [level, cost]] = np.diag([ratio, 0.5])  # a probability is (1 + tanh(logit / 2)) / 2
        weights[-1], biases[-1] = weights[-1] @ collect, biases[-1] @ collect
        return Dense(
            tuple(np.ascontiguousarray(weight, np.float32) for weight in weights),
            tuple(bias.astype(np.float32) for bias in biases),
            "relu",
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
        readings=len(encodings.context.robot_scale),
        hidden=config.hidden,
        generator=torch.Generator().manual_seed(config.seed),
    )

    def loss(rows: Tensor) -> Tensor:
        return loss_of(network(data.encoded[rows], data.actions[rows]), data.next_step[rows])

    minimise(network, loss, data.event, config=config, on_progress=on_progress)
    stretch = 0.5 * loss_of.largest / (1.0 - 2.0 * CERTAIN)
    return ContextNetwork(
        network.to_dense(ratio=loss_of.unit / loss_of.spread),
        encodings.context,
        action_gains=encodings.action_gains,
        horizons=(1,),
        discount=config.discount,
        scale=np.array([loss_of.spread, stretch], np.float32),
        shift=np.array([loss_of.mean, 0.5 * loss_of.largest], np.float32),
        limits=np.array([[-np.inf, np.inf], [0.0, loss_of.largest]], np.float32),
        factors=FACTORS,
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

    def __call__(self, out: Tensor, next_step: Tensor) -> Tensor:
        """Return the loss (n,) of the outputs (arms, n, 3) for reward and cost (n, arms, 2)."""
        reward, cost = next_step[..., 0].T, next_step[..., 1].T / max(self.largest, 1e-6)  # (arms, n)
        level, apart, logit = out[..., 0], out[..., 1], out[..., 2]
        wanted, ratio = (reward - self.mean) / self.spread, self.unit / self.spread
        if len(out) > 1:
            # The level is fitted to the remainder of the mean over the controllers.
            errors = (apart - apart.mean(0)) - (reward - reward.mean(0)) / self.unit
            loss = nn.functional.smooth_l1_loss(errors, torch.zeros_like(errors), reduction="none").mean(0)
            loss = loss + (level.mean(0) - (wanted - ratio * apart.detach()).mean(0)) ** 2
        else:
            loss = (level + ratio * apart - wanted).square().mean(0)
        entropy = nn.functional.binary_cross_entropy_with_logits(logit, cost, reduction="none")
        error = torch.sigmoid(logit) - cost
        return loss + (entropy + COST_DIFFERENCE_WEIGHT * (error - error.mean(0)) ** 2).mean(0)


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
