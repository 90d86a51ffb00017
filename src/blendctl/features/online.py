"""A context for black boxes: a linear model of the feedback of an action, learned while driving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.compiled import compiled
from blendctl.controllers.base import Controller
from blendctl.errors import FileFormatError, InputError
from blendctl.features.base import BoundFeature

FloatArray = NDArray[np.float64]

LARGEST_BASIS = 1500  # beyond it a step would cost milliseconds


@dataclass(frozen=True)
class OnlineLinear:
    """Predict each objective from observation and action by recursive least squares; no network needed.

    The model is linear in [1, o, a, o x a], with the observation o clipped to ±clip. All arms share it, because the
    feedback of an action does not depend on the controller that proposed it: every stage informs about every arm.
    """

    regularization: float = 1.0  # weight of the prior, a feedback of 0
    discount: float = 1.0  # in (0, 1]: forgetting, for worlds that change
    clip: float = 5.0  # limit of observations

    def __post_init__(self) -> None:
        if not self.regularization > 0 or not 0 < self.discount <= 1 or not self.clip > 0:
            raise InputError(
                "regularization and clip must be > 0 and discount in (0, 1], actually: "
                f"{self.regularization!r}, {self.clip!r} and {self.discount!r}"
            )

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _Model(self, objectives)


class _Model(BoundFeature):
    learns = True

    def __init__(self, options: OnlineLinear, objectives: int) -> None:
        self.options = options
        self.size = objectives
        self.basis = 0  # number of terms, known at the first call
        self.weights = np.zeros((objectives, 0))  # (objectives, basis)
        self.spread = np.zeros((0, 0))  # (basis, basis): the inverse of the regularised Gram matrix

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        o, a = _flat(observation), _flat(action)
        if not self.basis:
            self._begin(o.size, a.size)
        elif self.basis != (1 + o.size) * (1 + a.size):
            raise InputError(
                f"the size of observation or action has changed since the online model began, actually: {o.size} and "
                f"{a.size} entries"
            )
        return predict(o, a, self.options.clip, self.weights)

    def learn(self, observation: Any, action: Any, feedback: FloatArray) -> None:
        """Learn from the feedback (objectives,) of an action at an observation."""
        if self.basis:
            o, a = _flat(observation), _flat(action)
            update(o, a, self.options.clip, self.weights, self.spread, feedback, self.options.discount)

    def state(self) -> dict[str, FloatArray]:
        """Return the model."""
        return {"weights": self.weights, "spread": self.spread}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Continue from what `state` returned."""
        weights, spread = state.get("weights"), state.get("spread")
        if (
            weights is None
            or spread is None
            or weights.shape != (self.size, len(spread))
            or spread.shape != (len(spread), len(spread))
            or not (np.isfinite(weights).all() and np.isfinite(spread).all())
        ):
            raise FileFormatError("the saved online model does not fit, or is damaged")
        self.weights, self.spread = (np.array(array, np.float64) for array in (weights, spread))
        self.basis = len(spread)

    def _begin(self, observation_size: int, action_size: int) -> None:
        basis = (1 + observation_size) * (1 + action_size)
        if basis > LARGEST_BASIS:
            raise InputError(
                f"observation and action have {observation_size} and {action_size} entries: a model of {basis} terms, "
                f"allowed: {LARGEST_BASIS}; use features.Custom with fewer numbers"
            )
        self.basis = basis
        self.weights = np.zeros((self.size, basis))
        self.spread = np.eye(basis) / self.options.regularization


def _flat(values: Any) -> FloatArray:
    try:
        return np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise InputError(
            f"the online model takes arrays of numbers, actually: {type(values).__name__}; "
            "use features.Custom for other observations"
        ) from None


@compiled
def expand(o: FloatArray, a: FloatArray, clip: float) -> FloatArray:
    """Compute [1, o, a, o x a] (basis,)."""
    out = np.empty((1 + o.size) * (1 + a.size))
    at = 0
    for j in range(a.size + 1):
        factor = 1.0 if j == 0 else a[j - 1]
        out[at] = factor
        at += 1
        for i in range(o.size):
            out[at] = factor * min(max(o[i], -clip), clip)
            at += 1
    return out


@compiled
def predict(o: FloatArray, a: FloatArray, clip: float, weights: FloatArray) -> FloatArray:
    """Compute the expected feedback (objectives,)."""
    phi = expand(o, a, clip)
    out = np.zeros(weights.shape[0])
    for k in range(weights.shape[0]):
        for i in range(phi.size):
            out[k] += weights[k, i] * phi[i]
    return out


@compiled
def update(
    o: FloatArray,
    a: FloatArray,
    clip: float,
    weights: FloatArray,
    spread: FloatArray,
    feedback: FloatArray,
    discount: float,
) -> None:
    """Take one step of recursive least squares; `spread` stays symmetric to the bit."""
    phi = expand(o, a, clip)
    n = phi.size
    gain = np.zeros(n)
    for i in range(n):
        for j in range(n):
            gain[i] += spread[i, j] * phi[j]
    denominator = discount
    for i in range(n):
        denominator += phi[i] * gain[i]
    for k in range(weights.shape[0]):
        error = feedback[k]
        for i in range(n):
            error -= weights[k, i] * phi[i]
        error /= denominator
        for i in range(n):
            weights[k, i] += error * gain[i]
    for i in range(n):
        for j in range(i, n):
            value = (spread[i, j] - gain[i] * gain[j] / denominator) / discount
            spread[i, j] = value
            spread[j, i] = value
