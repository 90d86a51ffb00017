"""A trained controller that runs without torch: actor, critics and context network."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.compiled import compiled
from blendctl.controllers.dense import Dense, fast_tanh, run_relu_row, run_row
from blendctl.controllers.encoding import Encoding, encode
from blendctl.controllers.number_checks import check_real, check_whole
from blendctl.errors import InputError, StateError

Array = NDArray[np.float32]
LARGEST_LOG_STD = 20.0
LARGEST_FACTORS = 64


@dataclass(frozen=True)
class ContextNetwork:
    """Predict reward and cost after an action, for the next step and for longer horizons.

    Outputs are pairs (reward, cost), one pair per horizon: discounted sums over that many steps if the controller
    continues to drive after the action. Horizon 1 is the next step. `limits` keep a prediction in the range of its
    target: if a cost of 0 or 1 is certain for two actions, their predictions are equal, and the reward decides.

    With k `factors`, a network of the next step has the outputs [level, cost, k effects of the action, k worths of an
    effect]: the reward is level + effects . worths, the cost is tanh of its output. So small differences between
    actions can be learned.
    """

    network: Dense  # inputs: encoding.size + action_size * len(action_gains)
    encoding: Encoding
    action_gains: tuple[float, ...]  # each adds clip(action * gain, -1, 1); > 1 where small actions saturate
    horizons: tuple[int, ...]
    discount: float
    scale: Array  # (2 * horizons,) unit of each output
    shift: Array  # (2 * horizons,) added to each output
    limits: Array | None = None  # (2 * horizons, 2) lowest and highest prediction; None: unlimited
    factors: int = 0  # effects of the action; 0: the network's outputs are the predictions
    low: Array = field(init=False, repr=False)  # (2 * horizons,)
    high: Array = field(init=False, repr=False)  # (2 * horizons,)
    action_size: int = field(init=False, repr=False)  # entries of an action
    plan: tuple[Any, ...] = field(init=False, repr=False, compare=False)  # arguments of the kernel `predict_row`

    def __post_init__(self) -> None:
        for gain in self.action_gains:
            check_real(gain, "an action gain", low=-1e6, high=1e6)
        for horizon in self.horizons:
            check_whole(horizon, "a horizon", low=1, high=1_000_000)
        check_real(self.discount, "discount", low=0.0, high=1.0)
        action_inputs = self.network.inputs - self.encoding.size
        if not self.action_gains or action_inputs < 1 or action_inputs % len(self.action_gains):
            raise InputError(
                f"the context network has {self.network.inputs} inputs; expected {self.encoding.size} of the "
                f"observation and {len(self.action_gains)} per entry of an action"
            )
        check_whole(self.factors, "factors", low=0, high=LARGEST_FACTORS)
        if self.factors and self.horizons != (1,):
            raise InputError(f"a context network with factors has the horizons {self.horizons}; expected (1,)")
        activation = "relu" if self.factors else "tanh"
        if self.network.activation != activation:
            raise InputError(
                f"the context network has {self.network.activation} between its layers; expected {activation}"
            )
        outputs = 2 * len(self.horizons)
        made = outputs + 2 * self.factors
        if self.network.outputs != made or not self.scale.shape == self.shift.shape == (outputs,):
            raise InputError(
                f"the context network has {self.network.outputs} outputs, scale {self.scale.shape} and shift "
                f"{self.shift.shape}; expected {made} outputs and {outputs} predictions for {len(self.horizons)} "
                f"horizons and {self.factors} factors"
            )
        limits = np.tile(np.array([-np.inf, np.inf], np.float32), (outputs, 1)) if self.limits is None else self.limits
        if limits.shape != (outputs, 2) or not (limits[:, 0] <= limits[:, 1]).all():
            raise InputError(
                f"the context network has limits {limits.shape} {limits.tolist()}; expected a row [lowest, highest] "
                f"for each of {outputs} outputs"
            )
        low, high = (np.ascontiguousarray(column) for column in limits.T)
        gains, network = np.array(self.action_gains, np.float64), self.network
        plan = (gains, network.flat, network.sizes, self.factors, self.scale, self.shift, low, high, self.encoding.size)
        derived = {"low": low, "high": high, "plan": (*plan, *self.encoding.plan)}
        for name, value in (derived | {"action_size": action_inputs // len(self.action_gains)}).items():
            object.__setattr__(self, name, value)

    def select(self, horizons: tuple[int, ...]) -> ContextNetwork:
        """Return a network with the outputs of some of the horizons."""
        if horizons == self.horizons:
            return self
        columns = [2 * self.horizons.index(horizon) + k for horizon in horizons for k in (0, 1)]
        *hidden, weight = self.network.weights
        *hidden_biases, bias = self.network.biases
        network = Dense((*hidden, np.ascontiguousarray(weight[:, columns])), (*hidden_biases, bias[columns]))
        limits = None if self.limits is None else self.limits[columns]
        return replace(
            self,
            network=network,
            horizons=horizons,
            scale=self.scale[columns],
            shift=self.shift[columns],
            limits=limits,
        )

    def __call__(self, observations: NDArray[np.float64], actions: NDArray[np.float64]) -> Array:
        """Return (n, 2 * horizons) for observations (n, observation_size) and actions (n, action_size)."""
        scaled = [np.clip(actions * gain, -1.0, 1.0).astype(np.float32) for gain in self.action_gains]
        inputs = np.concatenate([self.encoding(observations), *scaled], axis=1)
        return self.rescale(self.network.batch(inputs))

    def rescale(self, outputs: Array) -> Array:
        """Return the predictions (n, 2 * horizons) for the network's outputs (n, outputs)."""
        if self.factors:
            effects, worths = outputs[:, 2 : 2 + self.factors], outputs[:, 2 + self.factors :]
            reward = outputs[:, 0] + (effects * worths).sum(axis=1)
            outputs = np.stack([reward, np.tanh(outputs[:, 1])], axis=1)
        return np.asarray(np.clip(outputs * self.scale + self.shift, self.low, self.high), np.float32)

    def row(self, observation: NDArray[np.float64], action: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return (2 * horizons,) for one observation and action, in one compiled call."""
        if observation.shape != (self.encoding.observation_size,):
            self.encoding(observation)  # raises the error
        if action.shape != (self.action_size,):
            raise InputError(f"action has shape {action.shape}; expected ({self.action_size},)")
        return predict_row(np.ascontiguousarray(observation).reshape(1, -1), np.ascontiguousarray(action), *self.plan)


@dataclass(frozen=True)
class NetworkController:
    """A trained stochastic controller with its critics and context network.

    Every method takes one observation (observation_size,) or a batch (n, observation_size), and returns
    one result or n results.
    """

    name: str
    encoding: Encoding
    actor: Dense  # -> mean action
    log_std: Array  # (action_size,)
    critic: Dense  # -> discounted return
    cost_critic: Dense  # -> discounted cost
    context: ContextNetwork | None = None  # of the next step
    longer: ContextNetwork | None = None  # of longer horizons that `context` does not predict
    card: dict[str, Any] = field(default_factory=dict)
    path: Path | None = field(default=None, compare=False, repr=False)  # the file it was read from
    std: Array = field(init=False, repr=False)  # (action_size,)

    def __post_init__(self) -> None:
        for name, network, outputs in (
            ("actor", self.actor, self.log_std.size),
            ("critic", self.critic, 1),
            ("cost_critic", self.cost_critic, 1),
        ):
            if (network.inputs, network.outputs, network.activation) != (self.encoding.size, outputs, "tanh"):
                raise InputError(
                    f"network {name!r} has {network.inputs} inputs, {network.outputs} outputs and "
                    f"{network.activation}; expected {self.encoding.size}, {outputs} and tanh"
                )
        if self.log_std.ndim != 1 or not (np.abs(self.log_std) <= LARGEST_LOG_STD).all():
            raise InputError(f"log_std must be a vector of numbers from {-LARGEST_LOG_STD} to {LARGEST_LOG_STD}")
        for context in self._contexts:
            if (context.encoding.observation_size, context.action_size) != (self.observation_size, self.action_size):
                raise InputError(
                    f"the context network takes observations of {context.encoding.observation_size} and actions of "
                    f"{context.action_size}; the actor has {self.observation_size} and {self.action_size}"
                )
        if self.longer is not None and (self.context is None or set(self.longer.horizons) & set(self.context.horizons)):
            raise InputError(f"the networks of the horizons {self.longer.horizons} need others of shorter horizons")
        object.__setattr__(self, "std", np.exp(self.log_std))

    def __repr__(self) -> str:
        parts = f"{self.observation_size} observations, {self.action_size} actions, actor={self.actor}"
        return f"NetworkController({self.name!r}, {parts}, context={self.context is not None})"

    @property
    def observation_size(self) -> int:
        """Entries of an observation."""
        return self.encoding.observation_size

    @property
    def action_size(self) -> int:
        """Entries of an action, each in [-1, 1]."""
        return self.actor.outputs

    @property
    def horizons(self) -> tuple[int, ...]:
        """Horizons of `predict`, in steps."""
        return tuple(horizon for context in self._contexts for horizon in context.horizons)

    @property
    def _contexts(self) -> list[ContextNetwork]:
        return [context for context in (self.context, self.longer) if context is not None]

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the parts that determine its actions: encoding, actor and noise; not of name, card and critics."""
        digest = hashlib.sha256(json.dumps(self.encoding.to_dict(), sort_keys=True).encode())
        for array in (*self.actor.weights, *self.actor.biases, self.log_std):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array, np.float32).tobytes())
        return digest.hexdigest()

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[np.float64]:
        """Return the action, in [-1, 1]: the mean, or with `rng` a sample from the policy."""
        inputs = self.encoding(observation)
        mean = self.actor.row(inputs) if inputs.ndim == 1 else self.actor.batch(inputs)
        action = mean.astype(np.float64)
        if rng is not None:
            action += self.std * rng.standard_normal(action.shape)
        return np.minimum(np.maximum(action, -1.0), 1.0)

    def value(self, observation: ArrayLike) -> NDArray[np.float64]:
        """Estimate the discounted return of this controller from here, a number or (n,)."""
        return self._scalar(self.critic, observation)

    def cost_value(self, observation: ArrayLike) -> NDArray[np.float64]:
        """Estimate the discounted cost of this controller from here, a number or (n,)."""
        return self._scalar(self.cost_critic, observation)

    def predict(
        self, observation: ArrayLike, action: ArrayLike, *, horizon: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Predict (reward, cost) of an action, numbers or (n,) each.

        `horizon` 1 is the next step; a longer one predicts discounted sums while this controller drives.
        """
        if self.context is None:
            raise StateError(
                f"controller {self.name!r} has no context networks; train them with: blendctl train-context"
            )
        context = next((context for context in self._contexts if horizon in context.horizons), None)
        if context is None:
            raise InputError(f"horizon {horizon} was not trained; allowed: {', '.join(map(str, self.horizons))}")
        observations = np.asarray(observation, np.float64)
        actions = np.asarray(action, np.float64)
        if actions.shape != (*observations.shape[:-1], self.action_size):
            raise InputError(
                f"action has shape {actions.shape}; expected {(*observations.shape[:-1], self.action_size)}, "
                f"one action per observation of shape {observations.shape}"
            )
        column = 2 * context.horizons.index(horizon)
        if observations.ndim == 1:
            row = context.row(observations, actions)
            return row[column], row[column + 1]
        out = context(observations, actions).astype(np.float64)
        return out[:, column], out[:, column + 1]

    def _scalar(self, network: Dense, observation: ArrayLike) -> NDArray[np.float64]:
        inputs = self.encoding(observation)
        if inputs.ndim == 1:
            return network.row(inputs).astype(np.float64)[0]  # type: ignore[no-any-return]  # a scalar, as for one row
        return network.batch(inputs)[:, 0].astype(np.float64)


@compiled
def predict_row(
    raw: NDArray[np.float64],  # (1, observation_size)
    action: NDArray[np.float64],  # (action_size,)
    gains: NDArray[np.float64],
    flat: Array,
    sizes: NDArray[np.int64],
    factors: int,
    scale: Array,
    shift: Array,
    low: Array,
    high: Array,
    size: int,
    robot: NDArray[np.int64],
    robot_gains: NDArray[np.float64],
    rings: NDArray[np.int64],
    radii: NDArray[np.float64],
    pairs: NDArray[np.int64],
    ahead: NDArray[np.float64],
    near: bool,
    velocity: int,
    max_distance: float,
) -> NDArray[np.float64]:
    """Encode one observation and action, run the context network, rescale and limit its outputs."""
    inputs = np.empty((1, sizes[0]), np.float32)
    encode(raw, inputs, robot, robot_gains, rings, radii, pairs, ahead, near, velocity, max_distance)
    at = size
    for gain in gains:
        for a in action:
            inputs[0, at] = min(max(a * gain, -1.0), 1.0)
            at += 1
    if factors == 0:
        predicted = run_row(inputs[0], flat, sizes).astype(np.float64)
    else:
        out = run_relu_row(inputs[0], flat, sizes)
        predicted = np.empty(2)
        predicted[0] = out[0]
        for k in range(factors):  # a product of two floats is exact in double precision
            predicted[0] += np.float64(out[2 + k]) * np.float64(out[2 + factors + k])
        predicted[1] = fast_tanh(out[1])
    predicted = predicted * scale + shift
    for i in range(predicted.size):
        predicted[i] = min(max(predicted[i], low[i]), high[i])
    return predicted
