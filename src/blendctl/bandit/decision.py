"""The decision of a learner with its numbers: one, or a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import bounds
from blendctl.bandit.memory_layout import ARM, INDICES, RADIUS, decision_size
from blendctl.errors import InputError


class DecisionBatch:
    """Decisions of B learners (or of one learner in B worlds): every array has a leading axis B."""

    __slots__ = ("_row", "_arms", "_objectives")

    def __init__(self, row: FloatArray, arms: int, objectives: int) -> None:
        self._row = row  # (B, ...) or (...,), laid out as in memory_layout.py; cut into arrays on demand
        self._arms = arms
        self._objectives = objectives

    def _vector(self, block: int) -> FloatArray:
        start = INDICES + block * self._arms
        return self._row[..., start : start + self._arms]

    def _matrix(self, block: int) -> FloatArray:
        size = self._arms * self._objectives
        start = INDICES + 3 * self._arms + block * size
        cut = self._row[..., start : start + size]
        return cut.reshape(*cut.shape[:-1], self._arms, self._objectives)

    @property
    def arm(self) -> NDArray[np.intp]:
        """The arms to pull: (B,)."""
        return self._row[..., ARM].astype(np.intp)

    @property
    def radius(self) -> FloatArray:
        """The confidence radii beta: (B,)."""
        return self._row[..., RADIUS]

    @property
    def candidate(self) -> NDArray[np.bool_]:
        """Mask of the arms to pick from: (B, arms)."""
        return np.asarray(self._vector(2) == 1.0)

    @property
    def width(self) -> FloatArray:
        """Lengths of the features in the norm of V^-1: (B, arms)."""
        return self._vector(0)

    @property
    def loss(self) -> FloatArray:
        """Estimated maximal losses: (B, arms)."""
        return self._vector(1)

    @property
    def estimate(self) -> FloatArray:
        """Least-squares estimates of the next feedback: (B, arms, objectives)."""
        return self._matrix(0)

    @property
    def ucb(self) -> FloatArray:
        """Optimistic indices, estimate + radius * width: (B, arms, objectives)."""
        return self._matrix(1)

    @property
    def loss_bounds(self) -> FloatArray:
        """Upper bounds of the true maximal losses: (B, arms)."""
        return bounds.loss_bound(self.loss, self.radius[..., None], self.width)

    @classmethod
    def stack(cls, decisions: Sequence[tuple[Decision | None, Sequence[int]]], arms: int, objectives: int) -> Self:
        """Stack decisions, each about some of the arms, as decisions about all arms: NaN for the others."""
        rows = np.full((len(decisions), decision_size(arms, objectives)), np.nan)
        whole = cls(rows, arms, objectives)
        for index, (decision, asked) in enumerate(decisions):
            if decision is None:
                continue
            if len(asked) == arms:
                rows[index] = decision.row
                continue
            rows[index, :INDICES] = decision.row[:INDICES]
            for target, source in zip(whole._blocks(), decision._batch._blocks(), strict=True):
                target[index, list(asked)] = source
        return whole

    def _blocks(self) -> tuple[FloatArray, ...]:
        return *(self._vector(block) for block in range(3)), self._matrix(0), self._matrix(1)

    def __len__(self) -> int:
        return len(self._row)

    def __getitem__(self, index: int) -> Decision:
        row = self._row[index]
        return Decision(row, self._arms, self._objectives, int(row[ARM]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} decisions, arms={self.arm})"


class Decision:
    """One decision: the arm, and every number that led to it.

    All in scaled units, all objectives maximised.
    """

    __slots__ = ("row", "_arms", "_objectives", "arm")

    row: FloatArray  # all its numbers, laid out as in memory_layout.py
    arm: int  # the arm to pull

    def __init__(self, row: FloatArray, arms: int, objectives: int, arm: int) -> None:
        self.row = row
        self._arms = arms
        self._objectives = objectives
        self.arm = arm

    @classmethod
    def from_parts(
        cls,
        arm: int,
        radius: float,
        *,
        width: FloatArray,
        loss: FloatArray,
        candidate: FloatArray,
        estimate: FloatArray,
        ucb: FloatArray,
    ) -> Decision:
        """Rebuild a decision from its numbers; candidate (arms,) is 1 where the rule marked the arm."""
        row = np.concatenate([[arm, radius], width, loss, candidate, estimate.ravel(), ucb.ravel()])
        arms, objectives = ucb.shape
        return cls(row, arms, objectives, arm)

    @property
    def _batch(self) -> DecisionBatch:
        return DecisionBatch(self.row, self._arms, self._objectives)

    @property
    def radius(self) -> float:
        """The confidence radius beta."""
        return float(self.row[RADIUS])

    @property
    def candidates(self) -> NDArray[np.intp]:
        """Arms that the pick was made from, ascending."""
        return np.flatnonzero(self._batch.candidate)

    @property
    def width(self) -> FloatArray:
        """Length of each arm's feature in the norm of V^-1: (arms,)."""
        return self._batch.width

    @property
    def loss(self) -> FloatArray:
        """Estimated maximal loss of each arm: (arms,)."""
        return self._batch.loss

    @property
    def estimate(self) -> FloatArray:
        """Least-squares estimate of each arm's next feedback: (arms, objectives)."""
        return self._batch.estimate

    @property
    def ucb(self) -> FloatArray:
        """Optimistic index of each arm, estimate + radius * width: (arms, objectives)."""
        return self._batch.ucb

    @property
    def loss_bound(self) -> float:
        """Upper bound of this stage's true maximal loss, with the learner's confidence."""
        return self.loss_bound_of(self.arm)

    def loss_bound_of(self, arm: int) -> float:
        """Return the upper bound of the true maximal loss of any arm."""
        batch = self._batch
        return bounds.loss_bound(float(batch.loss[arm]), self.radius, float(batch.width[arm]))

    def explain(self, *, arms: Sequence[str] | None = None, objectives: Sequence[str] | None = None) -> str:
        """Return in words which arm was picked, and why the others were not."""
        arm_names = _names(arms, "arm", self._arms)
        names = _names(objectives, "objective", self._objectives)
        candidates = self.candidates
        chosen = f"{arm_names[self.arm]}: estimated loss {self.loss[self.arm]:.3g} in its worst objective"
        if len(candidates) > 1:
            others = ", ".join(arm_names[c] for c in candidates if c != self.arm)
            chosen += f", picked at random among equals ({others})"
        lines = [chosen]
        ucb = self.ucb
        for a in range(self._arms):
            if a in candidates:
                continue
            behind = ucb.max(axis=0) - ucb[a]
            k = int(behind.argmax())
            rival = arm_names[int(ucb[:, k].argmax())]
            lines.append(
                f"not {arm_names[a]}: it may lose {behind[k]:.3g} in {names[k]} "
                f"({ucb[a, k]:.3g} against {ucb[:, k].max():.3g} of {rival})"
            )
        lines.append(f"the true loss of this choice is at most {self.loss_bound:.3g}")
        return "; ".join(lines)

    def __repr__(self) -> str:
        return (
            f"Decision(arm={self.arm}, candidates={self.candidates.tolist()}, loss={self.loss}, "
            f"radius={self.radius:.4g})"
        )


def _names(given: Sequence[str] | None, kind: str, count: int) -> list[str]:
    names = [f"{kind} {i}" for i in range(count)] if given is None else list(given)
    if len(names) != count:
        raise InputError(f"there are {count} {kind}s to name, actually: {len(names)} names, {names}")
    return names
