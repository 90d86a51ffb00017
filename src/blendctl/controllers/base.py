"""The Controller protocol: what blendctl asks of anything that drives."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Controller", "Stateful", "Critic", "Predictor", "FloatArray"]

FloatArray = NDArray[np.float64] | NDArray[np.float32]


@runtime_checkable
class Controller(Protocol):
    """Anything with `act`: the one method a controller must have.

    One that remembers what it saw should be `Stateful` too.
    """

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> NDArray[Any]:
        """Give the action (action_size,) for an observation (observation_size,), or (n, ...) for a batch.

        With `rng` a stochastic controller draws from its distribution; with None it gives the mean.
        """


@runtime_checkable
class Stateful(Protocol):
    """A controller that remembers what it saw, and is told where episodes end."""

    def reset(self) -> None:
        """Forget: an episode is over, or another begins."""


@runtime_checkable
class Critic(Protocol):
    """A controller that also estimates what following it brings: discounted return and cost."""

    def value(self, observation: ArrayLike) -> NDArray[Any]:
        """Give the expected discounted return, a number or (n,)."""

    def cost_value(self, observation: ArrayLike) -> NDArray[Any]:
        """Give the expected discounted cost, a number or (n,)."""


@runtime_checkable
class Predictor(Protocol):
    """A controller that also predicts what one action brings: the paper's context networks."""

    def predict(self, observation: ArrayLike, action: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Give reward and cost of the next step, numbers or (n,) each."""
