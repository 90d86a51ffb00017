"""What a feature is, and the ways to make one from others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.base import Controller
from blendctl.errors import InputError

__all__ = [
    "Feature",
    "BoundFeature",
    "OneHot",
    "Custom",
    "Stack",
    "Scaled",
    "Unit",
    "learned",
    "restore_learned",
]

FloatArray = NDArray[np.float64]


@runtime_checkable
class BoundFeature(Protocol):
    """A feature that knows its controllers: a function with a size.

    A feature may also have `learn(observation, action, feedback)`: it then hears what each stage brought, and should
    have `state()`, what it has learned as named arrays, and `restore(state)`, so that a blend can be saved;
    and `batched = True` if it takes a batch: observations (n, ...) and actions (n, ...) to (n, size).
    """

    @property
    def size(self) -> int:
        """How many numbers it gives, d."""

    def __call__(self, observation: Any, action: Any, arm: int) -> ArrayLike:
        """Give psi (size,) of controller `arm`, which would do `action` at `observation`."""


@runtime_checkable
class Feature(Protocol):
    """What a user declares: it is bound to the controllers when the blender is made."""

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        """Give the function that computes psi for these controllers."""


@dataclass(frozen=True)
class OneHot:
    """Tell the arms apart and nothing else: the bandit then learns each arm's average feedback.

    >>> OneHot().bind([lambda o: o, lambda o: o], objectives=2)(None, None, 1)
    array([0., 1.])
    """

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _OneHot(len(controllers))


@dataclass(frozen=True)
class _OneHot:
    size: int
    rows: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", np.eye(self.size))

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        return np.asarray(self.rows[arm])


@dataclass(frozen=True)
class Custom:
    """A function of yours: `function(observation, action, arm)` gives `size` numbers.

    >>> feature = Custom(lambda observation, action, arm: [observation[0], action[0]], size=2)
    >>> feature.bind([], objectives=2)([0.3, 0.0], [1.0], 0)
    [0.3, 1.0]
    """

    function: Callable[[Any, Any, int], ArrayLike]
    size: int

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(
                f"a custom feature must be a function of (observation, action, arm), actually: {self.function!r}"
            )
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise InputError(f"size must be a whole number >= 1, actually: {self.size!r}")

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return self

    def __call__(self, observation: Any, action: Any, arm: int) -> ArrayLike:
        return self.function(observation, action, arm)


def learned(feature: BoundFeature) -> dict[str, FloatArray]:
    """Give what a feature has learned, as named arrays; nothing if it does not learn."""
    if not hasattr(feature, "learn"):
        return {}
    if not hasattr(feature, "state"):
        raise InputError(
            f"the feature {type(feature).__name__} learns, and cannot be saved: give it state() and restore(state)"
        )
    return dict(feature.state())


def restore_learned(feature: BoundFeature, state: dict[str, FloatArray]) -> None:
    """Let a feature that learns go on from what `learned` gave."""
    if not hasattr(feature, "restore"):
        raise InputError(f"the feature {type(feature).__name__} learns, and cannot be restored: give it restore(state)")
    feature.restore(state)


class Stack:
    """Features side by side, divided by the root of their number: if none is longer than L, neither is this.

    >>> stack = Stack(OneHot(), Custom(lambda o, a, arm: [0.6], size=1))
    >>> stack.bind([lambda o: o, lambda o: o], objectives=2)(None, None, 0).round(3)
    array([0.707, 0.   , 0.424])
    """

    def __init__(self, *parts: Feature) -> None:
        if not parts or not all(isinstance(part, Feature) for part in parts):
            raise InputError(f"a stack needs one or more features, actually: {parts!r}")
        self.parts = parts

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _Stack([part.bind(controllers, objectives=objectives) for part in self.parts])


class _Stack:
    def __init__(self, parts: list[BoundFeature]) -> None:
        self.parts = parts
        self.size = sum(part.size for part in parts)
        self.factor = 1.0 / math.sqrt(len(parts))
        self._learners: dict[str, Any] = {str(i): part for i, part in enumerate(parts) if hasattr(part, "learn")}
        if self._learners:
            self.learn = lambda *what: [part.learn(*what) for part in self._learners.values()]

    def state(self) -> dict[str, FloatArray]:
        return {f"{at}.{name}": a for at, part in self._learners.items() for name, a in learned(part).items()}

    def restore(self, state: dict[str, FloatArray]) -> None:
        for at, part in self._learners.items():
            mine = {name.partition(".")[2]: a for name, a in state.items() if name.startswith(f"{at}.")}
            restore_learned(part, mine)

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        rows = [np.asarray(part(observation, action, arm), dtype=np.float64) for part in self.parts]
        for part, row in zip(self.parts, rows, strict=True):
            if row.shape != (part.size,):  # two mistakes could cancel in the sum
                raise InputError(f"a feature of size {part.size} gave an array of shape {row.shape}")
        return np.concatenate(rows) * self.factor


@dataclass(frozen=True)
class Scaled:
    """A feature divided by numbers, one or one per entry: what counts as 1."""

    feature: Feature
    by: float | Sequence[float]

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        inner = self.feature.bind(controllers, objectives=objectives)
        by = np.asarray(self.by, dtype=np.float64)
        if by.shape not in ((), (inner.size,)) or not np.isfinite(by).all() or not (by != 0).all():
            raise InputError(f"by must be one number or {inner.size}, finite and not 0, actually: {self.by!r}")
        return _Mapped(inner, lambda psi: psi / by)


@dataclass(frozen=True)
class Unit:
    """A feature brought to length 1, whatever it was: only its direction tells (0 stays 0)."""

    feature: Feature

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _Mapped(self.feature.bind(controllers, objectives=objectives), _unit)


def _unit(psi: FloatArray) -> FloatArray:
    length = np.linalg.norm(psi, axis=-1, keepdims=True)
    return np.asarray(psi / np.where(length > 0, length, 1.0))


class _Mapped:
    def __init__(self, inner: BoundFeature, change: Callable[[FloatArray], FloatArray]) -> None:
        self.inner, self.change, self.size = inner, change, inner.size
        self.batched = getattr(inner, "batched", False)
        for name in ("learn", "state", "restore"):
            if hasattr(inner, name):
                setattr(self, name, getattr(inner, name))

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        return self.change(np.asarray(self.inner(observation, action, arm), dtype=np.float64))
