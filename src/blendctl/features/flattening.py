"""Observations and actions of any Gymnasium space as vectors, for networks, tables and lock-step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from blendctl.arrays import FloatArray
from blendctl.controllers.adapters import act_rows
from blendctl.controllers.base import Controller, Stateful
from blendctl.controllers.lookahead_network import controller_digest, controller_label
from blendctl.errors import InputError

LONGEST_EPISODE = 20_000  # control steps; an environment whose episodes never end needs a limit


@dataclass(frozen=True)
class Flattening:
    """Turn observations of a space into vectors: discrete ones one-hot, arrays and parts one after another.

    >>> flattening = Flattening.of(spaces.Dict({"at": spaces.Discrete(3), "speed": spaces.Box(-1, 1, (2,))}))
    >>> flattening({"at": 1, "speed": np.array([0.5, -0.5])})
    array([ 0. ,  1. ,  0. ,  0.5, -0.5])
    """

    space: str  # the space as JSON

    @classmethod
    def of(cls, space: Any) -> Flattening:
        """Return the flattening of a space; raise InputError if it is not of a fixed size."""
        return cls(json.dumps(_describe(space)))

    def __deepcopy__(self, memo: Any) -> Flattening:
        """Return itself: it never changes."""
        return self

    @cached_property
    def original(self) -> Any:
        """The space of the observations, without limits."""
        return _rebuild(json.loads(self.space))

    @cached_property
    def size(self) -> int:
        """Entries of a vector."""
        return int(spaces.flatdim(self.original))

    @cached_property
    def plain(self) -> bool:
        """Whether the observations are vectors already."""
        return isinstance(self.original, spaces.Box) and len(self.original.shape) == 1

    def __call__(self, observation: Any) -> FloatArray:
        """Return an observation as a vector (size,)."""
        if self.plain:
            return np.asarray(observation, np.float64)
        return np.asarray(spaces.flatten(self.original, observation), np.float64)

    def restore(self, vector: FloatArray) -> Any:
        """Return the observation of a vector (size,)."""
        return vector if self.plain else spaces.unflatten(self.original, vector)


class FlatEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose observations are vectors, whose actions are arrays, and which always reports a cost."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.flattening = Flattening.of(env.observation_space)
        limit = np.full(self.flattening.size, np.inf)
        self.observation_space = spaces.Box(-limit, limit, dtype=np.float64)
        self.inner_space = env.action_space
        self._length = 0  # control steps of the episode
        if isinstance(env.action_space, spaces.Discrete):  # a box of one entry, so that controllers return arrays
            first, last = int(env.action_space.start), int(env.action_space.start + env.action_space.n) - 1
            self.action_space = spaces.Box(first, last, (1,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, _ = self.env.reset(seed=seed, options=options)
        self._length = 0
        return self.flattening(observation), {"cost": 0.0}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step; `info` has the cost and its parts only, so that vector environments need not collect the rest."""
        self._length += 1
        if self._length > LONGEST_EPISODE:
            raise InputError(f"an episode has not ended after {LONGEST_EPISODE} steps; limit it with episode_steps")
        observation, reward, terminated, truncated, info = self.env.step(as_action(action, self.inner_space))
        costs = {name: float(info[name]) for name in info if name.startswith("cost_") and np.ndim(info[name]) == 0}
        costs["cost"] = float(info.get("cost", 0.0))
        return self.flattening(observation), float(reward), bool(terminated), bool(truncated), costs


class FlatController:
    """A controller that takes the vector of an observation, one or many, and returns arrays."""

    def __init__(self, controller: Controller, flattening: Flattening, action_space: Any) -> None:
        self.controller, self.flattening = controller, flattening
        self.name, self.digest = controller_label(controller), controller_digest(controller)
        self.batched = flattening.plain and isinstance(action_space, spaces.Box) and len(action_space.shape) == 1
        self._action_size = int(np.prod(action_space.shape or (1,)))
        if isinstance(controller, Stateful):
            self.reset = controller.reset

    def act(self, observation: Any, rng: np.random.Generator | None = None) -> FloatArray:
        """Return the action (action_size,) or the actions (n, action_size)."""
        rows = np.asarray(observation, np.float64)
        if rows.ndim == 1:
            return self._one(rows, rng)
        return act_rows(self.controller, rows, rng) if self.batched else np.stack([self._one(row, rng) for row in rows])

    def _one(self, row: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        action = np.asarray(self.controller.act(self.flattening.restore(row), rng), np.float64).reshape(-1)
        if action.size != self._action_size:
            raise InputError(f"{self.name} returned {action.size} numbers, expected an action of {self._action_size}")
        return action


def flat_controllers(controllers: Sequence[Controller], env: gymnasium.Env[Any, Any]) -> list[Controller]:
    """Return controllers of an environment that take vectors."""
    flattening = Flattening.of(env.observation_space)
    return [FlatController(controller, flattening, env.action_space) for controller in controllers]


def as_action(action: Any, space: Any) -> Any:
    """Return an array as the action that a space holds."""
    array = np.asarray(action)
    if isinstance(space, spaces.Discrete):
        return round(float(array.reshape(-1)[0]))
    if isinstance(space, spaces.Box):
        return np.clip(array.reshape(space.shape), space.low, space.high).astype(space.dtype)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return np.rint(array.reshape(space.shape)).astype(space.dtype)
    raise InputError(
        f"expected actions that are numbers (Box, Discrete, MultiDiscrete, MultiBinary), actually: {space}"
    )


def _describe(space: Any) -> dict[str, Any]:
    match space:
        case spaces.Box():
            return {"kind": "Box", "shape": list(space.shape)}
        case spaces.Discrete():
            return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiBinary():
            return {"kind": "MultiBinary", "shape": list(space.shape)}
        case spaces.MultiDiscrete():
            return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
        case spaces.Dict():
            return {"kind": "Dict", "parts": {name: _describe(part) for name, part in space.spaces.items()}}
        case spaces.Tuple():
            return {"kind": "Tuple", "parts": [_describe(part) for part in space.spaces]}
    raise InputError(
        "observations must have a fixed size (Box, Discrete, MultiBinary, MultiDiscrete, Dict, Tuple), actually: "
        f"{space}"
    )


def _rebuild(about: dict[str, Any]) -> Any:
    match about["kind"]:
        case "Box":
            return spaces.Box(-np.inf, np.inf, tuple(about["shape"]), np.float64)
        case "Discrete":
            return spaces.Discrete(about["n"], start=about["start"])
        case "MultiBinary":
            return spaces.MultiBinary(about["shape"])
        case "MultiDiscrete":
            return spaces.MultiDiscrete(about["nvec"], start=about["start"])
        case "Dict":
            return spaces.Dict({name: _rebuild(part) for name, part in about["parts"].items()})
        case "Tuple":
            return spaces.Tuple([_rebuild(part) for part in about["parts"]])
    raise InputError(f"there is no space of kind {about['kind']!r}")
