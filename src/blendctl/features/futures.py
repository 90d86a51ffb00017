"""Roll out every controller from the present state: many futures in lock-step, with common random numbers."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray, IndexArray
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.lookahead_network import controller_label
from blendctl.errors import InputError

Rng = np.random.Generator | None  # None: controllers act without noise
Following = Literal["same", "best", "learned"]
FOLLOWING: tuple[Following, ...] = ("same", "best", "learned")

_DRAWS_PER_STEP = 2**24  # distance in the stream of action noise from one control step to the next


class Branches(Protocol):
    """Copies of the present state that advance together, one per row."""

    @property
    @abstractmethod
    def observations(self) -> FloatArray:
        """Present observations, (rows, observation_size)."""

    @property
    @abstractmethod
    def running(self) -> BoolArray:
        """Whether the episode of a row continues, (rows,)."""

    @abstractmethod
    def step(self, actions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Advance by actions (rows, action_size); return reward and cost (rows,), 0 where the episode is over."""

    def drive(
        self, drivers: FutureDrivers, arm: IndexArray, steps: int, *, block: int, rng: Rng, discount: float
    ) -> FloatArray | None:
        """Let controllers arm (rows,) drive several steps at once; return discounted sums of reward and cost (2, rows).

        Return None if it cannot; then the rows advance step by step.
        """
        return None

    @abstractmethod
    def branch(self, index: IndexArray) -> Branches:
        """Return copies of the rows of an index."""


