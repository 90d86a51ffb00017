"""The protocol of a feature, and features made from others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.controllers.lookahead_network import LookAheadNetwork
    from blendctl.features.dial import Dial

VALUES_TO_GO = ("return to go", "-cost to go")  # what the objectives of a look-ahead feature estimate


@dataclass(frozen=True)
class LookAheadInfo:
    """Meaning of a look-ahead feature's estimates, and the setting of the dial: a preference or a cost budget."""

    discount: float  # of return and cost to go, per control step
    weight_range: tuple[float, float]  # return that a unit of cost is worth: lowest, highest
    prefer: float | None = None  # 0 safest, 1 most performant
    cost_budget: float | None = None  # per episode
    horizon: int | None = None  # control steps; None: unlimited


class StageForesight(NamedTuple):
    """Predictions of a look-ahead feature at a decision, and the setting of the dial."""

    foreseen: FloatArray  # (arms, objectives) to go if an arm drives the stage, in the objectives' own units
    units: FloatArray  # (objectives,) what one unit of the learner's estimates is worth
    weight: float  # return that a unit of cost is worth
    spent: float  # cost of the episode so far
    latched: bool  # the budget is so short that the safest setting drives


@runtime_checkable
class BoundFeature(Protocol):
    """A feature bound to its controllers: a function with a size. Subclass it; everything else has a default.

    A feature that takes batches sets `batched`. A feature that learns sets `learns` and overrides `learn`, and `state`
    and `restore`, so that a blend can be saved. A feature that looks further ahead than a stage sets `bootstraps` and
    overrides `target`, so that the learner's feedback matches what psi predicts; with `lookahead` and `foresight`,
    records show its estimates in the units of return and cost.
    """

    size: int  # d, length of psi
    batched: bool = False  # takes observations (n, ...) and actions (n, ...), and returns (n, size)
    learns: bool = False  # `learn` is called with the feedback of every stage
    bootstraps: bool = False  # `target` adds the value of the final state to the feedback of a stage
    hold: int = 1  # control steps per decision, unless the user chooses
    discount: float = 1.0  # of the feedback within a stage, per control step
    warning: str | None = None  # warning for the user, before driving
    error_entries: int = 0  # standard errors at the end of psi: they widen intervals, the learner sees 0 instead
    events: Sequence[str] = ()  # failures since the last `take_events`
    rule: str = "maximal-loss"  # of the learner, unless the user chooses
    prior: FloatArray | None = None  # (size, objectives) coefficients that the learner starts from; None: 0
    theta_bound: float | None = None  # their largest distance from the true ones; None: the learner's default
    lookahead: LookAheadInfo | None = None  # of a feature whose estimates are values to go; it has `foresight`
    network: LookAheadNetwork | Any = None  # look-ahead networks that it asks, None without; a subclass may narrow it
    dial: Dial | Any = None  # what weighs return against cost, None without; as above

    def __call__(self, observation: Any, action: Any, arm: int) -> ArrayLike:
        """Compute psi (size,) of controller `arm`, which proposes `action` at `observation`."""
        ...

    def rows(self, observations: NDArray[Any], actions: NDArray[Any], arm: int) -> FloatArray:
        """Compute psi (n, size) of controller `arm` in n worlds."""
        if self.batched:
            return np.asarray(self(observations, actions, arm), np.float64)
        pairs = zip(observations, actions, strict=True)
        return np.array([self(observation, action, arm) for observation, action in pairs], np.float64)

    def attach(self, env: Any) -> None:
        """Receive the environment before driving."""
        return

    def take_events(self) -> list[str]:
        """Return and clear the events since the last call."""
        events, self.events = list(self.events), []
        return events

    def learned_from(self, psi: FloatArray) -> FloatArray:
        """Return psi (..., size) as the learner is updated with it: without standard errors."""
        if self.error_entries:
            psi = psi.copy()
            psi[..., -self.error_entries :] = 0.0
        return psi

    def begin_stage(self, spent: FloatArray, episode_step: NDArray[np.int64]) -> None:
        """Prepare a decision in B worlds: cost spent (B,) and control steps (B,) of their episodes so far."""
        return

    def end_episodes(self, costs: FloatArray) -> None:
        """Record the costs (episodes,) of finished episodes."""
        return

    def target(self, feedback: FloatArray, observations: Any, *, steps: int) -> FloatArray:
        """Return what psi predicts, from the feedback (objectives,) or (n, objectives) of a stage of `steps`.

        observations: where the stage ended.
        """
        return feedback

    def foresight(self) -> StageForesight | None:
        """Return its predictions at the decision whose psi was computed last; None if it does not look ahead."""
        return None

    def learn(self, observation: Any, action: Any, feedback: FloatArray) -> None:
        """Learn from the feedback (objectives,) of a stage; the default learns nothing."""
        return

    def state(self) -> dict[str, FloatArray]:
        """Return what it has learned, as named arrays."""
        if self.learns:
            raise InputError(f"the feature {type(self).__name__} cannot be saved: it learns, and needs a state()")
        return {}

    def restore(self, state: dict[str, FloatArray]) -> None:
        """Continue from what `state` returned."""
        if self.learns:
            raise InputError(f"the feature {type(self).__name__} cannot be restored: it needs a restore(state)")


