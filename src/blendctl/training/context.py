"""Train the context networks: predict what an action brings, on states that blending visits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blendctl.controllers import ContextNetwork, NetworkController
from blendctl.errors import InputError, StateError
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_data import Drives, collect, sums_ahead
from blendctl.training.encodings import Views, views_of
from blendctl.training.policy import mlp, to_dense
from blendctl.training.trainer import make_worlds

__all__ = ["ContextConfig", "train_contexts", "fit_context", "r_squared", "Rows"]

EVENT_SHARE = 0.4  # share of each minibatch that comes from rows where something happens
NOTE = (
    "R² over episodes that no network was trained on. Blending: the controllers of this world take turns of random "
    "length; alone: this controller drives. Longer horizons count windows that this controller drove."
)


@dataclass(frozen=True)
class Rows:
    """Drives flattened for one controller's network."""

    inputs: Tensor  # (rows, inputs)
    targets: Tensor  # (rows, 2 * horizons): reward and cost of each horizon
    counts: Tensor  # (rows, 2 * horizons): 1 where the target is defined
    event: NDArray[np.bool_]  # (rows,) something rare happens next: entering, leaving, being inside, a goal


def train_contexts(
    controllers: Sequence[NetworkController],
    *,
    world: str,
    config: ContextConfig,
    on_progress: Callable[[str, float], None] = lambda stage, share: None,
) -> list[NetworkController]:
    """Give the controllers of one world with context networks; their cards tell the held-out R²."""
    torch.set_num_threads(config.threads)
    views = views_of(world)
    for controller in controllers:
        if controller.observation_size != views.context.observation_size:
            raise InputError(
                f"controller {controller.name!r} takes {controller.observation_size} observations, {world} gives "
                f"{views.context.observation_size}; all controllers must belong to the same world"
            )
    gather = _Gatherer(world, config, on_progress)
    learned = gather("driving in turns", controllers, steps=config.steps, seed=config.seed)
    blending = gather("held out: in turns", controllers, steps=config.steps // 5, seed=config.seed + 10_000_000)
    out = []
    for index, controller in enumerate(controllers):
        alone = gather(
            f"held out: {controller.name} alone",
            [controller],
            steps=config.steps // 10,
            seed=config.seed + 20_000_000 + 100_000 * index,
        )
        context = fit_context(
            rows_of(learned, index, views=views, config=config),
            views=views,
            config=config,
            on_progress=lambda share, name=controller.name: on_progress(f"learning {name}", share),  # type: ignore[misc]  # default binds now
        )
        tables = [
            r_squared(context, rows_of(drives, who, views=views, config=config))
            for drives, who in ((blending, index), (alone, 0))
        ]
        told = _told(config, *tables) | {"command": _command(controllers, config)}
        out.append(replace(controller, context=context, card=controller.card | {"context": told}))
    return out


def rows_of(drives: Drives, driver: int, *, views: Views, config: ContextConfig) -> Rows:
    """Flatten drives into the rows of the network of controller number `driver`."""
    flat_observations = drives.observations.reshape(-1, drives.observations.shape[2])
    flat_actions = drives.actions.reshape(-1, drives.actions.shape[2])
    seen = [np.clip(flat_actions * gain, -1.0, 1.0) for gain in views.action_gains]
    inputs = np.concatenate([views.context(flat_observations), *seen], axis=1, dtype=np.float32)
    targets, counts = [], []
    for horizon in config.horizons:
        rewards, costs, valid = sums_ahead(drives, horizon, driver=driver, discount=config.discount)
        targets += [rewards.ravel(), costs.ravel()]
        counts += [valid.ravel()] * 2
    # An event: the cost switches on or off, or a reward far from the common ones (a goal is met).
    before = np.concatenate([drives.costs[:1], drives.costs[:-1]])
    usual = np.median(drives.rewards), drives.rewards.std()
    event = (drives.costs != before) | (np.abs(drives.rewards - usual[0]) > 3.0 * usual[1] + 1e-9)
    return Rows(
        torch.from_numpy(inputs),
        torch.from_numpy(np.stack(targets, axis=1)),
        torch.from_numpy(np.stack(counts, axis=1).astype(np.float32)),
        event.ravel(),
    )


def fit_context(
    rows: Rows,
    *,
    views: Views,
    config: ContextConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> ContextNetwork:
    """Fit one network to the rows by weighted least squares.

    Every target is standardised, so that its loss is 1 - R². Rare events are drawn more often than they occur
    and weighed down by as much: the estimate stays that of the mean, but its gradient is less noisy.
    """
    torch.set_num_threads(config.threads)
    rng = np.random.default_rng([config.seed, 4])
    total = rows.counts.sum(0).clamp(min=1.0)
    shift = (rows.targets * rows.counts).sum(0) / total
    scale = torch.sqrt((((rows.targets - shift) * rows.counts) ** 2).sum(0) / total).clamp(min=1e-6)
    # Horizons with fewer windows weigh as much as the next step, which every row has.
    balance = len(rows.counts) / total
    targets = (rows.targets - shift) / scale

    events, others = np.flatnonzero(rows.event), np.flatnonzero(~rows.event)
    share = EVENT_SHARE if len(events) and len(others) else float(len(events) > 0)
    drawn = round(share * config.minibatch)
    weight_event = len(events) / len(rows.event) / max(share, 1e-9)
    weight_other = len(others) / len(rows.event) / max(1.0 - share, 1e-9)
    weights = torch.full((config.minibatch, 1), weight_other)
    weights[:drawn] = weight_event

    network = mlp(
        (rows.inputs.shape[1], *config.hidden, targets.shape[1]),
        generator=torch.Generator().manual_seed(config.seed),
    )
    updates = max(1, config.passes * len(targets) // config.minibatch)
    optimiser = torch.optim.Adam(network.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, updates)
    for update in range(updates):
        chosen = [rng.choice(events, drawn)] if drawn else []
        chosen += [rng.choice(others, config.minibatch - drawn)] if drawn < config.minibatch else []
        pick = torch.from_numpy(np.concatenate(chosen))
        error = (network(rows.inputs[pick]) - targets[pick]) ** 2 * rows.counts[pick] * balance
        loss = (error * weights).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if update % 50 == 0:
            if not torch.isfinite(loss):
                raise StateError("the context networks diverged (NaN); try a smaller learning rate")
            on_progress(update / updates)
    return ContextNetwork(
        to_dense(network),
        views.context,
        action_gains=views.action_gains,
        horizons=config.horizons,
        discount=config.discount,
        scale=scale.numpy().astype(np.float32),
        shift=shift.numpy().astype(np.float32),
    )


def r_squared(context: ContextNetwork, rows: Rows) -> NDArray[np.float64]:
    """Give R² (2 * horizons,) of the predictions on the rows that count; NaN where none does."""
    inputs = rows.inputs.numpy()
    parts = [context.network.batch(inputs[at : at + 20_000]) for at in range(0, len(inputs), 20_000)]
    estimate = np.concatenate(parts) * context.scale + context.shift
    out = np.full(estimate.shape[1], np.nan)
    for column in range(len(out)):
        valid = rows.counts[:, column].numpy() > 0
        if valid.any():
            target = rows.targets[:, column].numpy()[valid].astype(np.float64)
            error = np.mean((target - estimate[valid, column]) ** 2)
            out[column] = 1.0 - error / max(target.var(), 1e-12)
    return out


class _Gatherer:
    """Collect drives in worlds made for the purpose."""

    def __init__(self, world: str, config: ContextConfig, on_progress: Callable[[str, float], None]) -> None:
        self.world = world
        self.config = config
        self.on_progress = on_progress

    def __call__(self, stage: str, controllers: Sequence[NetworkController], *, steps: int, seed: int) -> Drives:
        config = self.config
        each = -(-steps // config.worlds)
        worlds = make_worlds(self.world, count=config.worlds, threads=config.threads)
        done = 0

        def on_step() -> None:
            nonlocal done
            done += 1
            if done % 50 == 0:
                self.on_progress(stage, done / each)

        try:
            return collect(worlds, controllers, steps=each, seed=seed, longest=config.horizons[-1], on_step=on_step)
        finally:
            worlds.close()


def _command(controllers: Sequence[NetworkController], config: ContextConfig) -> str:
    """Give the command that trains these networks again."""
    words = ["blendctl train-context", *(controller.name for controller in controllers)]
    for entry in fields(ContextConfig):
        value = getattr(config, entry.name)
        if value != entry.default and entry.name in (
            "horizons",
            "discount",
            "steps",
            "worlds",
            "passes",
            "seed",
        ):
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"--{entry.name} {shown}")
    return " ".join(words)


def _told(config: ContextConfig, blending: NDArray[Any], alone: NDArray[Any]) -> dict[str, Any]:
    table = [
        {
            "horizon": horizon,
            "reward_blending": round(float(blending[2 * k]), 4),
            "cost_blending": round(float(blending[2 * k + 1]), 4),
            "reward_alone": round(float(alone[2 * k]), 4),
            "cost_alone": round(float(alone[2 * k + 1]), 4),
        }
        for k, horizon in enumerate(config.horizons)
    ]
    return {"r2": table, "discount": config.discount, "steps": config.steps, "note": NOTE}
