"""Measure R² of look-ahead networks beside the highest R² that the state allows.

Controllers act with noise, so that the same state has several futures, and no estimate from the state can be better
than their mean. Every state is labelled twice, with independent noise: what both labels share, the state decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.controllers import Controller, LookAheadNetwork
from blendctl.training.lookahead_config import LookAheadConfig
from blendctl.training.lookahead_data import Array, Decisions, OptionCollector
from blendctl.training.lookahead_evaluation import VALIDATION_SEED
from blendctl.training.trainer import make_worlds

WORLDS = 32
LONGEST = 50  # rounds: an episode of 1000 steps with branches of 20
SHARE = 0.05  # environment steps of the measurement, as a share of those of the training


def measure_limit(
    network: LookAheadNetwork,
    controllers: Sequence[Controller],
    *,
    world: str,
    config: LookAheadConfig,
    on_progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Any] | None:
    """Return the entry "limit" of the card, from states of validation episodes; None where states cannot be copied.

    The switch drives at the middle of the dial. `r2_level` and `r2_difference` are those of the networks on these
    states, `limit_level` and `limit_difference` the highest possible, each of return and cost. The targets are those
    of the training: the branch that a controller drives, and after it the networks' estimate.
    """
    network.check_controllers(controllers)
    weight = math.sqrt(network.weight_range[0] * network.weight_range[1])
    with closing(make_worlds(world, count=WORLDS, threads=config.threads)) as worlds:
        collector = OptionCollector(
            worlds,
            controllers,
            encode=network.encoding,
            hold=config.hold,
            commit=config.first_options,
            follow=0,
            discount=config.discount,
            seed=config.seed,
            paths=network.paths,
        )
        if not collector.branching:
            return None
        collector.start(VALIDATION_SEED, np.random.default_rng([config.seed, 5]))
        rounds = max(1, min(LONGEST, round(SHARE * config.steps / (2 * collector.steps_per_decision))))
        labels, estimates = [], []
        for done in range(rounds):
            estimate = network.values(_with_weight(network, collector.inputs(), weight), weight)
            pair = collector.collect_twice(estimate.best)
            labels.append(np.stack([_targets(network, decisions, weight) for decisions in pair]))
            estimates.append(np.stack([estimate.returns, estimate.costs], axis=-1))
            on_progress((done + 1) / rounds)
    entry = compare_with_limit(np.concatenate(estimates), np.concatenate(labels, axis=1))
    return {"states": rounds * WORLDS, "weight": weight, "seed": VALIDATION_SEED} | entry


def compare_with_limit(estimates: FloatArray, labels: FloatArray) -> dict[str, list[float]]:
    """Return R² of estimates (n, controllers, 2) of two labels (2, n, controllers, 2), and the highest possible R²."""
    entry = {}
    for name, known, estimated in (
        ("level", labels, estimates),
        # The differences between the first controller and each other determine those between all pairs.
        ("difference", labels[:, :, :1] - labels[:, :, 1:], estimates[:, :1] - estimates[:, 1:]),
    ):
        variance = np.maximum(known.var(axis=(0, 1, 2)), 1e-12)
        errors = np.mean((known - estimated) ** 2, axis=(0, 1, 2))
        noise = 0.5 * np.mean((known[0] - known[1]) ** 2, axis=(0, 1))
        entry[f"r2_{name}"] = np.round(1.0 - errors / variance, 4).tolist()
        entry[f"limit_{name}"] = np.round(1.0 - noise / variance, 4).tolist()
    return entry


def _targets(network: LookAheadNetwork, decisions: Decisions, weight: float) -> FloatArray:
    """Return return and cost of each branch and after it, (n, controllers, 2)."""
    n, k = decisions.near_carry.shape
    after = network.values(_with_weight(network, decisions.near.reshape(n * k, -1), weight), weight)
    at = np.arange(n * k), after.best
    value = np.stack([after.returns[at], after.costs[at]], axis=1).reshape(n, k, 2)
    return np.asarray(decisions.near_sums + decisions.near_carry[..., None] * value, np.float64)


def _with_weight(network: LookAheadNetwork, inputs: Array, weight: float) -> Array:
    """Append the position of the weight to inputs (n, inputs)."""
    position = np.full((len(inputs), 1), network.position(weight), np.float32)
    return np.concatenate([inputs, position], axis=1)
