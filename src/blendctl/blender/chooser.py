"""The chooser: compute the context of every proposal, and let the bandit choose among those that have one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import array, float64

from blendctl.arrays import FloatArray
from blendctl.bandit import BlendingBandit, Decision
from blendctl.blender.drivers import Action
from blendctl.blender.finite_check import finite_vector
from blendctl.errors import InputError
from blendctl.features import BoundFeature
from blendctl.user_errors import describe_error, raised_by_signal

# Selected arm, the reason, the decision, and the arms that it is about, in its order; a named tuple would take longer.
Choice = tuple[int, str, Decision | None, tuple[int, ...]]


class Chooser:
    """Context and decision. A failure becomes an event, and the arm concerned is left out."""

    def __init__(
        self,
        feature: BoundFeature,
        bandit: BlendingBandit,
        *,
        names: list[str],
        fallback: tuple[int, ...],
        previous: bool,
        rng: np.random.Generator,
    ) -> None:
        self.feature, self.size, self.bandit = feature, feature.size, bandit
        self.names, self.fallback = names, fallback
        self.previous = previous  # decide from the state before, as printed in the paper
        self.rng = rng
        self.arms = tuple(range(len(names)))
        self.shape = (len(names), feature.size)
        self.proven = False  # a context was computed once: from now on failures are events
        self.events: list[str] = []  # failures since the last `take_events`
        self._earlier: tuple[FloatArray, tuple[int, ...]] | None = None

    def take_events(self) -> list[str]:
        """Return and clear the failures since the last call."""
        events, self.events = self.events, []
        return events

    def context(self, observation: Any, proposals: list[Action | None]) -> tuple[FloatArray, tuple[int, ...]]:
        """Compute psi (arms, features), NaN for arms without one; also return the arms with an action and a context."""
        feature, rows = self.feature, []
        # The common case: every arm has an action and a context. Otherwise go arm by arm, to name the one that failed.
        try:
            for arm, action in enumerate(proposals):
                if action is None:
                    return self._arm_by_arm(observation, proposals)
                rows.append(feature(observation, action, arm))
            psi = array(rows, float64)
            if psi.shape == self.shape and finite_vector(psi.ravel()):
                return psi, self.arms
        except BaseException as error:
            if raised_by_signal(error):
                raise
        return self._arm_by_arm(observation, proposals)

    def _arm_by_arm(self, observation: Any, proposals: list[Action | None]) -> tuple[FloatArray, tuple[int, ...]]:
        feature, size = self.feature, self.size
        psi = np.full((len(proposals), size), math.nan)
        for arm, action in enumerate(proposals):
            if action is None:
                continue
            try:
                row: Any = feature(observation, action, arm)
                if len(row) != size:
                    raise InputError(f"a feature of size {size} returned {len(row)} numbers")
                psi[arm] = row
            except BaseException as error:
                if raised_by_signal(error):
                    raise
                reason = describe_error(error)
                words = reason.partition(": ")[2]
                if not self.proven and isinstance(error, InputError | TypeError | ValueError):
                    raise InputError(f"the context of {self.names[arm]} cannot be computed: {words}") from error
                psi[arm] = math.nan
                self.events.append(f"the context of {self.names[arm]} raised {reason}")
            else:
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
                return int(asked[self.rng.integers(len(asked))]), "first", None, asked
            basis = earlier[0]
        some = rows is not self.arms and len(rows) < len(self.arms)
        if some:
            basis = basis[list(rows)]
        try:
            decision = self.bandit.decide(basis)
        except BaseException as error:
            unproven = not self.proven and not some
            if unproven or raised_by_signal(error):
                raise
            self.events.append(f"the rule failed: {describe_error(error)}")
            return self.first(asked), "no decision", None, asked
        self.proven = True
        if some and len(rows) == 1:
            return rows[0], "alone", decision, rows
        return rows[decision.arm], "rule", decision, rows

    def first(self, arms: tuple[int, ...]) -> int:
        """Return the first of some arms in the fallback order."""
        return next(arm for arm in self.fallback if arm in arms)
