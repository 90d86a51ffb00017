"""Describe a state for a learned switch: the controllers' observations, actions and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.controllers import Controller, NetworkController
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.base import Critic, can_predict


def describe_states(controllers: Sequence[Controller], observations: FloatArray) -> FloatArray:
    """Return (B, size) for observations (B, observation_size).

    The columns: a 1; per controller its mean action, its critics' values and its context networks' predictions for
    that action, if it has them; and the observation, encoded as the first network controller sees it.
    """
    columns: list[Any] = [np.ones(len(observations))]
    for controller in controllers:
        action = act_rows(controller, observations, None)
        columns += list(action.T)
        if isinstance(controller, Critic):
            columns += [controller.value(observations), controller.cost_value(observations)]
        if can_predict(controller) and isinstance(controller, NetworkController):
            for horizon in controller.horizons:
                columns += controller.predict(observations, action, horizon=horizon)
    encoded = next((c.encoding(observations) for c in controllers if isinstance(c, NetworkController)), observations)
    return np.column_stack([*columns, np.asarray(encoded, np.float64).reshape(len(observations), -1)])