class Simulator(Protocol):
    """Copies of the present state of B worlds."""

    copies_driven: bool = False  # whether it copies the environment that is driven

    @abstractmethod
    def open(
        self, observations: FloatArray, rows: IndexArray, seeds: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> Branches:
        """Return copies of worlds rows (m,) that draw from seeds (m,).

        Their observations (n, observation_size) and the control steps (n,) of their episodes so far are known.
        """


@dataclass(frozen=True)
class RolloutPlan:
    """Settings of a rollout."""

    hold: int  # control steps of the first option
    horizon: int  # control steps in total
    discount: float  # per control step
    following: Following  # which controller drives after the first option
    stochastic: bool  # draw actions from the controllers' distributions


@dataclass(frozen=True)
class Futures:
    """S futures of every controller in n worlds; the K continuations of the first option are those of the plan."""

    returns: FloatArray  # (n, controllers, continuations, S) discounted
    costs: FloatArray  # (n, controllers, continuations, S) discounted
    ends: FloatArray  # (n, controllers, continuations, S, observation_size) final observations
    carry: FloatArray  # (n, controllers, continuations, S) discount of what follows; 0 where the episode is over
    steps: int  # control steps that were simulated


def roll_out(
    branches: Branches,
    drivers: FutureDrivers,
    plan: RolloutPlan,
    *,
    samples: int,
    seed: int,
    choose: Callable[[FloatArray], IndexArray] | None = None,
    deadline: float | None = None,
) -> Futures | None:
    """Drive the rows (controllers, samples, n) of `branches` to the horizon; each controller drives its first option.

    following: "same" lets the controller drive on; "best" branches after the option, once per controller; "learned"
    asks `choose(observations)` for the controllers at every decision after the first. All rows of a sample and world
    have the same action noise. At the deadline (of `time.perf_counter`) the futures stop; None if the first option is
    not complete.
    """
    arms = len(drivers)
    rows = len(branches.observations)
    block = rows // arms
    arm = np.repeat(np.arange(arms), block)
    sums, factor, continuations, step = np.zeros((2, rows)), 1.0, 1, 0
    noise = np.random.default_rng(seed) if plan.stochastic else None
    while step < plan.horizon:
        if step == plan.hold and plan.following == "best" and arms > 1:
            index = np.repeat(np.arange(rows).reshape(arms, 1, block), arms, axis=1).ravel()
            branches, drivers, sums = branches.branch(index), drivers.branch(index), sums[:, index]
            arm = np.tile(np.repeat(np.arange(arms), block), arms)
            continuations = arms
        elif step and step % plan.hold == 0 and plan.following == "learned":
            assert choose is not None
            arm = choose(branches.observations)
        if deadline is not None and time.perf_counter() > deadline:
            if step < plan.hold:
                return None
            break
        if not branches.running.any():
            step = plan.horizon
            break
        pauses = deadline is not None or plan.following == "learned" or (plan.following == "best" and step < plan.hold)
        steps = min(plan.hold - step % plan.hold if pauses else plan.horizon, plan.horizon - step)
        driven = branches.drive(drivers, arm, steps, block=block, rng=noise, discount=plan.discount)
        if driven is None:
            actions = drivers.act(branches.observations, arm, block=block, rng=noise)
            driven, steps = np.stack(branches.step(actions)), 1
        sums += factor * driven
        factor *= plan.discount**steps
        step += steps
    shape = (arms, continuations, samples, block // samples)
    returns, costs = (np.moveaxis(values.reshape(shape), -1, 0) for values in sums)
    ends = np.moveaxis(branches.observations.reshape(*shape, -1), 3, 0)
    carry = np.moveaxis(np.where(branches.running, factor, 0.0).reshape(shape), -1, 0)
    return Futures(returns, costs, ends, carry, step)


class FutureDrivers:
    """The controllers of the futures; those with memory have a copy per row."""

    def __init__(self, controllers: Sequence[Controller], limits: tuple[Any, Any] | None) -> None:
        self.controllers, self.limits = list(controllers), limits
        self._copies: dict[int, list[Any]] = {}  # of the controllers with memory, by arm

    def __len__(self) -> int:
        return len(self.controllers)

    def open(self, remembered: dict[int, Controller], rows: int) -> FutureDrivers:
        """Return drivers of `rows` rows, with copies of the controllers with memory."""
        made = FutureDrivers(self.controllers, self.limits)
        made._copies = {arm: [copy.deepcopy(one) for _ in range(rows)] for arm, one in remembered.items()}
        return made

    def branch(self, index: IndexArray) -> FutureDrivers:
        """Return drivers of the rows of an index."""
        made = FutureDrivers(self.controllers, self.limits)
        made._copies = {arm: [copy.deepcopy(rows[i]) for i in index] for arm, rows in self._copies.items()}
        return made

    def act(self, observations: FloatArray, arm: IndexArray, *, block: int, rng: Rng) -> FloatArray:
        """Return actions (rows, action_size) of controllers arm (rows,); every block of rows has the same noise."""
        actions: FloatArray | None = None
        start: Any = None if rng is None else rng.bit_generator.state
        for first in range(0, len(observations), block):
            rows = slice(first, first + block)
            here = arm[rows]
            for one in here[:1] if (here == here[0]).all() else np.unique(here):
                if rng is not None:
                    rng.bit_generator.state = start
                chosen = self._ask(int(one), observations[rows], rows, rng)
                if actions is None:
                    actions = np.empty((len(observations), chosen.shape[1]))
                mine = here == one
                actions[rows][mine] = chosen[mine]
        if rng is not None:
            _next_step(rng, start)
        assert actions is not None
        return actions if self.limits is None else np.clip(actions, *self.limits)

    def noise(self, steps: int, shape: tuple[int, int], rng: Rng) -> FloatArray:
        """Return the noise (steps, *shape) that `act` would draw for a network in these steps."""
        drawn = np.zeros((steps, *shape))
        if rng is None:
            return drawn
        for step in drawn:
            start = rng.bit_generator.state
            step[:] = rng.standard_normal(shape)
            _next_step(rng, start)
        return drawn

    def _ask(self, arm: int, observations: FloatArray, rows: slice, rng: Rng) -> FloatArray:
        if arm not in self._copies:
            return act_rows(self.controllers[arm], observations, rng)
        asked = zip(self._copies[arm][rows], observations, strict=True)
        return np.stack([np.asarray(one.act(row, rng), np.float64) for one, row in asked])


def _next_step(rng: np.random.Generator, start: Any) -> None:
    """Advance a generator from its state at the start of a control step to the next one."""
    rng.bit_generator.state = start
    rng.bit_generator.advance(_DRAWS_PER_STEP)  # type: ignore[attr-defined]  # PCG64 has it


def remember(controllers: Sequence[Controller]) -> dict[int, Controller]:
    """Return copies of the controllers with memory, by arm; refuse one that cannot be copied."""
    copies: dict[int, Controller] = {}
    for arm, controller in enumerate(controllers):
        if isinstance(controller, Stateful):
            try:
                copies[arm] = copy.deepcopy(controller)
            except Exception as error:
                raise InputError(
                    f"the controller {controller_label(controller)} has memory and cannot be copied with it "
                    f"({type(error).__name__}: {error}); simulated look-ahead needs a __deepcopy__ of it"
                ) from error
    return copies