@runtime_checkable
class Feature(Protocol):
    """A feature as the user declares it. The blender binds it to its controllers."""

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        """Return the function that computes psi for these controllers."""
        ...


@dataclass(frozen=True)
class OneHot:
    """An indicator of the arm: the bandit then learns the average feedback of each arm.

    >>> OneHot().bind([lambda o: o, lambda o: o], objectives=2)(None, None, 1)
    array([0., 1.])
    """

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _OneHot(len(controllers))


class _OneHot(BoundFeature):
    def __init__(self, size: int) -> None:
        self.size, self._rows = size, np.eye(size)

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        return np.asarray(self._rows[arm])


@dataclass(frozen=True)
class Custom(BoundFeature):
    """A custom function: `function(observation, action, arm)` returns `size` numbers.

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


class Stack:
    """Concatenate features, divided by the square root of their number: never longer than the longest of them.

    >>> stack = Stack(OneHot(), Custom(lambda o, a, arm: [0.6], size=1))
    >>> stack.bind([lambda o: o, lambda o: o], objectives=2)(None, None, 0).round(3)
    array([0.707, 0.   , 0.424])
    """

    def __init__(self, *parts: Feature) -> None:
        if not parts or not all(isinstance(part, Feature) for part in parts):
            raise InputError(f"a stack needs one or more features, actually: {parts!r}")
        self.parts = parts

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _Stack([_plain(part.bind(controllers, objectives=objectives)) for part in self.parts])


def _plain(part: BoundFeature) -> BoundFeature:
    """Return a feature that can be combined with others; raise InputError if it defines its own feedback."""
    if part.bootstraps:
        raise InputError("look-ahead cannot be stacked or scaled: its feedback belongs to its own context")
    return part


class _Stack(BoundFeature):
    def __init__(self, parts: list[BoundFeature]) -> None:
        self.parts = parts
        self.size = sum(part.size for part in parts)
        self.factor = 1.0 / math.sqrt(len(parts))
        self.learns = any(part.learns for part in parts)

    def attach(self, env: Any) -> None:
        for part in self.parts:
            part.attach(env)

    def learn(self, observation: Any, action: Any, feedback: FloatArray) -> None:
        for part in self.parts:
            part.learn(observation, action, feedback)

    def state(self) -> dict[str, FloatArray]:
        return {f"{at}.{name}": array for at, part in enumerate(self.parts) for name, array in part.state().items()}

    def restore(self, state: dict[str, FloatArray]) -> None:
        for at, part in enumerate(self.parts):
            prefix = f"{at}."
            part.restore({name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)})

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        rows = [np.asarray(part(observation, action, arm), dtype=np.float64) for part in self.parts]
        for part, row in zip(self.parts, rows, strict=True):
            if row.shape != (part.size,):  # two mistakes could cancel in the sum
                raise InputError(f"a feature of size {part.size} returned an array of shape {row.shape}")
        return np.concatenate(rows) * self.factor


@dataclass(frozen=True)
class Scaled:
    """A feature divided by one number, or by one per entry."""

    feature: Feature
    by: float | Sequence[float]

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        inner = _plain(self.feature.bind(controllers, objectives=objectives))
        by = np.asarray(self.by, dtype=np.float64)
        if by.shape not in ((), (inner.size,)) or not np.isfinite(by).all() or not (by != 0).all():
            raise InputError(f"by must be one number or {inner.size}, finite and not 0, actually: {self.by!r}")
        return _Mapped(inner, lambda psi: psi / by)


@dataclass(frozen=True)
class UnitLength:
    """A feature scaled to length 1; 0 stays 0."""

    feature: Feature

    def bind(self, controllers: Sequence[Controller], *, objectives: int) -> BoundFeature:
        return _Mapped(_plain(self.feature.bind(controllers, objectives=objectives)), _unit)


def _unit(psi: FloatArray) -> FloatArray:
    length = np.linalg.norm(psi, axis=-1, keepdims=True)
    return np.asarray(psi / np.where(length > 0, length, 1.0))


class _Mapped(BoundFeature):
    def __init__(self, inner: BoundFeature, change: Callable[[FloatArray], FloatArray]) -> None:
        self.change, self.size, self.batched, self.learns = change, inner.size, inner.batched, inner.learns
        self.inner = inner

    def attach(self, env: Any) -> None:
        self.inner.attach(env)

    def learn(self, observation: Any, action: Any, feedback: FloatArray) -> None:
        self.inner.learn(observation, action, feedback)

    def state(self) -> dict[str, FloatArray]:
        return self.inner.state()

    def restore(self, state: dict[str, FloatArray]) -> None:
        self.inner.restore(state)

    def __call__(self, observation: Any, action: Any, arm: int) -> FloatArray:
        return self.change(np.asarray(self.inner(observation, action, arm), dtype=np.float64))
