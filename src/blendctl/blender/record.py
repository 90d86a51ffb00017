"""Frozen records of a stage: its decision, and the decision with its outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import Decision
from blendctl.features.base import VALUES_TO_GO, LookAheadInfo, StageForesight

if TYPE_CHECKING:
    from blendctl.blender.objectives import Objectives

Action = NDArray[Any]

SAFE_ACTION = -1  # arm of a stage at which no controller drove


@dataclass(frozen=True, slots=True)
class RunInfo:
    """Data that all records of one blender share."""

    names: tuple[str, ...]  # of the arms
    objectives: Objectives
    scales: FloatArray  # (objectives,)
    features: int  # d
    rule: str
    dwell: int
    feature_name: str = ""  # the features that decide, in words
    lookahead: LookAheadInfo | None = None  # of features that look ahead

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the numbers in a decision, one per objective."""
        return self.objectives.names if self.lookahead is None else VALUES_TO_GO[: len(self.objectives)]


class StageDecision(NamedTuple):
    """Decision at the first control step of a stage. Its numbers are in scaled units, as the bandit sees them."""

    run_info: RunInfo
    stage: int  # 1, 2, ...
    step: int  # first control step of the stage, from 1
    episode: int
    arm: int  # the controller that drives, or SAFE_ACTION
    picked: int  # arm that the rule picked, -1 without a decision
    previous: int  # arm of the stage before, SAFE_ACTION if there was none
    cause: str  # first, rule, alone, dwell, guard, fallback, no context, no decision, safe action
    decision: Decision | None  # about the arms `asked`, in their order
    asked: tuple[int, ...]
    features: FloatArray | None  # (arms, features), NaN in the rows of arms without context
    proposals: tuple[Action | None, ...]  # one action per arm, None without one
    action: Action  # applied at the first step
    foresight: StageForesight | None  # of features that look ahead
    event: str | None  # failures and alarms, in words


class Record(NamedTuple):
    """One stage: the fields of its `StageDecision`, then its outcome so far: sums over control steps, unscaled."""

    run_info: RunInfo
    stage: int
    step: int
    episode: int
    arm: int
    picked: int
    previous: int
    cause: str
    decision: Decision | None
    asked: tuple[int, ...]
    features: FloatArray | None
    proposals: tuple[Action | None, ...]
    action: Action
    foresight: StageForesight | None
    event: str | None
    steps: int  # control steps
    reward: float
    cost: float
    feedback: FloatArray | None  # (objectives,)
    learned: bool  # the bandit was updated with it
    late: bool  # second record of a stage, with late feedback
    ended: bool  # the episode ended with this stage
    truth: FloatArray | None  # (arms, objectives) counterfactual feedback of every arm, NaN where unknown
    correct: bool | None  # no arm was as good in all objectives and better in one

    @property
    def name(self) -> str:
        """Name of the controller that drives."""
        return self.run_info.names[self.arm] if self.arm >= 0 else "safe action"

    @property
    def switched(self) -> bool:
        """Whether another controller drove before."""
        return self.arm != self.previous and self.stage > 1

    @property
    def reason(self) -> str:
        """Why this controller drives, in one line."""
        from blendctl.blender.reasons import reason_of

        return reason_of(self)

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of the controllers among which the rule picked."""
        if self.decision is None:
            return ()
        return tuple(self.run_info.names[self.asked[row]] for row in self.decision.candidates)

    @property
    def units(self) -> FloatArray:
        """What one unit of the decision's numbers is worth in each objective, (objectives,)."""
        return self.run_info.scales if self.foresight is None else self.run_info.scales * self.foresight.units

    @property
    def loss_unit(self) -> float:
        """What one unit of a loss is worth in the first objective: a reward, or a return if the features look ahead."""
        return float(self.units[0])

    @property
    def loss_bound(self) -> float:
        """Upper bound of the true maximal loss of this stage, NaN without a decision."""
        if self.decision is None or self.arm not in self.asked:
            return float("nan")
        return self.decision.loss_bound_of(self.asked.index(self.arm))

    def __repr__(self) -> str:
        return f"Record(stage={self.stage}, arm={self.arm}, {self.reason!r})"
