"""Bandits as rivals: one learner that all worlds of a drive teach, with any rule and context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blendctl.bandit import BlendingBandit
from blendctl.bandit.rules import Rule
from blendctl.errors import InputError
from blendctl.features import BoundFeature, Feature, Scaled, as_feature
from blendctl.features.predictions import Predictions, can_predict
from blendctl.switches.base import FloatArray, RolloutContext, StepInput, Switch, one_hot

__all__ = ["Bandit", "long_context"]


class Bandit(Switch):
    """Decide by a bandit over (reward, -cost), and learn from what the chosen controllers bring.

    hold: control steps per decision, whose rewards and costs are summed; previous: decide from the context of the
    decision before, as the paper prints; scales: what counts as one unit of each objective, summed over a stage.
    """

    def __init__(
        self,
        seat: RolloutContext,
        *,
        rule: str | Rule = "maximal-loss",
        features: Feature | None = None,
        hold: int = 1,
        previous: bool = False,
        scales: Sequence[float] | None = None,
        noise: float = 0.1,
    ) -> None:
        feature = as_feature(features, seat.controllers)
        self.feature: BoundFeature = feature.bind(seat.controllers, objectives=2)
        self.bandit = BlendingBandit(
            self.feature.size,
            seed=seat.seed,
            rule=rule,
            scales=scales,
            noise=noise,
            on_large_feature="rescale",
        )
        self.hold, self.previous, self.arms = hold, previous, seat.arms
        self.rng = np.random.default_rng(seat.seed)
        n = seat.worlds.num_envs
        self.held = 0  # control steps of the present stage
        self.total = np.zeros((n, 2))  # feedback of the present stage
        self.psi = np.zeros((n, seat.arms, self.feature.size))
        self.earlier: FloatArray | None = None
        self.arm = np.zeros(n, np.intp)
        self.begun: tuple[FloatArray, FloatArray] | None = None  # observations and actions of its first step

    def mix(self, frame: StepInput) -> FloatArray:
        if self.held == 0:
            self.psi = self._context(frame)
            basis = self.earlier if self.previous else self.psi
            self.earlier = self.psi
            if basis is None:
                self.arm = self.rng.integers(self.arms, size=len(self.psi))
            else:
                self.arm = self.bandit.decide_many(basis).arm
            rows = np.arange(len(self.arm))
            self.begun = (frame.observations, frame.proposals[self.arm, rows])
            self.total = np.zeros_like(self.total)
        return one_hot(self.arm, self.arms)

    def learn(self, reward: FloatArray, cost: FloatArray, *, ended: bool) -> None:
        self.total += np.stack([reward, -cost], axis=1)
        self.held = 0 if ended else (self.held + 1) % self.hold
        if self.held:
            return
        self.bandit.update_many(self.psi[np.arange(len(self.arm)), self.arm], self.total)
        teach: Any = getattr(self.feature, "learn", None)
        if teach is not None and self.begun is not None:
            for taught in zip(*self.begun, self.total, strict=True):
                teach(*taught)

    def _context(self, frame: StepInput) -> FloatArray:
        rows = []
        for arm, actions in enumerate(frame.proposals):
            if getattr(self.feature, "batched", False):
                psi = np.asarray(self.feature(frame.observations, actions, arm), np.float64)
            else:
                pairs = zip(frame.observations, actions, strict=True)
                psi = np.array([self.feature(o, a, arm) for o, a in pairs], np.float64)
            rows.append(psi)
        return np.stack(rows, axis=1)


def long_context(seat: RolloutContext, *, horizon: int, units: tuple[float, float]) -> Feature:
    """Give predictions over a long horizon, in units of (reward, cost) per control step."""
    for index, controller in enumerate(seat.controllers):
        if not can_predict(controller):
            raise InputError(
                f"controller {index} brings no context networks, which a longer horizon needs; train them with "
                '"blendctl train-context", or leave this method out of --methods'
            )
    return Scaled(Predictions((horizon,)), units)
