"""Measure the dial of look-ahead networks: return and cost of whole episodes, by cost weight and by controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.controllers import Controller, LookAheadNetwork
from blendctl.controllers.lookahead_network import EpisodeMemory, controller_label
from blendctl.envs.catalog import find_task
from blendctl.episodes import run_episodes
from blendctl.rollout import StepInput
from blendctl.switches.base import ArmArray, Switch, open_worlds
from blendctl.switches.single_controller import SingleController

VALIDATION_SEED = 500_000
WORLDS_AT_ONCE = 50


class FixedWeightSwitch(Switch):
    """Every `hold` steps of an episode, let the controller with the highest score at one cost weight drive."""

    def __init__(self, network: LookAheadNetwork, weight: float) -> None:
        self.network, self.weight, self.memory = network, weight, EpisodeMemory(network)

    def choose(self, frame: StepInput) -> ArmArray:
        due = frame.episode_step % self.network.hold == 0
        arm = frame.last_arm.copy()
        if due.any():
            memory = self.memory.observe(frame.observations, frame.episode_step)
            arm[due] = self.network.choose(frame.observations, self.weight, memory)[due]
        return arm


def measure_dial(
    network: LookAheadNetwork,
    controllers: Sequence[Controller],
    *,
    world: str,
    weights: Sequence[float],
    episodes: int,
    budget: float = 25.0,
    threads: int = 1,
    on_progress: Callable[[float], None] = lambda share: None,
) -> dict[str, Any]:
    """Return entries of the card: "dial" with the switch at each weight, "alone" with each controller, "episode_steps".

    Every row has the means of return and cost, the standard deviation of the cost over the episodes, and the share of
    episodes whose cost is above the budget. All rows use the same layouts and the same action noise.
    """
    network.check_controllers(controllers)
    switches: list[tuple[dict[str, Any], Switch]] = [
        ({"weight": float(weight)}, FixedWeightSwitch(network, weight)) for weight in weights
    ]
    switches += [({"name": controller_label(c)}, SingleController(arm)) for arm, c in enumerate(controllers)]

    def run(switch: Switch, *, done: int) -> tuple[FloatArray, FloatArray]:
        """Return returns and costs of the episodes, (episodes,) each."""
        parts = []
        for first in range(0, episodes, WORLDS_AT_ONCE):
            count = min(WORLDS_AT_ONCE, episodes - first)
            with closing(open_worlds(world, count, threads=threads)) as worlds:
                part = run_episodes(worlds, controllers, make=lambda _: switch, seed=VALIDATION_SEED + first)
            parts.append((part.returns, part.costs))
            on_progress((done + (first + count) / episodes) / len(switches))
        returns, costs = np.concatenate(parts, axis=1)
        return returns, costs

    rows = []
    for done, (row, switch) in enumerate(switches):
        returns, costs = run(switch, done=done)
        rows.append(
            row
            | {
                "return_mean": float(returns.mean()),
                "cost_mean": float(costs.mean()),
                "cost_std": float(costs.std(ddof=min(1, episodes - 1))),
                "over_budget": float((costs > budget).mean()),
                "episodes": episodes,
                "seed": VALIDATION_SEED,
            }
        )
    steps = find_task(world).max_episode_steps
    return {"dial": rows[: len(weights)], "alone": rows[len(weights) :], "episode_steps": steps}
