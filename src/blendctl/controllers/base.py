"""The protocols of controllers: the required method `act` and the optional ones."""

from __future__ import annotations

from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray


@runtime_checkable
class Controller(Protocol):
    """Anything with `act`, the one method that a controller must have.

    A controller with memory should be `Stateful` too.
    """

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Return the action (action_size,) for an observation (observation_size,), or (n, ...) for a batch.

        With `rng` a stochastic controller samples its distribution; with None it returns the mean.
        """


@runtime_checkable
class Stateful(Protocol):
    """A controller with memory, which must be reset between episodes."""

    def reset(self) -> None:
        """Clear the memory at the end or at the start of an episode."""


@runtime_checkable
class Critic(Protocol):
    """A controller that also estimates its discounted return and cost."""

    def value(self, observation: ArrayLike) -> NDArray[Any]:
        """Return the expected discounted return, a number or (n,)."""

    def cost_value(self, observation: ArrayLike) -> NDArray[Any]:
        """Return the expected discounted cost, a number or (n,)."""


@runtime_checkable
class Predictor(Protocol):
    """A controller that also predicts reward and cost of one action, as the paper's context networks do."""

    def predict(self, observation: ArrayLike, action: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return reward and cost of the next step, numbers or (n,) each."""


def can_predict(controller: object) -> TypeGuard[Predictor]:
    """Return whether a controller predicts; a network controller without context networks does not."""
    return isinstance(controller, Predictor) and getattr(controller, "context", True) is not None
