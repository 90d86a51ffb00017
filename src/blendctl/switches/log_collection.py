"""Log drives for an offline-trained switch: the controllers take turns by chance, on layouts of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendctl.controllers import Controller
from blendctl.controllers.adapters import act_rows
from blendctl.envs import VectorWorld
from blendctl.errors import InputError
from blendctl.switches.state_features import describe_states

__all__ = ["Log", "log_drives"]

FloatArray = NDArray[np.float64]

STRIDE = 5  # control steps from one described state to the next, if it divides the windows


@dataclass(frozen=True)
class Log:
    """Windows of `every` steps that one controller drove, with the states at both ends."""

    state: FloatArray  # (windows, size)
    arm: NDArray[np.intp]  # (windows,) who drove
    brought: FloatArray  # (windows, 2) discounted reward and cost
    after: FloatArray  # (windows, size)
    discount: float  # of a step


def log_drives(
    worlds: VectorWorld,
    controllers: Sequence[Controller],
    *,
    seed: int,
    every: int,
    discount: float,
    steps: int,
) -> Log:
    """Drive one episode of `steps` steps in each world; turns last `every` to three times as long.

    Windows may overlap: one begins every few steps.
    """
    n, stride = worlds.num_envs, math.gcd(STRIDE, every)
    rng = np.random.default_rng([seed, 7])
    observations, _ = worlds.reset(seed=seed)
    driver, left = np.zeros(n, np.intp), np.zeros(n, np.int64)
    states, drivers = [], np.zeros((steps, n), np.intp)
    reward, cost = np.zeros((steps, n)), np.zeros((steps, n))
    for t in range(steps):
        over = left == 0
        driver = np.where(over, rng.integers(len(controllers), size=n), driver)
        left = np.where(over, rng.integers(every, 3 * every + 1, size=n), left) - 1
        if t % stride == 0:
            states.append(describe_states(controllers, observations))
        proposals = np.stack([act_rows(c, observations, rng) for c in controllers])
        drivers[t] = driver
        actions = np.clip(proposals[driver, np.arange(n)], -1.0, 1.0)
        observations, reward[t], terminated, truncated, infos = worlds.step(actions)
        cost[t] = infos["cost"]
        if (terminated | truncated).any():
            steps = t + 1  # lock-step: what follows would mix episodes
            break
    powers = discount ** np.arange(every)
    found = []
    for t in range(0, steps - every, stride):
        if t + every > (len(states) - 1) * stride:
            break
        same = np.flatnonzero((drivers[t : t + every] == drivers[t]).all(axis=0))
        brought = np.stack([powers @ values[t : t + every, same] for values in (reward, cost)], axis=1)
        later = states[(t + every) // stride][same]
        found.append((states[t // stride][same], drivers[t, same], brought, later))
    if not found:
        raise InputError(f"episodes of {steps} steps are too short for windows of {every}; log longer ones")
    state, arm, brought, after = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Log(state, arm, brought, after, discount)
