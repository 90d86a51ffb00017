"""Log rollouts for an offline-trained switch: the controllers take random turns, on separate layouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import ArmArray, FloatArray
from blendctl.controllers import Controller
from blendctl.errors import InputError
from blendctl.rollout import StepBatch, rollout
from blendctl.switches.base import StepInput, Switch
from blendctl.switches.state_features import describe_states

STRIDE = 5  # control steps from one described state to the next, if it divides the windows


@dataclass(frozen=True)
class Log:
    """Windows of `every` steps that one controller drove, with the states at both ends."""

    state: FloatArray  # (windows, size)
    arm: NDArray[np.intp]  # (windows,) the controller that drove
    sums: FloatArray  # (windows, 2) discounted reward and cost
    after: FloatArray  # (windows, size)
    discount: float  # of a step


class RandomTurns(Switch):
    """Let controllers take turns of `every` to three times as many steps, each drawn with equal probability."""

    def __init__(self, arms: int, worlds: int, *, every: int, rng: np.random.Generator) -> None:
        self.arms, self.every, self.rng = arms, every, rng
        self.arm, self.left = np.zeros(worlds, np.intp), np.zeros(worlds, np.int64)
        self._draw()

    def choose(self, frame: StepInput) -> ArmArray:
        return self.arm

    def learn(self, batch: StepBatch) -> None:
        # The next turn is drawn here, before the controllers draw their noise from the same generator.
        self._draw()

    def _draw(self) -> None:
        n, over = len(self.left), self.left == 0
        self.arm = np.where(over, self.rng.integers(self.arms, size=n), self.arm)
        self.left = np.where(over, self.rng.integers(self.every, 3 * self.every + 1, size=n), self.left) - 1


def log_drives(
    worlds: Any,
    controllers: Sequence[Controller],
    *,
    seed: int,
    every: int,
    discount: float,
    episodes: int = 1,
    steps: int | None = None,
) -> Log:
    """Run episodes in each world, of at most `steps` steps in all, and cut them into windows of `every` steps.

    Windows may overlap: one begins every few steps. None crosses the end of an episode.
    """
    stride, rng = math.gcd(STRIDE, every), np.random.default_rng([seed, 7])
    turns = RandomTurns(len(controllers), worlds.num_envs, every=every, rng=rng)
    states: list[FloatArray] = []
    steps_taken: list[tuple[ArmArray, FloatArray, FloatArray]] = []
    number: list[NDArray[np.int64]] = []  # of the present episode, by step and world; -1 after the last
    rngs = [rng] * len(controllers)
    now = np.zeros(worlds.num_envs, np.int64)
    for batch in rollout(worlds, turns, controllers=controllers, seed=seed, rngs=rngs, episodes=episodes, steps=steps):
        if batch.input.step % stride == 0:
            states.append(describe_states(controllers, batch.input.observations))
        number.append(np.where(batch.counted, now, -1))
        now = now + batch.ended
        steps_taken.append((batch.arm, batch.reward, batch.cost))
    drivers, reward, cost = (np.stack(column) for column in zip(*steps_taken, strict=True))
    powers = discount ** np.arange(every)
    windows = []
    last = min(len(drivers) - every, (len(states) - 1) * stride - every + 1)
    for t in range(0, last, stride):
        inside = (number[t + every] == number[t]) & (number[t] >= 0)
        same = np.flatnonzero((drivers[t : t + every] == drivers[t]).all(axis=0) & inside)
        sums = np.stack([powers @ values[t : t + every, same] for values in (reward, cost)], axis=1)
        windows.append((states[t // stride][same], drivers[t, same], sums, states[(t + every) // stride][same]))
    if not any(len(arms) for _, arms, *_ in windows):
        raise InputError(f"episodes of {len(drivers)} steps are too short for windows of {every}; log longer ones")
    state, arm, sums, after = (np.concatenate(parts) for parts in zip(*windows, strict=True))
    return Log(state, arm, sums, after, discount)
