"""What happened at one stage, and why: the record that flows from the blender to whoever listens."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit import Decision

if TYPE_CHECKING:
    from blendctl.blender.objectives import Objectives

__all__ = ["Record", "RunInfo", "SAFE_ACTION"]

FloatArray = NDArray[np.float64]

SAFE_ACTION = -1  # the arm of a stage at which no controller drove


class RunInfo:
    """What all records of one blender share: the names of arms and objectives, and the scales."""

    __slots__ = ("names", "objectives", "scales", "features", "rule", "dwell")

    def __init__(
        self,
        names: tuple[str, ...],
        objectives: Objectives,
        *,
        scales: FloatArray,
        features: int,
        rule: str,
        dwell: int,
    ) -> None:
        self.names, self.objectives = names, objectives
        self.scales = scales  # (objectives,)
        self.features = features  # d
        self.rule, self.dwell = rule, dwell


class Record:
    """One stage: a decision, the actions it led to, and what they brought.

    A stage lasts `steps` control steps (one, unless the blender holds). Numbers of the decision are in
    scaled units, as the bandit sees them; `reward` and `cost` are sums over the stage as they came.
    """

    __slots__ = (
        "cast", "stage", "step", "steps", "episode", "arm", "picked", "previous", "cause", "decision", "asked",
        "features", "proposals", "action", "observation", "event", "reward", "cost", "feedback", "seen",
        "closed", "spoiled", "learned", "retired", "late", "ended", "told", "truth", "correct",
    )  # fmt: skip

    def __init__(
        self,
        cast: RunInfo,
        *,
        stage: int,
        step: int,
        episode: int,
        arm: int,
        picked: int,
        previous: int,
        cause: str,
        decision: Decision | None,
        asked: tuple[int, ...],
        features: FloatArray | None,
        proposals: list[NDArray[Any] | None],
        action: NDArray[Any],
        observation: Any,
        closed: bool,
    ) -> None:
        self.cast = cast
        self.stage = stage  # 1, 2, ...: decisions so far
        self.step = step  # 1, 2, ...: control steps so far, the first of this stage
        self.steps = 1  # control steps of this stage so far
        self.episode = episode  # 0, 1, ...
        self.arm = arm  # who drives; SAFE_ACTION if nobody could
        self.picked = picked  # whom the rule preferred, -1 if it was not asked
        self.previous = previous  # who drove before, SAFE_ACTION if nobody
        self.cause = cause  # first, rule, alone, dwell, fallback, no context, no decision, safe action
        self.decision = decision  # of the arms `asked`, in their order
        self.asked = asked
        self.features = features  # (arms, features), rows of arms without context are NaN
        self.proposals = proposals  # an action per arm, None where there is none
        self.action = action  # the first that was applied
        self.observation = observation  # only kept for features that learn
        self.event: str | None = None  # what went wrong, in words
        self.reward = 0.0
        self.cost = 0.0
        self.feedback: FloatArray | None = None  # (objectives,) sum over the stage so far, unscaled
        self.seen = 0  # bit i: the feedback of its i-th step has come
        self.closed = closed  # it has all its steps
        self.spoiled = False  # part of its feedback is lost or was refused: never learn from it
        self.learned = False
        self.retired = False  # written down; what comes now is late
        self.late = False  # a second record of a stage, for feedback that came after it was written down
        self.told = False  # yielded by `run`
        self.ended = False  # the episode ended with it
        self.truth: FloatArray | None = None  # (arms, objectives) what every arm would have brought, if known
        self.correct: bool | None = None  # no arm would have been better in one objective and as good in all

    @property
    def name(self) -> str:
        """Who drives, by name."""
        return self.cast.names[self.arm] if self.arm >= 0 else "safe action"

    @property
    def switched(self) -> bool:
        """Whether another controller drove before."""
        return self.arm != self.previous and self.stage > 1

    @property
    def reason(self) -> str:
        """Why this controller drives, in words."""
        from blendctl.blender.reasons import reason_of

        return reason_of(self)

    @property
    def complete(self) -> bool:
        """Whether all of its feedback has come."""
        return self.closed and self.seen == (1 << self.steps) - 1

    @property
    def candidates(self) -> tuple[str, ...]:
        """The controllers that the rule was content with, by name."""
        if self.decision is None:
            return ()
        return tuple(self.cast.names[self.asked[row]] for row in self.decision.candidates)

    @property
    def loss_bound(self) -> float:
        """What the true maximal loss of this stage cannot exceed, NaN if nothing was decided."""
        decision = self.decision
        if decision is None or self.arm not in self.asked:
            return float("nan")
        row = self.asked.index(self.arm)
        return float(decision.loss[row] + 2.0 * decision.radius * decision.width[row])

    def as_late(self) -> Record:
        """Copy it, to be written down as the late part of its stage."""
        other = copy.copy(self)
        other.late, other.retired, other.event = True, True, None
        return other

    def __repr__(self) -> str:
        return f"Record(stage={self.stage}, arm={self.arm}, {self.reason!r})"
