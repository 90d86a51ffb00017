"""What every controller would have brought, and whether the choice was correct."""

from __future__ import annotations

import copy
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.blender.record import Record
from blendctl.compiled import compiled
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.blender.core import Blender
    from blendctl.envs.deferred_peek import DeferredPeeks, PeekResult

__all__ = ["correct_choices", "CounterfactualEvaluator", "CLEARLY"]

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


class CounterfactualEvaluator:
    """Step the controllers that did not drive from the same frozen state, with the same noise.

    The world does not move, and is the same for all: what the driver brings is seen when it drives. In our own worlds
    the others are stepped later, some tens of states at once, while the world goes on: what they bring is known when
    `settled` says so, at the latest after `settle`. With hold > 1 every controller drives through the whole stage, at
    once, with the noise that it would have drawn; a controller that remembers what it saw would remember this too.
    """

    def __init__(self, env: Any, blender: Blender) -> None:
        self.world, self._doubtful = peeking_layer(env)
        self._expected: FloatArray | None = None  # what the driver should bring, where a wrapper may change it
        self.blender = blender
        self.hold = blender.hold
        self._rngs: list[Any] = []
        self._driven: FloatArray | float = 0.0  # what the driver has brought in this stage
        self._late = deferred_peeks(self.world) if self.hold == 1 else None
        self._asked: list[tuple[Record, int]] = []  # whose action will be judged, for which arm
        self._judging: list[tuple[Record, int]] = []  # is being judged
        self._found: Future[PeekResult] | None = None
        self._unknown: set[int] = set()  # stages that are not settled
        if blender.recorder is not None:
            blender.recorder.settle = self.settle

    def before(self) -> None:
        """Keep the controllers' generators as they are before they draw."""
        last = self.blender.last
        if self.hold > 1 and (last is None or last.closed):
            self._rngs = copy.deepcopy(self.blender.drivers.rngs)

    def look(self, record: Record) -> None:
        """Tell a stage that has just begun what the others would bring; arms without an action stay unknown."""
        self._driven = 0.0
        self._expected = None
        if self._doubtful and record.arm >= 0:
            self._expected = (
                self._peek(np.array([record.action]))
                if self.hold == 1
                else self._peek([self._policy(record.arm)], horizon=self.hold)
            )[0]
        record.truth = np.full((len(record.proposals), len(self.blender.objectives)), np.nan)
        others = [arm for arm, action in enumerate(record.proposals) if action is not None and arm != record.arm]
        if not others:
            return
        if self._late is not None:
            for arm in others:
                if self._late.full:
                    self._start()
                action = record.proposals[arm]
                assert action is not None
                self._late.add(action)
                self._asked.append((record, arm))
            self._unknown.add(record.stage)
            return
        if self.hold == 1:
            record.truth[others] = self._peek(np.array([record.proposals[arm] for arm in others]))
        else:
            record.truth[others] = self._peek([self._policy(arm) for arm in others], horizon=self.hold)

    def _peek(self, alternatives: Any, **how: int) -> FloatArray:
        """Give what alternatives would bring (k, objectives)."""
        reward, cost, parts = self.world.peek(alternatives, components=True, **how)
        return self._objectives({"reward": reward, "cost": cost, **parts})

    def _objectives(self, told: dict[str, FloatArray]) -> FloatArray:
        missing = [signal for signal in self.blender.objectives.signals if signal not in told]
        if missing:
            raise InputError(
                f"counterfactual steps must tell {', '.join(missing)}, for the objectives; the world's peek tells "
                f"{', '.join(told)}. A wrapper that adds a signal must bring a peek of its own"
            )
        return self.blender.objectives.arrays(told)

    def see(self, record: Record, feedback: FloatArray, *, ended: bool) -> None:
        """Hear what a step of the driver brought; when the stage is over, tell whether the choice was correct."""
        self._driven = self._driven + feedback
        if self._expected is not None and record.closed:
            if not np.allclose(self._driven, self._expected, rtol=1e-9, atol=1e-9):
                raise InputError(
                    "a wrapper changes rewards, costs or actions, and counterfactual steps cannot see it: the step "
                    f"brought {self._driven.tolist()}, a peek with the same action {self._expected.tolist()}. Give the "
                    "wrapper a peek of its own, or leave counterfactual out"
                )
            self._expected = None
        if record.truth is None:
            return
        if record.closed and record.arm >= 0:
            record.truth[record.arm] = self._driven
            if self.settled(record):
                record.correct = bool(correct_choice(record.truth, record.arm))
        elif ended:
            record.truth = None  # the others drove on to a full stage: they cannot be compared

    def settled(self, record: Record) -> bool:
        """Tell whether all is known of a stage that can be."""
        return record.stage not in self._unknown

    def settle(self) -> None:
        """Wait until all is known of every stage so far."""
        if self._asked:
            self._start()
        self._collect()

    def close(self) -> None:
        """Settle, and let the thread go."""
        self.settle()
        if self.blender.recorder is not None:
            self.blender.recorder.settle = None
        if self._late is not None:
            self._late.close()

    def _start(self) -> None:
        """Have judged what has come together, after what is being judged."""
        self._collect()
        assert self._late is not None
        self._found = self._late.start()
        self._judging, self._asked = self._asked, []

    def _collect(self) -> None:
        if self._found is None:
            return
        found, self._found = self._found.result(), None
        brought = self._objectives({"reward": found.reward, "cost": found.cost, **found.parts})  # (n, objectives)
        for (record, arm), values in zip(self._judging, brought, strict=True):
            if record.truth is not None:
                record.truth[arm] = values
        still = self._asked[0][0].stage if self._asked else None  # its other arms are judged in the next lot
        for record, _ in self._judging:
            if record.stage in self._unknown and record.stage != still:
                self._unknown.discard(record.stage)
                if record.truth is None or record.arm < 0:
                    continue
                if np.isfinite(record.truth[record.arm]).all():
                    record.correct = bool(correct_choice(record.truth, record.arm))
        self._judging = []

    def _policy(self, arm: int) -> Any:
        controller, rng = self.blender.controllers[arm], self._rngs[arm]
        return lambda observation: controller.act(observation, rng)


def peeking_layer(env: Any) -> tuple[Any, bool]:
    """Give the outermost layer of an environment that can peek, and whether a wrapper outside may change things."""
    from gymnasium import wrappers

    layer, outside = env, []
    while not hasattr(layer, "peek"):
        if not isinstance(layer, gymnasium.Wrapper):
            raise InputError(f"counterfactual steps need a world with `peek`, as blendctl's have, actually: {env!r}")
        outside.append(layer)
        layer = layer.env
    harmless = (
        wrappers.TimeLimit,
        wrappers.OrderEnforcing,
        wrappers.PassiveEnvChecker,
        wrappers.RecordEpisodeStatistics,
        gymnasium.ObservationWrapper,
    )
    return layer, any(
        not isinstance(wrapper, harmless) and not getattr(wrapper, "only_watches", False) for wrapper in outside
    )


def deferred_peeks(world: Any) -> DeferredPeeks | None:
    """Give the means to judge states of this world later, if it is one of ours."""
    from blendctl.envs import SingleWorld

    if not isinstance(world, SingleWorld):
        return None
    from blendctl.envs.deferred_peek import DeferredPeeks

    return DeferredPeeks(world)
