"""Learn the paths of controllers: where each of them drives in the next options, from what it observes.

The controllers take turns. After each option the memory of the episode says how far the robot has come, so every
observation within a turn is labelled with the places that the same controller reached after it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray
from torch import Tensor, nn

from blendctl.arrays import ArmArray, FloatArray
from blendctl.controllers import Controller, Encoding
from blendctl.controllers.path_encoding import MapDeclaration, PathEncoding
from blendctl.training.lookahead_config import LookAheadConfig
from blendctl.training.lookahead_data import Array, Decisions, OptionCollector, first_layout
from blendctl.training.policy import relu_layers, to_dense

TURN = 2  # length of a turn, in lengths of a path
LAYOUTS = 50_000  # layout seeds between the training of the networks and that of the paths
HELD_OUT_SHARE = 0.1  # share of the turns, the latest, that measure the spread
HIDDEN = (256, 256)  # sizes of the hidden layers
PASSES = 30  # over all labels
MINIBATCH = 512
RATE = 2e-3  # highest learning rate
DECAY = 1e-2  # of the weights
LARGEST_SPEED = 5.0  # m/s; more is a mistake of the map


class PathLabels(NamedTuple):
    """Observations with the places that the controller which drove reached after them."""

    inputs: Array  # (n, inputs) encoded observation
    arms: ArmArray  # (n,)
    places: Array  # (n, points, 2) m, in the robot's frame


def fit_paths(
    environment: VectorEnv[Any, Any, Any],
    controllers: Sequence[Controller],
    *,
    encoding: Encoding,
    declaration: MapDeclaration,
    config: LookAheadConfig,
    on_progress: Callable[[float], None] = lambda share: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> PathEncoding | None:
    """Let the controllers take turns, and fit a network to their paths; raise KeyboardInterrupt if it should stop.

    Return None if the episodes are too short for a path.
    """
    collector = OptionCollector(
        environment,
        controllers,
        encode=encoding,
        hold=config.hold,
        follow=0,
        discount=config.discount,
        seed=config.seed,
        declaration=declaration,
    )
    rng = np.random.default_rng([config.seed, 4])
    collector.start(first_layout(config.seed) + LAYOUTS, rng)
    arms, worlds = len(controllers), environment.num_envs
    turns = max(2, round(config.path_share * config.steps / (worlds * config.hold * TURN * config.points)))
    parts = []
    for turn in range(turns):
        parts.append(_drive_turn(collector, rng.integers(arms, size=worlds), points=config.points))
        on_progress(0.5 * (turn + 1) / turns)
        if should_stop():
            raise KeyboardInterrupt
    held_out = max(1, int(HELD_OUT_SHARE * turns))
    train, test = _join(parts[:-held_out]), _join(parts[-held_out:])
    if not len(train.arms) or not len(test.arms):
        return None
    unit = np.sqrt(np.mean(train.places.astype(np.float64) ** 2, axis=(0, 2))).clip(1e-3).astype(np.float32)
    model = _fit(train, unit, arms=arms, config=config, on_progress=lambda share: on_progress(0.5 + 0.5 * share))
    with torch.no_grad():
        error = _predict(model, test, unit) - torch.from_numpy(test.places)
    return PathEncoding(
        declaration,
        network=to_dense(model),
        unit=unit,
        spread=error.square().mean((0, 2)).sqrt().clamp(min=1e-4).numpy(),
        hold=config.hold,
        discount=config.discount,
        controllers=arms,
    )


def _drive_turn(collector: OptionCollector, arms: ArmArray, *, points: int) -> PathLabels:
    """Let controllers arms (n,) drive a turn, and label the observations of its first part."""
    assert collector.memory is not None
    maps, length = collector.memory.maps, TURN * points
    inputs: list[Array] = []
    kept: list[list[NDArray[Any]]] = [[], [], []]  # place and heading of the robots, age of the maps
    scratch = Decisions.empty(len(arms), len(collector.controllers), collector.inputs().shape[1])
    for option in range(length + 1):
        inputs.append(collector.inputs())
        for rows, array in zip(kept, (maps.robot, maps.heading, maps.age), strict=True):
            rows.append(array.copy())
        if option < length:
            collector.drive(arms, int(collector.rng.integers(2**32)), scratch)
    starts = length - points + 1
    robot, heading, ages = (np.stack(rows) for rows in kept)  # (options, n, ...)
    way = np.stack([robot[i : i + starts] for i in range(1, points + 1)], axis=2)  # (starts, n, points, 2)
    places = _turned(way - robot[:starts, :, None], heading[:starts])
    # Where a map began again, because an episode ended or the robot lost its way, its age falls.
    good = np.all([ages[i : i + starts] > ages[i - 1 : i - 1 + starts] for i in range(1, points + 1)], axis=0)
    reach = LARGEST_SPEED * collector.memory.kinds.period * collector.hold * np.arange(1, points + 1)
    good &= (np.hypot(places[..., 0], places[..., 1]) < reach).all(axis=2)
    driving = np.broadcast_to(arms, good.shape)
    return PathLabels(np.stack(inputs[:starts])[good], driving[good], places[good].astype(np.float32))


def _join(parts: Sequence[PathLabels]) -> PathLabels:
    return PathLabels._make(np.concatenate(arrays) for arrays in zip(*parts, strict=True))


def _turned(offsets: FloatArray, heading: FloatArray) -> FloatArray:
    """Turn offsets (..., points, 2) in the arena's axes into the frame of robots with a heading (...)."""
    cos, sin = np.cos(heading)[..., None], np.sin(heading)[..., None]
    x, y = offsets[..., 0], offsets[..., 1]
    return np.stack([cos * x + sin * y, cos * y - sin * x], axis=-1)


def _fit(
    labels: PathLabels, unit: Array, *, arms: int, config: LookAheadConfig, on_progress: Callable[[float], None]
) -> nn.Sequential:
    """Fit a network to labels: only the path of the controller that drove is known."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = relu_layers((labels.inputs.shape[1], *HIDDEN, arms * config.points * 2))
    generator = torch.Generator().manual_seed(config.seed)
    batches = max(1, math.ceil(len(labels.arms) / MINIBATCH))
    optimiser = torch.optim.AdamW(model.parameters(), RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=PASSES * batches)
    scale = torch.from_numpy(unit)[:, None]
    for done in range(PASSES):
        order = torch.randperm(len(labels.arms), generator=generator).numpy()
        for first in range(0, len(order), MINIBATCH):
            some = PathLabels._make(array[order[first : first + MINIBATCH]] for array in labels)
            error = (_predict(model, some, unit) - torch.from_numpy(some.places)) / scale
            loss = error.square().mean()
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own
            optimiser.step()
            schedule.step()
        on_progress((done + 1) / PASSES)
    return model


def _predict(model: nn.Sequential, labels: PathLabels, unit: Array) -> Tensor:
    """Return the places (n, points, 2) that the controllers which drove were to reach, in m."""
    rows = model(torch.from_numpy(labels.inputs)).view(len(labels.arms), -1, len(unit), 2)
    return torch.as_tensor(
        rows[torch.arange(len(rows)), torch.from_numpy(labels.arms)] * torch.from_numpy(unit)[:, None]
    )
