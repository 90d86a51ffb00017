"""Counterfactual feedback of every controller, and whether the choice was correct."""

from __future__ import annotations

import copy
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import BoolArray, FloatArray
from blendctl.blender.record import StageDecision
from blendctl.compiled import compiled
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.blender.core import Blender
    from blendctl.envs.deferred_peek import DeferredPeeks, PeekResult

CLEARLY = 1e-5  # an arm is better in an objective if it is better by more than this


def correct_choices(truth: ArrayLike, arm: ArrayLike) -> BoolArray:
    """Score chosen arms (...) against counterfactual feedback (..., arms, objectives): True where correct.

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
    """Score one chosen arm; arms whose feedback is unknown (NaN) are left out."""
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


class StageTruth(NamedTuple):
    """Counterfactual feedback of a stage."""

    stage: int
    truth: FloatArray | None  # (arms, objectives), NaN where unknown; None if the arms cannot be compared
    correct: bool | None  # None if unknown


class _EvaluatedStage:
    """A stage whose counterfactual feedback is being collected."""

    def __init__(self, number: int, arm: int, truth: FloatArray) -> None:
        self.number, self.arm = number, arm
        self.truth: FloatArray | None = truth
        self.waiting = 0  # arms whose peek has no result yet
        self.over = False

    def result(self) -> StageTruth:
        truth, arm = self.truth, self.arm
        if truth is None or arm < 0 or not np.isfinite(truth[arm]).all():
            return StageTruth(self.number, truth, None)
        return StageTruth(self.number, truth, bool(correct_choice(truth, arm)))


class CounterfactualEvaluator:
    """Step the controllers that do not drive from the same frozen state, with the same noise.

    The environment does not move. The controller that drives has its real feedback. In worlds of blendctl the others
    are stepped later, some tens of states at once in a second thread; `take` returns the stages whose results are
    known. With hold > 1 every controller drives through the whole stage at once, with the noise that
    it would have drawn; a stateful controller would remember this.
    """

    def __init__(self, env: Any, blender: Blender) -> None:
        self.world, self._doubtful = peeking_layer(env)
        self._expected: FloatArray | None = None  # feedback of the driver by a peek, if a wrapper may change feedback
        self.blender = blender
        self.hold = blender.hold
        self._rngs: list[Any] = []
        self._driven: FloatArray | float = 0.0  # feedback of the driver in the present stage
        self._present: _EvaluatedStage | None = None
        self._stages: deque[_EvaluatedStage] = deque()  # not taken yet, in order
        self._deferred = deferred_peeks(self.world) if self.hold == 1 else None
        self._added: list[tuple[_EvaluatedStage, int]] = []  # stages and arms of the peeks to submit
        self._submitted: list[tuple[_EvaluatedStage, int]] = []
        self._result: Future[PeekResult] | None = None

    def before(self) -> None:
        """Copy the controllers' generators before they draw."""
        if self.hold > 1 and not self.blender.holding:
            self._rngs = copy.deepcopy(self.blender.drivers.rngs)

    def look(self, choice: StageDecision) -> None:
        """Evaluate the other controllers at the start of a stage; arms without an action stay unknown."""
        if self._present is not None:
            self._present.over = True
        self._driven = 0.0
        self._expected = None
        if self._doubtful and choice.arm >= 0:
            self._expected = self._peek(choice, [choice.arm])[0]
        truth = np.full((len(choice.proposals), len(self.blender.objectives)), np.nan)
        stage = self._present = _EvaluatedStage(choice.stage, choice.arm, truth)
        self._stages.append(stage)
        others = [arm for arm, action in enumerate(choice.proposals) if action is not None and arm != choice.arm]
        if self._deferred is None:
            if others:
                truth[others] = self._peek(choice, others)
            return
        for arm in others:
            if self._deferred.full:
                self._submit()
            action = choice.proposals[arm]
            assert action is not None
            self._deferred.add(action)
            self._added.append((stage, arm))
            stage.waiting += 1

    def _peek(self, choice: StageDecision, arms: list[int]) -> FloatArray:
        """Compute the feedback (arms, objectives) of some arms."""
        if self.hold == 1:
            result = self.world.peek(np.array([choice.proposals[arm] for arm in arms]), components=True)
        else:
            policies = [self._policy(arm) for arm in arms]
            result = self.world.peek(policies, components=True, horizon=self.hold)
        reward, cost, parts = result
        return self._objectives({"reward": reward, "cost": cost, **parts})

    def _objectives(self, signals: dict[str, FloatArray]) -> FloatArray:
        missing = [signal for signal in self.blender.objectives.signals if signal not in signals]
        if missing:
            raise InputError(
                f"the objectives need {', '.join(missing)} from counterfactual steps; the world's peek returns "
                f"{', '.join(signals)}. A wrapper that adds a signal needs a peek of its own"
            )
        return self.blender.objectives.arrays(signals)

    def see(self, feedback: FloatArray, *, full: bool, ended: bool) -> None:
        """Add the feedback of the driver's step; `full`: the stage has all its steps."""
        self._driven = self._driven + feedback
        if self._expected is not None and full:
            if not np.allclose(self._driven, self._expected, rtol=1e-9, atol=1e-9):
                raise InputError(
                    "a wrapper changes rewards, costs or actions, and counterfactual steps cannot see it: the feedback "
                    f"of a step is {self._driven.tolist()}, that of a peek with the same action "
                    f"{self._expected.tolist()}. Add a peek to the wrapper, or leave counterfactual out"
                )
            self._expected = None
        stage = self._present
        if stage is None or not (full or ended):
            return
        if not full:
            stage.truth = None  # the others drove through a full stage: they cannot be compared
        elif stage.truth is not None and stage.arm >= 0:
            stage.truth[stage.arm] = self._driven
        stage.over, self._present = True, None

    def take(self) -> list[StageTruth]:
        """Return the stages whose results are known, each once, in order."""
        results = []
        while self._stages and self._stages[0].over and not self._stages[0].waiting:
            results.append(self._stages.popleft().result())
        return results

    def settle(self) -> None:
        """Wait for the results of all stages so far."""
        if self._added:
            self._submit()
        self._collect()

    def close(self) -> list[StageTruth]:
        """Wait for all results, release the thread, and return the stages not taken yet."""
        self.settle()
        if self._deferred is not None:
            self._deferred.close()
        if self._present is not None:
            self._present.over = True
        return self.take()

    def _submit(self) -> None:
        """Submit the pending peeks after the running batch."""
        self._collect()
        assert self._deferred is not None
        self._result = self._deferred.start()
        self._submitted, self._added = self._added, []

    def _collect(self) -> None:
        if self._result is None:
            return
        result, self._result = self._result.result(), None
        feedback = self._objectives({"reward": result.reward, "cost": result.cost, **result.parts})  # (n, objectives)
        for (stage, arm), values in zip(self._submitted, feedback, strict=True):
            stage.waiting -= 1
            if stage.truth is not None:
                stage.truth[arm] = values
        self._submitted = []

    def _policy(self, arm: int) -> Any:
        controller, rng = self.blender.controllers[arm], self._rngs[arm]
        return lambda observation: controller.act(observation, rng)


def peeking_layer(env: Any) -> tuple[Any, bool]:
    """Return the outermost layer of an environment with `peek`, and whether a wrapper outside may change feedback."""
    from gymnasium import wrappers

    layer, outside = env, []
    while not hasattr(layer, "peek"):
        if not isinstance(layer, gymnasium.Wrapper):
            raise InputError(
                f"counterfactual steps need a world with `peek`, as those of blendctl have, actually: {env!r}"
            )
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
    """Return deferred peeks for a world of blendctl, None for another."""
    from blendctl.envs import SingleWorld

    if not isinstance(world, SingleWorld):
        return None
    from blendctl.envs.deferred_peek import DeferredPeeks

    return DeferredPeeks(world)
