"""Train the context networks: predict reward and cost of an action, on states that blending visits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blendctl.controllers import ContextNetwork, NetworkController
from blendctl.errors import InputError, StateError
from blendctl.switches.base import open_worlds
from blendctl.training.context_config import ContextConfig
from blendctl.training.context_data import Drives, collect, sums_ahead
from blendctl.training.encodings import WorldEncodings, world_encodings
from blendctl.training.policy import mlp, to_dense

EVENT_SHARE = 0.4  # share of each minibatch drawn from the rows of rare events
COMMAND_OPTIONS = ("horizons", "discount", "steps", "worlds", "passes", "seed")  # of blendctl train-context
NOTE = (
    "R² over episodes that no network was trained on. Blending: the controllers of this world take turns of random "
    "length; alone: this controller drives. Longer horizons count windows that this controller drove."
)


@dataclass(frozen=True)
class ContextDataset:
    """Training data of one controller's context network."""

    inputs: Tensor  # (rows, inputs)
    targets: Tensor  # (rows, 2 * horizons): reward and cost of each horizon
    counts: Tensor  # (rows, 2 * horizons): 1 where the target is defined
    event: NDArray[np.bool_]  # (rows,) a rare event is next: the cost changes, or a goal is met


def train_contexts(
    controllers: Sequence[NetworkController],
    *,
    world: str,
    config: ContextConfig,
    on_progress: Callable[[str, float], None] = lambda stage, share: None,
) -> list[NetworkController]:
    """Return the controllers of one world with context networks, and the held-out R² in their cards."""
    torch.set_num_threads(config.threads)
    encodings = world_encodings(world)
    for controller in controllers:
        if controller.observation_size != encodings.context.observation_size:
            raise InputError(
                f"controller {controller.name!r} takes observations of {controller.observation_size}, {world} has "
                f"{encodings.context.observation_size}; all controllers must belong to the same world"
            )

    def drive(stage: str, drivers: Sequence[NetworkController], *, steps: int, seed: int) -> Drives:
        """Collect about `steps` transitions in new worlds."""
        each = -(-steps // config.worlds)

        def on_step(done: int) -> None:
            if done % 50 == 0:
                on_progress(stage, done / each)

        with closing(open_worlds(world, config.worlds, threads=config.threads)) as worlds:
            longest, first = config.horizons[-1], config.seed + seed
            return collect(worlds, drivers, steps=each, seed=first, longest=longest, on_step=on_step)

    learned = drive("driving in turns", controllers, steps=config.steps, seed=0)
    blending = drive("held out: in turns", controllers, steps=config.steps // 5, seed=10_000_000)
    out = []
    for index, controller in enumerate(controllers):
        stage = f"held out: {controller.name} alone"
        alone = drive(stage, [controller], steps=config.steps // 10, seed=20_000_000 + 100_000 * index)
        context = fit_context(
            context_dataset(learned, index, encodings=encodings, config=config),
            encodings=encodings,
            config=config,
            on_progress=functools.partial(on_progress, f"learning {controller.name}"),
        )
        tables = [
            r_squared(context, context_dataset(drives, who, encodings=encodings, config=config))
            for drives, who in ((blending, index), (alone, 0))
        ]
        card = _card_entry(config, *tables) | {"command": _command(controllers, config)}
        out.append(replace(controller, context=context, card=controller.card | {"context": card}))
    return out


def context_dataset(drives: Drives, driver: int, *, encodings: WorldEncodings, config: ContextConfig) -> ContextDataset:
    """Build the data of the network of controller number `driver`."""
    flat_observations = drives.observations.reshape(-1, drives.observations.shape[2])
    flat_actions = drives.actions.reshape(-1, drives.actions.shape[2])
    actions = [np.clip(flat_actions * gain, -1.0, 1.0) for gain in encodings.action_gains]
    inputs = np.concatenate([encodings.context(flat_observations), *actions], axis=1, dtype=np.float32)
    targets, counts = [], []
    for horizon in config.horizons:
        rewards, costs, valid = sums_ahead(drives, horizon, driver=driver, discount=config.discount)
        targets += [rewards.ravel(), costs.ravel()]
        counts += [valid.ravel()] * 2
    # An event: the cost changes, or the reward is far from the common ones (a goal is met).
    before = np.concatenate([drives.costs[:1], drives.costs[:-1]])
    usual = np.median(drives.rewards), drives.rewards.std()
    event = (drives.costs != before) | (np.abs(drives.rewards - usual[0]) > 3.0 * usual[1] + 1e-9)
    return ContextDataset(
        torch.from_numpy(inputs),
        torch.from_numpy(np.stack(targets, axis=1)),
        torch.from_numpy(np.stack(counts, axis=1).astype(np.float32)),
        event.ravel(),
    )


def fit_context(
    rows: ContextDataset,
    *,
    encodings: WorldEncodings,
    config: ContextConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> ContextNetwork:
    """Fit one network to the data by weighted least squares.

    Every target is standardised, so that its loss is 1 - R². Rare events are sampled more often than they occur
    and weighted down accordingly: the estimate of the mean stays unbiased, and its gradient is less noisy.
    """
    torch.set_num_threads(config.threads)
    rng = np.random.default_rng([config.seed, 4])
    total = rows.counts.sum(0).clamp(min=1.0)
    shift = (rows.targets * rows.counts).sum(0) / total
    scale = torch.sqrt((((rows.targets - shift) * rows.counts) ** 2).sum(0) / total).clamp(min=1e-6)
    # Longer horizons have fewer windows; each horizon gets the same total weight.
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
        (rows.inputs.shape[1], *config.hidden, targets.shape[1]), generator=torch.Generator().manual_seed(config.seed)
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
        encodings.context,
        action_gains=encodings.action_gains,
        horizons=config.horizons,
        discount=config.discount,
        scale=scale.numpy().astype(np.float32),
        shift=shift.numpy().astype(np.float32),
    )


def r_squared(context: ContextNetwork, rows: ContextDataset) -> NDArray[np.float64]:
    """Return R² (2 * horizons,) of the predictions on the rows that count; NaN where no row counts."""
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


def _command(controllers: Sequence[NetworkController], config: ContextConfig) -> str:
    """Return the command that trains these networks again."""
    words = ["blendctl train-context", *(controller.name for controller in controllers)]
    for entry in fields(ContextConfig):
        value = getattr(config, entry.name)
        if value != entry.default and entry.name in COMMAND_OPTIONS:
            shown = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words.append(f"--{entry.name} {shown}")
    return " ".join(words)


def _card_entry(config: ContextConfig, blending: NDArray[Any], alone: NDArray[Any]) -> dict[str, Any]:
    table = [
        {"horizon": horizon}
        | {
            f"{target}_{column}": round(float(values[2 * k + offset]), 4)
            for column, values in (("blending", blending), ("alone", alone))
            for offset, target in enumerate(("reward", "cost"))
        }
        for k, horizon in enumerate(config.horizons)
    ]
    return {"r2": table, "discount": config.discount, "steps": config.steps, "note": NOTE}
