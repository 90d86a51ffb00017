"""Data for the context networks: transitions of rollouts in which the controllers take turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from blendctl import pareto
from blendctl.controllers import NetworkController
from blendctl.errors import InputError
from blendctl.rollout import StepBatch, StepInput, Switch, rollout

SHORT = 10  # steps: the longest of the short turns
GREEDY_SHARE = 2  # one world in this many is driven by the best choice of one step, if it is known


@dataclass(frozen=True)
class Drives:
    """Steps of many worlds in which several controllers took turns."""

    observations: NDArray[np.float32]  # (steps, worlds, observation_size)
    actions: NDArray[np.float32]  # (steps, worlds, action_size)
    rewards: NDArray[np.float32]  # (steps, worlds)
    costs: NDArray[np.float32]  # (steps, worlds)
    driver: NDArray[np.int16]  # (steps, worlds) index of the controller that drove
    ended: NDArray[np.bool_]  # (steps, worlds) the episode ended with this step
    proposals: NDArray[np.float32]  # (steps, worlds, arms, action_size) actions whose feedback is known
    truth: NDArray[np.float32]  # (steps, worlds, arms, 2) their reward and cost, from the same state


class MixedTurns(Switch):
    """Let controllers take turns: half of them short (1 to 10 steps), the others `longest` to twice as long.

    In the first `greedy` worlds, the arm with the smallest maximal loss in the previous step drives: a blend with good
    predictions visits such states.
    """

    def __init__(self, arms: int, worlds: int, *, longest: int, rng: np.random.Generator, greedy: int = 0) -> None:
        self.arms, self.longest, self.rng, self.greedy = arms, longest, rng, greedy
        self.arm = rng.integers(arms, size=worlds)
        self.left = np.zeros(worlds, np.int64)  # steps of the present turn
        self._draw()

    def choose(self, frame: StepInput) -> NDArray[np.intp]:
        return self.arm

    def learn(self, batch: StepBatch) -> None:
        # The next turn is drawn here, before the controllers draw their noise from the same generator.
        self._draw()
        if self.greedy and batch.counterfactual is not None:
            self.arm[: self.greedy] = pareto.maximal_loss(_objectives(batch)[: self.greedy]).argmin(axis=1)

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
    counterfactual: bool = False,
    on_step: Callable[[int], None] = lambda done: None,
) -> Drives:
    """Let the controllers take turns of random length for `steps` steps in every world.

    Short turns occur when a blend switches often. Long turns leave windows of `longest` steps under one driver, also
    from states that another one reached. A single controller drives alone. With `counterfactual`, the worlds also
    evaluate the controllers that do not drive, and half of them follow the best choice of one step. `on_step` is
    called with the steps done.
    """
    if not controllers:
        raise InputError("no controllers to collect data from; pass at least one")
    shape, rng = (steps, worlds.num_envs), np.random.default_rng([seed, 3])
    known = len(controllers) if counterfactual else 1
    out = Drives(
        np.empty((*shape, controllers[0].observation_size), np.float32),
        np.empty((*shape, controllers[0].action_size), np.float32),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        driver=np.empty(shape, np.int16),
        ended=np.empty(shape, np.bool_),
        proposals=np.empty((*shape, known, controllers[0].action_size), np.float32),
        truth=np.empty((*shape, known, 2), np.float32),
    )
    greedy = worlds.num_envs // GREEDY_SHARE if known > 1 else 0
    turns = MixedTurns(len(controllers), worlds.num_envs, longest=longest, rng=rng, greedy=greedy)
    for t, batch in enumerate(
        rollout(
            worlds,
            turns,
            controllers=controllers,
            seed=seed,
            rngs=[rng] * len(controllers),
            episodes=None,
            steps=steps,
            counterfactual_every=int(known > 1),
            ask="driver" if known == 1 else "all",
            raw_proposals=True,
        )
    ):
        out.observations[t], out.actions[t], out.driver[t] = batch.input.observations, batch.actions, batch.arm
        out.rewards[t], out.costs[t], out.ended[t] = batch.reward, batch.cost, batch.ended
        if known > 1:
            out.proposals[t] = batch.input.proposals.transpose(1, 0, 2)
            out.truth[t] = _objectives(batch) * (1.0, -1.0)
        else:
            out.proposals[t, :, 0], out.truth[t, :, 0] = batch.actions, np.stack([batch.reward, batch.cost], axis=1)
        on_step(t + 1)
    return out


def _objectives(batch: StepBatch) -> NDArray[np.float64]:
    """Return the reward and -cost (worlds, arms, 2) of every controller."""
    assert batch.counterfactual is not None
    return np.stack([batch.counterfactual["reward"].T, -batch.counterfactual["cost"].T], axis=-1)


def sums_ahead(
    drives: Drives, horizon: int, *, discount: float
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
    """Return discounted sums of rewards and of costs over `horizon` steps from each step, and a mask of valid windows.

    A window is valid if one controller drove all of it within one episode.

    >>> ones = np.ones((4, 1), np.float32)
    >>> who = np.array([[0], [0], [1], [1]], np.int16)
    >>> known = {"proposals": ones[..., None, None], "truth": np.ones((4, 1, 1, 2), np.float32)}
    >>> drives = Drives(ones[..., None], ones[..., None], ones, 2 * ones, driver=who, ended=ones > 1, **known)
    >>> rewards, costs, counts = sums_ahead(drives, 2, discount=0.5)
    >>> rewards.ravel().tolist(), costs.ravel().tolist(), counts.ravel().tolist()
    ([1.5, 1.5, 1.5, 1.0], [3.0, 3.0, 3.0, 2.0], [True, False, True, False])
    """
    steps = len(drives.rewards)
    rewards, costs = np.zeros_like(drives.rewards), np.zeros_like(drives.costs)
    for j in range(min(horizon, steps)):
        rewards[: steps - j] += discount**j * drives.rewards[j:]
        costs[: steps - j] += discount**j * drives.costs[j:]
    run = np.ones(drives.driver.shape, np.int64)  # remaining steps of the present driver in this episode
    for t in range(steps - 2, -1, -1):
        goes_on = ~drives.ended[t] & (drives.driver[t + 1] == drives.driver[t])
        run[t] += np.where(goes_on, run[t + 1], 0)
    return rewards, costs, run >= horizon
