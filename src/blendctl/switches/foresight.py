"""Look ahead: estimate the return and cost of every controller, and let the one with the least loss drive.

A foresight estimates return and cost of every controller from a state. The oracles ask the true simulator,
`PredictedAhead` asks the context networks; a better model of the future belongs here.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from blendctl import pareto
from blendctl.arrays import ArmArray, FloatArray
from blendctl.switches.base import RolloutContext, StepInput, Switch
from blendctl.switches.requirements import expect_context_networks


class ForesightModel(Protocol):
    """An estimate of return and cost if a controller keeps driving from here."""

    def __call__(self, frame: StepInput) -> FloatArray:
        """Return the expected (return, cost) of every controller: (B, arms, 2)."""


class LeastLoss(Switch):
    """Let the controller with the least maximal loss drive; a cost of 1 weighs as much as `cost_weight` reward.

    every: control steps from one decision to the next. With two controllers the rule maximises
    return - cost_weight * cost. On a tie the later controller drives, because the safe one is last.
    """

    def __init__(self, foresight: ForesightModel, *, every: int, cost_weight: float) -> None:
        self.foresight, self.every = foresight, every
        self.units = np.array([1.0, -cost_weight])
        self.arm = np.zeros(0, np.intp)

    def choose(self, frame: StepInput) -> ArmArray:
        if frame.step % self.every == 0:
            loss = pareto.maximal_loss(self.foresight(frame) * self.units)  # (B, arms)
            self.arm = loss.shape[1] - 1 - loss[:, ::-1].argmin(axis=1)
        return self.arm


class PredictedAhead:
    """The controllers' own context networks: discounted sums over `horizon` steps, of the proposed action."""

    def __init__(self, context: RolloutContext, *, horizon: int) -> None:
        expect_context_networks(context.controllers, "predicting ahead")
        self.predictors: list[Any] = list(context.controllers)
        self.horizon = horizon

    def __call__(self, frame: StepInput) -> FloatArray:
        expected = [
            np.stack(predictor.predict(frame.observations, actions, horizon=self.horizon), axis=-1)
            for predictor, actions in zip(self.predictors, frame.proposals, strict=True)
        ]
        return np.stack(expected, axis=1)
