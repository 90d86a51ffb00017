"""What every controller would have brought, and whether the choice was correct."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.blender.record import Record
from blendctl.compiled import compiled
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.blender.core import Blender

__all__ = ["correct_choices", "Judge", "CLEARLY"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

CLEARLY = 1e-5  # another arm is better in an objective if it is so by more than this


def correct_choices(truth: ArrayLike, arm: ArrayLike) -> BoolArray:
    """Tell which choices were correct: arm (...) of arms whose true feedback is truth (..., arms, objectives).

    A choice is wrong if another arm is at least as good in every objective and better by more than 1e-5 in one.

    >>> correct_choices([[0.0, 1.0], [0.0, 0.5]], 0), correct_choices([[0.0, 1.0], [0.0, 0.5]], 1)
    (array(True), array(False))
    """
    values = np.asarray(truth, dtype=np.float64)
    chosen = np.take_along_axis(values, np.asarray(arm)[..., None, None], axis=-2)  # (..., 1, objectives)
    ahead = values - chosen
    better = (ahead >= 0).all(axis=-1) & (ahead > CLEARLY).any(axis=-1)  # (..., arms)
    return np.asarray(~better.any(axis=-1))


@compiled
def correct_choice(truth: FloatArray, arm: int) -> bool:
    """Tell it of one choice, in a fraction of a microsecond; arms of which nothing is known (NaN) are passed over."""
    arms, objectives = truth.shape
    for other in range(arms):
        as_good, better = True, False
        for k in range(objectives):
            ahead = truth[other, k] - truth[arm, k]
            if not ahead >= 0.0:
                as_good = False
            elif ahead > CLEARLY:
                better = True
        if as_good and better:
            return False
    return True


class Judge:
    """Step the controllers that did not drive from the same frozen state, with the same noise.

    The world does not move, and is the same for all: what the driver brings is seen when it drives. With hold > 1
    every controller drives through the whole stage, with the noise that it would have drawn; a controller that
    remembers what it saw would remember this too.
    """

    def __init__(self, env: Any, blender: Blender) -> None:
        self.world = getattr(env, "unwrapped", env)
        if not hasattr(self.world, "peek"):
            raise InputError(
                f"counterfactual steps need a world with `peek`, as blendctl's have, actually: {self.world!r}"
            )
        self.blender = blender
        self.hold = blender.hold
        self._rngs: list[Any] = []
        self._driven: FloatArray | float = 0.0  # what the driver has brought in this stage

    def before(self) -> None:
        """Keep the controllers' generators as they are before they draw."""
        last = self.blender.last
        if self.hold > 1 and (last is None or last.closed):
            self._rngs = copy.deepcopy(self.blender.drivers.rngs)

    def look(self, record: Record) -> None:
        """Tell a stage that has just begun what the others would bring; arms without an action stay unknown."""
        self._driven = 0.0
        record.truth = np.full((len(record.proposals), len(self.blender.objectives)), np.nan)
        others = [
            arm for arm, action in enumerate(record.proposals) if action is not None and arm != record.arm
        ]
        if not others:
            return
        if self.hold == 1:
            actions = np.array([record.proposals[arm] for arm in others])
            reward, cost, parts = self.world.peek(actions, components=True)
        else:
            policies = [self._policy(arm) for arm in others]
            reward, cost, parts = self.world.peek(policies, horizon=self.hold, components=True)
        told = {"reward": reward, "cost": cost, **parts}
        record.truth[others] = self.blender.objectives.arrays(told)

    def see(self, record: Record, feedback: FloatArray, *, ended: bool) -> None:
        """Hear what a step of the driver brought; when the stage is over, tell whether the choice was correct."""
        self._driven = self._driven + feedback
        if record.truth is None:
            return
        if record.closed and record.arm >= 0:
            record.truth[record.arm] = self._driven
            record.correct = bool(correct_choice(record.truth, record.arm))
        elif ended:
            record.truth = None  # the others drove on to a full stage: they cannot be compared

    def _policy(self, arm: int) -> Any:
        controller, rng = self.blender.controllers[arm], self._rngs[arm]
        return lambda observation: controller.act(observation, rng)
