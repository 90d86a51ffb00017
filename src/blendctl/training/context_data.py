"""Data for the context networks: transitions of rollouts in which the controllers take turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from blendctl.controllers import NetworkController
from blendctl.errors import InputError
from blendctl.rollout import StepBatch, StepInput, Switch, rollout

SHORT = 10  # steps: the longest of the short turns


@dataclass(frozen=True)
class Drives:
    """Steps of many worlds in which several controllers took turns."""

    observations: NDArray[np.float32]  # (steps, worlds, observation_size)
    actions: NDArray[np.float32]  # (steps, worlds, action_size)
    rewards: NDArray[np.float32]  # (steps, worlds)
    costs: NDArray[np.float32]  # (steps, worlds)
    driver: NDArray[np.int16]  # (steps, worlds) index of the controller that drove
    ended: NDArray[np.bool_]  # (steps, worlds) the episode ended with this step


class MixedTurns(Switch):
    """Let controllers take turns: half of them short (1 to 10 steps), the others `longest` to twice as long."""

    def __init__(self, arms: int, worlds: int, *, longest: int, rng: np.random.Generator) -> None:
        self.arms, self.longest, self.rng = arms, longest, rng
        self.arm = rng.integers(arms, size=worlds)
        self.left = np.zeros(worlds, np.int64)  # steps of the present turn
        self._draw()

    def choose(self, frame: StepInput) -> NDArray[np.intp]:
        return self.arm

    def learn(self, batch: StepBatch) -> None:
        # The next turn is drawn here, before the controllers draw their noise from the same generator.
        self._draw()

    def _draw(self) -> None:
        n, over = len(self.left), self.left == 0
        self.arm = self.arm.copy()
        self.arm[over] = self.rng.integers(self.arms, size=int(over.sum()))
        short = self.rng.integers(1, SHORT + 1, size=n)
        long = self.rng.integers(self.longest, 2 * self.longest + 1, size=n)
        self.left = np.where(over, np.where(self.rng.random(n) < 0.5, short, long), self.left) - 1


def collect(
    worlds: VectorEnv[Any, Any, Any],
    controllers: Sequence[NetworkController],
    *,
    steps: int,
    seed: int,
    longest: int,
    on_step: Callable[[int], None] = lambda done: None,
) -> Drives:
    """Let the controllers take turns of random length for `steps` steps in every world.

    Short turns occur when a blend hesitates. Long turns leave windows of `longest` steps under one driver, also from
    states that another one led to. One controller drives alone. `on_step` is called with the steps done.
    """
    if not controllers:
        raise InputError("no controllers to collect data from; pass at least one")
    shape, rng = (steps, worlds.num_envs), np.random.default_rng([seed, 3])
    out = Drives(
        np.empty((*shape, controllers[0].observation_size), np.float32),
        np.empty((*shape, controllers[0].action_size), np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        driver=np.empty(shape, np.int16),
        ended=np.empty(shape, np.bool_),
    )
    turns = MixedTurns(len(controllers), worlds.num_envs, longest=longest, rng=rng)
    for t, batch in enumerate(
        rollout(
            worlds,
            turns,
            controllers=controllers,
            seed=seed,
            rngs=[rng] * len(controllers),
            episodes=None,
            steps=steps,
            ask="driver",
            raw_proposals=True,
        )
    ):
        out.observations[t], out.actions[t], out.driver[t] = batch.input.observations, batch.actions, batch.arm
        out.rewards[t], out.costs[t], out.ended[t] = batch.reward, batch.cost, batch.ended
        on_step(t + 1)
    return out


def sums_ahead(
    drives: Drives, horizon: int, *, driver: int, discount: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Return discounted sums of rewards and of costs over `horizon` steps from each step, and which of them count.

    A window counts if `driver` drove all of it within one episode. The next step (horizon 1) counts for every
    driver: it follows from state and action alone.

    >>> ones = np.ones((4, 1), np.float32)
    >>> who = np.array([[0], [0], [1], [1]], np.int16)
    >>> drives = Drives(ones[..., None], ones[..., None], ones, 2 * ones, driver=who, ended=ones > 1)
    >>> rewards, costs, counts = sums_ahead(drives, 2, driver=0, discount=0.5)
    >>> rewards.ravel().tolist(), costs.ravel().tolist(), counts.ravel().tolist()
    ([1.5, 1.5, 1.5, 1.0], [3.0, 3.0, 3.0, 2.0], [True, False, False, False])
    """
    steps = len(drives.rewards)
    rewards, costs = np.zeros_like(drives.rewards), np.zeros_like(drives.costs)
    for j in range(min(horizon, steps)):
        rewards[: steps - j] += discount**j * drives.rewards[j:]
        costs[: steps - j] += discount**j * drives.costs[j:]
    if horizon == 1:
        return rewards, costs, np.ones(rewards.shape, np.bool_)
    run = np.ones(drives.driver.shape, np.int64)  # steps that the present driver drives on in this episode
    for t in range(steps - 2, -1, -1):
        goes_on = ~drives.ended[t] & (drives.driver[t + 1] == drives.driver[t])
        run[t] += np.where(goes_on, run[t + 1], 0)
    return rewards, costs, (run >= horizon) & (drives.driver == driver)
