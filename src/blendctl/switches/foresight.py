"""Look ahead: ask a foresight what each controller would bring, and let the one with the least loss drive.

A foresight is anything that tells return and cost of every controller from a state. The oracles ask the true
simulator, `PredictedAhead` asks the context networks; a better model of the future has its place here.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from blendctl import pareto
from blendctl.errors import InputError
from blendctl.features.predictions import can_predict
from blendctl.switches.base import FloatArray, RolloutContext, StepInput, Switch, one_hot

__all__ = ["Foresight", "LeastLoss", "PredictedAhead"]


class Foresight(Protocol):
    """What each controller is expected to bring if it drives on from here."""

    def __call__(self, frame: StepInput) -> FloatArray:
        """Give expected (return, cost) of every controller: (B, arms, 2)."""


class LeastLoss(Switch):
    """Let the controller drive whose maximal loss is least, with a cost counted `cost_weight` times a reward.

    every: control steps from one decision to the next. With two controllers this is also the choice of the greater
    return - cost_weight * cost. On a tie the later controller drives, as the safe one is last.
    """

    def __init__(self, seat: RolloutContext, foresight: Foresight, *, every: int, cost_weight: float) -> None:
        self.foresight, self.every, self.arms = foresight, every, seat.arms
        self.units = np.array([1.0, -cost_weight])
        self.weights = np.zeros((0, seat.arms))

    def mix(self, frame: StepInput) -> FloatArray:
        if frame.step % self.every == 0:
            loss = pareto.maximal_loss(self.foresight(frame) * self.units)  # (B, arms)
            arm = self.arms - 1 - loss[:, ::-1].argmin(axis=1)
            self.weights = one_hot(arm, self.arms)
        return self.weights


class PredictedAhead:
    """The controllers' own context networks: discounted sums over `horizon` steps, of the proposed action."""

    def __init__(self, seat: RolloutContext, *, horizon: int) -> None:
        for index, controller in enumerate(seat.controllers):
            if not can_predict(controller):
                raise InputError(
                    f"controller {index} brings no context networks, which predicting ahead needs; train them "
                    'with "blendctl train-context", or leave this method out of --methods'
                )
        self.predictors: list[Any] = list(seat.controllers)
        self.horizon = horizon

    def __call__(self, frame: StepInput) -> FloatArray:
        told = [
            np.stack(predictor.predict(frame.observations, actions, horizon=self.horizon), axis=-1)
            for predictor, actions in zip(self.predictors, frame.proposals, strict=True)
        ]
        return np.stack(told, axis=1)
