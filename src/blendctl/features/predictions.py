"""Features from the controllers' own networks: predictions of one or more steps, critics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import ndarray

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller, Critic, can_predict
from blendctl.controllers.lookahead_network import controller_label
from blendctl.errors import InputError
from blendctl.features.base import BoundFeature, Scaled, UnitLength

TRUST = 0.1  # largest distance of the true coefficients from 1 and 0


@dataclass(frozen=True)
class Predictions:
    """The paper's context: [reward, -cost] that each controller's context network predicts for its action.

    A horizon longer than 1 predicts the discounted sums over that many steps of the controller, divided by the
    horizon: every entry is an average per step.
    """

    horizons: tuple[int, ...] = (1,)

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        predictors: list[Any] = []
        for index, controller in enumerate(controllers):
            label = f"controller {index} ({controller_label(controller)})"
            if not can_predict(controller):
                raise InputError(
                    f'{label} has no context networks; train them with "blendctl train-context", or use '
                    'features="online"'
                )
            trained = getattr(controller, "horizons", (1,))
            missing = [h for h in self.horizons if h not in trained]
            if missing:
                raise InputError(
                    f"{label} was not trained for the horizons {missing}; allowed: {', '.join(map(str, trained))}"
                )
            predictors.append(controller)
        if self.horizons == (1,):
            return NextStepPredictions([p.predict for p in predictors], trusted=_trained_together(controllers))
        return _Horizons(predictors, self.horizons)


def _trained_together(controllers: Sequence[Controller]) -> bool:
    """Return whether the context networks were trained for the differences between these controllers."""
    sets = [(getattr(controller, "card", {}).get("context") or {}).get("set", ()) for controller in controllers]
    names = {str(getattr(controller, "name", "")) for controller in controllers}
    return all(names <= set(one) for one in sets)


class NextStepPredictions(BoundFeature):
    """[reward, -cost] of the next step, as the controllers predict it.

    trusted: the learner starts with the prior that the predictions are right, up to TRUST. The rewards of a step are
    small: from a prior of 0, optimism instead of the predictions would decide for thousands of steps.
    """

    size = 2
    batched = True

    def __init__(self, predict: list[Callable[..., tuple[Any, Any]]], *, trusted: bool = False) -> None:
        self.predict = predict
        if trusted:
            self.prior, self.theta_bound = np.eye(2), TRUST

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray | tuple[float, float]:
        reward, cost = self.predict[arm](observation, action)
        if type(reward) is ndarray and reward.ndim:
            rows = np.empty((*reward.shape, 2))  # np.stack takes longer
            rows[..., 0] = reward
            np.negative(cost, out=rows[..., 1])
            return rows
        return reward, -cost


class _Horizons(BoundFeature):
    batched = True

    def __init__(self, controllers: list[Any], horizons: tuple[int, ...]) -> None:
        self.controllers, self.horizons, self.size = controllers, horizons, 2 * len(horizons)

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        parts = []
        for horizon in self.horizons:
            reward, cost = self.controllers[arm].predict(observation, action, horizon=horizon)
            parts += [np.asarray(reward) / horizon, -np.asarray(cost) / horizon]
        return np.stack(parts, axis=-1)


@dataclass(frozen=True)
class Critics:
    """The critics [V, -Vc]: the expected discounted return and cost of each controller.

    unit: scale each arm's pair to length 1, as in an earlier version of the paper's code; otherwise values are
    divided by `scale`, which should be near the largest discounted return.
    """

    unit: bool = True
    scale: float = 10.0

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        for index, controller in enumerate(controllers):
            if not isinstance(controller, Critic):
                raise InputError(
                    f"controller {index} ({controller_label(controller)}) has no critics (value, cost_value); "
                    f'use features="predictions" or features="online"'
                )
        raw = _Raw(list(controllers))
        shaped = UnitLength(raw) if self.unit else Scaled(raw, self.scale)
        return shaped.bind(controllers, objectives=objectives)


class _Raw(BoundFeature):
    size = 2
    batched = True

    def __init__(self, controllers: list[Any]) -> None:
        self.controllers = controllers

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return self

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        critic = self.controllers[arm]
        return np.stack([critic.value(observation), -np.asarray(critic.cost_value(observation))], axis=-1)
