"""The ledger: assign feedback to its stage, learn from it once, record the stage."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import BlendingBandit
from blendctl.blender.bound_check import BoundCheck
from blendctl.blender.counts import Counts
from blendctl.blender.drivers import copy_observation
from blendctl.blender.finite_check import finite_vector
from blendctl.blender.record import Record, StageDecision
from blendctl.blender.recorder import Recorder
from blendctl.errors import BlendctlError, InputError
from blendctl.features import BoundFeature

Observed = Literal["learned", "counted", "late", "duplicate", "unknown", "refused"]


class _OpenStage:
    """A running stage, or one that waits for feedback."""

    __slots__ = (
        "choice", "observation", "closed", "steps", "seen", "reward", "cost", "feedback", "event",
        "bootstrapped", "learned", "spoiled", "retired", "late", "ended", "truth", "correct",
    )  # fmt: skip

    def __init__(self, choice: StageDecision, observation: Any, closed: bool) -> None:
        self.choice = choice
        self.observation = observation  # kept for features that learn, otherwise None
        self.closed = closed  # it has all its control steps
        self.steps = 1
        self.seen = 0  # bit i: the feedback of its i-th step was observed
        self.reward = self.cost = 0.0
        self.feedback: FloatArray | None = None  # (objectives,) sum so far
        self.bootstrapped = False  # a feature that bootstraps has completed its feedback
        self.event = choice.event
        self.learned = False
        self.spoiled = False  # part of its feedback is lost or was refused: never learn from it
        self.retired = False  # it was recorded: feedback is late from now on
        self.late = False  # it accepts late feedback, for a second record
        self.ended = False
        self.truth: FloatArray | None = None
        self.correct: bool | None = None

    @property
    def complete(self) -> bool:
        """Whether the feedback of all its steps was observed."""
        return self.closed and self.seen == (1 << self.steps) - 1

    def record(self) -> Record:
        """Return the stage as it is now, frozen."""
        *choice, _ = self.choice
        return Record._make((
            *choice, self.event, self.steps, self.reward, self.cost, self.feedback, self.learned, self.late, self.ended,
            self.truth, self.correct,
        ))  # fmt: skip


class Ledger:
    """The present stage, and earlier ones that wait for feedback.

    The bandit learns from a stage at most once, when the stage is over and the feedback of each of its steps was
    observed, with the context of the arm that drove. A recorded stage does not change: late feedback goes into a
    second record of it.
    """

    def __init__(
        self,
        bandit: BlendingBandit,
        feature: BoundFeature,
        *,
        hold: int,
        frozen: bool,
        window: int,
        recorder: Recorder | None,
        counts: Counts,
    ) -> None:
        self.bandit, self.feature, self.hold, self.frozen = bandit, feature, hold, frozen
        self.window, self.recorder, self.counts = window, recorder, counts
        self.bound_check = BoundCheck(bandit)
        self.present: _OpenStage | None = None
        self.holding = False  # the present stage lasts for another control step
        self.pending: dict[int, _OpenStage] = {}  # by number, oldest first, without the present one
        self._learned_from = feature.learned_from
        self._teaches, self.bootstraps, self._discount = feature.learns, feature.bootstraps, feature.discount
        self._steps, self._spent = 0, 0.0  # control steps and cost of the present episode
        self._awaiting: dict[int, _OpenStage] = {}  # stages whose counterfactual feedback is not known yet
        self._unwritten: deque[_OpenStage] = deque()  # retired stages, starting with the first that awaits it

    def begin(self, choice: StageDecision, observation: Any) -> None:
        """Begin a stage."""
        self._steps += 1
        kept = copy_observation(observation) if self._teaches else None
        self.holding = self.hold > 1 and choice.arm >= 0
        self.present = _OpenStage(choice, kept, not self.holding)

    def extend(self) -> None:
        """Add a control step to the present stage."""
        stage = self.present
        assert stage is not None
        stage.steps += 1
        self._steps += 1
        stage.closed = stage.steps == self.hold
        self.holding = not stage.closed

    def cut(self, observation: Any) -> None:
        """End the present stage before another begins at `observation` (None if it is not finite).

        A stage cut short by a failure is never learned from. From a whole stage, a feature that bootstraps learns now.
        """
        stage = self.present
        if stage is not None and not stage.retired:
            stage.spoiled |= not stage.closed
            if self.bootstraps and observation is not None and stage.complete and stage.feedback is not None:
                stage.feedback = self.feature.target(stage.feedback, observation, steps=stage.steps)
                stage.bootstrapped = True
                self._learn(stage)
            self._retire(stage)

    def end_episode(self) -> None:
        """End the present stage with its episode, even if it is short."""
        if self.present is not None and not self.present.retired:
            self.present.ended = True
            self._retire(self.present)
        if self._steps:
            self.feature.end_episodes(np.array([self._spent]))
        self._steps, self._spent = 0, 0.0

    @property
    def episode_so_far(self) -> tuple[FloatArray, NDArray[np.int64]]:
        """Cost and control steps of the present episode before this step, (1,) each."""
        return np.array([self._spent]), np.array([self._steps])

    def observe(
        self, feedback: FloatArray, signals: Mapping[str, Any], *, stage: int | None, step: int | None, now: int
    ) -> Observed:
        """Assign feedback (objectives,) to a stage or a step; by default to the present step `now`."""
        counts = self.counts
        entry, bit = self._find(stage, step, now)
        if entry is None:
            counts.unknown += 1
            return "unknown"
        if entry.seen >> bit & 1:
            counts.duplicates += 1
            return "duplicate"
        late = entry.retired
        if late:
            counts.late += 1
            if not entry.late:
                entry = self.pending[entry.choice.stage] = copy.copy(entry)
                entry.late, entry.event = True, None
        entry.seen |= 1 << bit
        counts.observed += 1
        result: Observed = "late" if late else "counted"
        self._charge(entry, signals["cost"] or 0.0)
        # A sum of a few numbers takes less time than a compiled call; one that overflows says nothing.
        if isfinite(sum(feedback.tolist())) or finite_vector(feedback):
            entry.reward += signals["reward"] or 0.0
            entry.cost += signals["cost"] or 0.0
            if bit and self._discount != 1.0:
                feedback = feedback * self._discount**bit
            entry.feedback = feedback if entry.feedback is None else entry.feedback + feedback
            if entry.closed and self._learn(entry) and not late:
                result = "learned"
        else:
            self._refuse(entry, f"the feedback {feedback.tolist()} was refused")
            result = "refused"
        if late and entry.complete:
            del self.pending[entry.choice.stage]
            self._write(entry)
        return result

    def _charge(self, entry: _OpenStage, cost: float) -> None:
        """Count the cost of a step, late or not, if the episode of its stage still runs."""
        assert self.present is not None
        if entry.choice.episode == self.present.choice.episode and not self.present.ended and isfinite(cost):
            self._spent += cost

    def _find(self, stage: int | None, step: int | None, now: int) -> tuple[_OpenStage | None, int]:
        """Find the stage that feedback belongs to, and which of its steps (from 0)."""
        present = self.present
        assert present is not None
        if stage is None and step is None:
            if present.choice.step + present.steps <= now:
                return None, 0  # the present step has no stage: no controller could drive, and `act` raised
            return self.pending.get(present.choice.stage, present), present.steps - 1
        for name, number in (("stage", stage), ("step", step)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int | np.integer)):
                raise InputError(f"{name} must be a whole number, actually: {number!r}")
        if step is not None:
            for entry in (*self.pending.values(), present):
                first = entry.choice.step
                if first <= step < first + entry.steps and stage in (None, entry.choice.stage):
                    return entry, step - first
            return None, 0
        assert stage is not None
        entry = self.pending.get(stage, present)
        if entry.choice.stage != stage:
            return None, 0
        missing = [bit for bit in range(entry.steps) if not entry.seen >> bit & 1]
        return entry, missing[0] if missing else 0

    def _learn(self, entry: _OpenStage) -> bool:
        """Update the bandit, unless frozen, if all feedback of a stage is known and its arm has a context.

        Then compare the feedback with its estimate, frozen or not. Return whether the bandit was updated.
        """
        choice, feedback = entry.choice, entry.feedback
        if entry.spoiled or entry.learned or entry.bootstrapped != self.bootstraps:
            return False
        if feedback is None or not entry.complete:
            return False
        arm, psi, asked = choice.arm, choice.features, choice.asked
        if psi is None or arm not in asked:  # no controller drives, or its context is not finite
            return False
        if not self.frozen:
            try:
                self.bandit.update(self._learned_from(psi[arm]), feedback)
            except BlendctlError as error:
                self._refuse(entry, str(error))
                return False
            entry.learned = True
            self.counts.learned += 1
        if choice.decision is not None and not self.bootstraps:
            self.bound_check.observe(choice.decision, asked.index(arm), feedback)
        if self._teaches and not self.frozen:
            self.feature.learn(entry.observation, choice.action, feedback)
        return entry.learned

    def _refuse(self, entry: _OpenStage, event: str) -> None:
        entry.spoiled = True
        entry.event = event if entry.event is None else f"{entry.event}; {event}"
        self.counts.refused += 1
        self.counts.events += 1

    def _retire(self, entry: _OpenStage) -> None:
        """Close a stage and record it; if feedback is missing, wait for it within the window."""
        if not entry.closed:
            entry.closed, self.holding = True, False
            self._learn(entry)
        entry.retired = True
        if not entry.bootstrapped and self.bootstraps:
            entry.feedback = None  # a sum over the stage is not what psi predicts
        self._write(entry)
        if not entry.learned and not entry.complete:  # only a complete stage is learned from
            self.pending[entry.choice.stage] = entry
            if len(self.pending) > self.window:
                self._give_up(next(iter(self.pending)))

    def _give_up(self, stage: int) -> None:
        entry = self.pending.pop(stage)
        self.counts.missing += 1
        if entry.late:
            self._write(entry)

    def await_truth(self) -> None:
        """Hold back the record of the present stage until `add_truth` completes it."""
        assert self.present is not None
        self._awaiting[self.present.choice.stage] = self.present

    def add_truth(self, stage: int, truth: FloatArray | None, correct: bool | None) -> Record | None:
        """Complete a stage with the counterfactual feedback (arms, objectives) of every arm; return the stage.

        Return None if the stage does not await it, or no longer does.
        """
        entry = self._awaiting.pop(stage, None)
        if entry is None:
            return None
        entry.truth, entry.correct = truth, correct
        if truth is not None and entry.choice.decision is not None and not self.bootstraps:
            self.bound_check.observe_truth(entry.choice.decision, entry.choice.asked, entry.choice.arm, truth)
        self._drain()
        return entry.record()

    def _write(self, entry: _OpenStage) -> None:
        """Write a stage that will not change again."""
        if self.recorder is None:
            return
        if self._awaiting or self._unwritten:
            self._unwritten.append(entry)
            self._drain()
        else:
            self.recorder.append(entry.record)

    def _drain(self) -> None:
        while self._unwritten and self._unwritten[0].choice.stage not in self._awaiting:
            assert self.recorder is not None
            self.recorder.append(self._unwritten.popleft().record)

    def close(self) -> None:
        """End the present stage, drop the stages that still wait for feedback, and close the recorder."""
        if self.present is not None and not self.present.retired:
            self._retire(self.present)
        for stage in list(self.pending):
            self._give_up(stage)
        self._awaiting.clear()
        self._drain()
        if self.recorder is not None:
            self.recorder.close()
