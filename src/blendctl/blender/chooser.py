"""The chooser: computes the context of every proposal, and lets the bandit choose among those that have one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit import BlendingBandit, Decision
from blendctl.blender.drivers import Action
from blendctl.blender.finite_check import finite_vector
from blendctl.errors import InputError
from blendctl.features import BoundFeature

__all__ = ["Chooser", "Choice"]

FloatArray = NDArray[np.float64]


class Choice(NamedTuple):
    """An arm, and how it was come by."""

    arm: int
    cause: str
    decision: Decision | None
    asked: tuple[int, ...]  # the arms that the decision is about, in its order


class Chooser:
    """Context and decision. What fails is told in `events`, and the arm concerned is left out."""

    def __init__(
        self,
        feature: BoundFeature,
        bandit: BlendingBandit,
        *,
        names: list[str],
        fallback: tuple[int, ...],
        previous: bool,
        rng: np.random.Generator,
        events: list[str],
    ) -> None:
        self.feature, self.size, self.bandit = feature, feature.size, bandit
        self.names, self.fallback, self.events = names, fallback, events
        self.previous = previous  # decide from the state before, as the paper prints
        self.rng = rng
        self.arms = tuple(range(len(names)))
        self.shape = (len(names), feature.size)
        self.proven = False  # it has worked once: from now on nothing is raised
        self._earlier: tuple[FloatArray, tuple[int, ...]] | None = None

    def context(self, observation: Any, proposals: list[Action | None]) -> tuple[FloatArray, tuple[int, ...]]:
        """Compute psi (arms, features), NaN where there is none; and the arms that have an action and a context."""
        feature, rows = self.feature, []
        try:  # the common case: all goes well
            for arm, action in enumerate(proposals):
                if action is None:
                    return self._one_by_one(observation, proposals)
                rows.append(feature(observation, action, arm))
            psi = np.array(rows, np.float64)
            if psi.shape == self.shape and finite_vector(psi.reshape(-1)):
                return psi, self.arms
        except Exception:  # which arm failed, and how, is told one by one
            pass
        return self._one_by_one(observation, proposals)

    def _one_by_one(self, observation: Any, proposals: list[Action | None]) -> tuple[FloatArray, tuple[int, ...]]:
        feature, size = self.feature, self.size
        psi = np.empty((len(proposals), size))
        for arm in self.arms:
            action = proposals[arm]
            if action is None:
                psi[arm] = math.nan
                continue
            try:
                row: Any = feature(observation, action, arm)
                if len(row) != size:
                    raise InputError(f"a feature of size {size} gave {len(row)} numbers")
                psi[arm] = row
            except Exception as error:
                if not self.proven and isinstance(error, InputError | TypeError | ValueError):
                    raise InputError(f"the context of {self.names[arm]} cannot be computed: {error}") from error
                told = f"raised {type(error).__name__}: {str(error)[:200]}"
                self.events.append(f"the context of {self.names[arm]} {told}")
                psi[arm] = math.nan
                continue
            if not finite_vector(psi[arm]):
                self.events.append(f"the context of {self.names[arm]} is NaN or infinite")
        finite = np.asarray(np.isfinite(psi).all(axis=1))
        return psi, tuple(arm for arm in self.arms if finite[arm])

    def choose(self, psi: FloatArray, asked: tuple[int, ...]) -> Choice:
        """Choose among the arms that have an action and a context."""
        rows, basis = asked, psi
        if self.previous:
            earlier, self._earlier = self._earlier, (psi, asked)
            rows = () if earlier is None else tuple(arm for arm in asked if arm in earlier[1])
            if earlier is None or not rows:
                return Choice(int(asked[self.rng.integers(len(asked))]), "first", None, asked)
            basis = earlier[0]
        if len(rows) < len(self.arms):
            basis = basis[list(rows)]
        try:
            decision = self.bandit.decide(basis)
        except Exception as error:
            if not self.proven:
                raise
            self.events.append(f"the rule failed: {type(error).__name__}: {str(error)[:200]}")
            return Choice(self.first(asked), "no decision", None, asked)
        self.proven = True
        if len(rows) == 1 and len(self.arms) > 1:
            return Choice(rows[0], "alone", decision, rows)
        return Choice(rows[decision.arm], "rule", decision, rows)

    def first(self, arms: tuple[int, ...]) -> int:
        """Give the first of some arms in the fallback order."""
        return next(arm for arm in self.fallback if arm in arms)
