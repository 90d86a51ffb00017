"""A context for black boxes: a linear model of the feedback of an action, learned while driving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.controllers.base import Controller
from blendctl.errors import FileFormatError, InputError
from blendctl.features.base import BoundFeature

LARGEST_BASIS = 1500  # with more, a step would take milliseconds
DAMAGED = "the saved online model does not fit, or is damaged"
WARM_UP = 16  # stages, a power of 2, before the model learns in units of the observations
LARGEST_INPUT = 1e6  # observations are clipped to this size
HEADROOM = 1.4  # psi has room for predictions beyond the largest feedback so far


@dataclass(frozen=True)
class OnlineLinear:
    """Predict each objective from observation and action by recursive least squares; no network needed.

    The model is linear in [1, o, a, o x a], with the observation o clipped to ±clip. All arms share it, because the
    feedback of an action does not depend on the controller that proposed it: all arms learn from every stage.

    normalize: divide observations by their spread so far, and psi by the largest feedback so far, rounded up to a power
    of 2; then psi is never longer than 1. A discrete action of the environment that is driven is one-hot.
    """

    regularization: float = 1.0  # weight of the prior, a feedback of 0
    discount: float = 1.0  # in (0, 1]: forgetting, for worlds that change
    clip: float = 5.0  # limit of observations, in units of their spread if they are normalised
    normalize: bool = True

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
        self.actions, self._first = 0, 0  # of a discrete space: how many, and the first; 0 for arrays
        self.unit = np.zeros(objectives)  # of psi; 0 before the first feedback
        self.count = 0  # observations that were learned from
        # Mean and spread by which observations are divided; mean and sum of squares of all so far.
        self.inputs = np.zeros((4, 0))
        self._early: list[FloatArray] = []  # rows [o, a, feedback] that wait until the spread of o is known

    def attach(self, env: Any) -> None:
        """Read the action space of the environment."""
        space = getattr(env, "single_action_space", None) or getattr(env, "action_space", None)
        if self.options.normalize and isinstance(space, Discrete) and not self.basis:
            self.actions, self._first = int(space.n), int(space.start)

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        o, a = _flat(observation), self._action(action)
        if not self.basis:
            self._begin(o.size, a.size)
        elif self.basis != (1 + o.size) * (1 + a.size):
            raise InputError(
                f"the size of observation or action has changed since the online model began, actually: {o.size} and "
                f"{a.size} entries"
            )
        if not self.options.normalize:
            return predict(o, a, self.options.clip, self.weights)
        expected = predict((o - self.inputs[0]) / self.inputs[1], a, self.options.clip, self.weights)
        limit = 1.0 / math.sqrt(self.size)
        return np.clip(expected / np.where(self.unit > 0, self.unit, 1.0), -limit, limit)

    def learn(self, observation: Any, action: Any, feedback: FloatArray) -> None:
        """Learn from the feedback (objectives,) of an action at an observation."""
        if not self.basis:
            return
        o, a = _flat(observation), self._action(action)
        rows: list[Sequence[FloatArray]] = [(o, a, feedback)]
        if self.options.normalize:
            self._notice(o, feedback)
            if self.count < WARM_UP:
                self._early.append(np.concatenate([o, a, feedback]))
                return
            rows = [*(np.split(row, [o.size, o.size + a.size]) for row in self._early), *rows]
            self._early = []
        for seen, chosen, value in rows:
            scaled = (seen - self.inputs[0]) / self.inputs[1] if self.options.normalize else seen
            update(scaled, chosen, self.options.clip, self.weights, self.spread, value, self.options.discount)

    def _action(self, action: Any) -> FloatArray:
        a = _flat(action)
        if not self.actions:
            return a
        number = int(np.rint(a[0])) - self._first
        if a.size != 1 or not 0 <= number < self.actions:
            raise InputError(f"expected one of {self.actions} discrete actions, actually: {action!r}")
        return np.asarray(np.eye(self.actions)[number])

    def _notice(self, o: FloatArray, feedback: FloatArray) -> None:
        """Add an observation (observation_size,) to the statistics; enlarge the units if necessary."""
        largest = HEADROOM * math.sqrt(self.size) * np.abs(feedback)
        grown = largest > self.unit
        self.unit[grown] = 2.0 ** np.ceil(np.log2(largest[grown]))
        # A wrong reading must not set the unit of all others.
        o = np.clip(o, -LARGEST_INPUT, LARGEST_INPUT)
        if self.count >= WARM_UP:
            reach = self.options.clip * self.inputs[1]
            o = np.clip(o, self.inputs[0] - reach, self.inputs[0] + reach)
        self.count += 1
        mean, squares = self.inputs[2:]
        before = o - mean
        mean += before / self.count
        squares += before * (o - mean)
        if self.count >= WARM_UP and self.count & (self.count - 1) == 0:  # rarely: at powers of 2
            self._renormalize()

    def _renormalize(self) -> None:
        """Use the statistics so far as the new units of observations, and convert the model to them exactly."""
        old_mean, old_spread, mean, squares = self.inputs
        spread = np.sqrt(squares / self.count)
        spread = np.where(spread > 1e-8 * np.maximum(1.0, np.abs(mean)), spread, 1.0)
        if self.count == WARM_UP:  # nothing was learned before: the prior is in these units
            self.inputs[0], self.inputs[1] = mean, spread
            return
        change = np.diag(np.append(1.0, spread / old_spread))  # [1, old o] = change @ [1, new o]
        change[1:, 0] = (mean - old_mean) / old_spread
        back = np.kron(np.eye(self.basis // len(change)), change)
        self.weights = np.ascontiguousarray(self.weights @ back)
        changed = back.T @ self.spread @ back
        self.spread = np.ascontiguousarray(0.5 * (changed + changed.T))
        self.inputs[0], self.inputs[1] = mean, spread

    def state(self) -> dict[str, FloatArray]:
        """Return the model."""
        state: dict[str, FloatArray] = {"weights": self.weights, "spread": self.spread}
        if self.options.normalize:
            numbers = np.array([self.count, self.actions, self._first], np.float64)
            early = np.array(self._early, np.float64) if self._early else np.zeros((0, 0))
            state |= {"unit": self.unit, "inputs": self.inputs, "numbers": numbers, "early": early}
        return state

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
            raise FileFormatError(DAMAGED)
        if self.options.normalize:
            self._restore_units(state, len(spread))
        self.weights, self.spread = (np.array(array, np.float64) for array in (weights, spread))
        self.basis = len(spread)

    def _restore_units(self, state: dict[str, FloatArray], basis: int) -> None:
        unit, inputs, numbers, early = (state.get(name) for name in ("unit", "inputs", "numbers", "early"))
        if unit is None or inputs is None or numbers is None or early is None:
            raise FileFormatError(DAMAGED)
        if unit.shape != (self.size,) or numbers.shape != (3,) or early.ndim != 2 or len(early) >= WARM_UP:
            raise FileFormatError(DAMAGED)
        fits = inputs.ndim == 2 and len(inputs) == 4 and (not basis or basis % (1 + inputs.shape[1]) == 0)
        if fits and len(early):
            width = inputs.shape[1]
            fits = early.shape[1] == width + basis // (1 + width) - 1 + self.size
        finite = all(np.isfinite(array).all() for array in (unit, inputs, numbers, early))
        if fits and basis and numbers[1]:
            fits = (1 + inputs.shape[1]) * (1 + numbers[1]) == basis
        if not fits or not finite or (inputs[1] <= 0).any() or (numbers[:2] < 0).any():
            raise FileFormatError(DAMAGED)
        self.unit, self.inputs = np.array(unit, np.float64), np.array(inputs, np.float64)
        self.count, self.actions, self._first = (int(number) for number in numbers)
        self._early = [np.array(row, np.float64) for row in early]

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
        self.inputs = np.zeros((4, observation_size))
        self.inputs[1] = 1.0


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
