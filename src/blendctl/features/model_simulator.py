"""Futures from a user's model: one function that returns the sums of reward and cost of every controller."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller
from blendctl.errors import InputError

# (observation, controllers, horizon, rng) -> returns (controllers,), costs (controllers,)
Model = Callable[[Any, Sequence[Controller], int, np.random.Generator], tuple[ArrayLike, ArrayLike]]


class ModelSimulator:
    """Call a model once per future and world, each with its own random generator."""

    copies_driven = False

    def __init__(self, model: Model) -> None:
        self.model = model

    def sample(
        self,
        observations: FloatArray,
        controllers: Sequence[Controller],
        *,
        horizon: int,
        seeds: NDArray[np.int64],
        deadline: float | None = None,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return returns and costs (n, controllers, 1, samples) for seeds (samples, n); fewer samples past a deadline.

        Return None if no sample was ready in time.
        """
        done: list[FloatArray] = []  # (2, n, controllers) per sample
        for row in seeds:
            if deadline is not None and done and time.perf_counter() > deadline:
                break
            pairs = zip(observations, row, strict=True)
            sample = np.stack([self._call(one, controllers, horizon, int(seed)) for one, seed in pairs], axis=1)
            if deadline is not None and not done and time.perf_counter() > deadline:
                return None
            done.append(sample)
        returns, costs = np.stack(done, axis=-1)[:, :, :, None]
        return returns, costs

    def _call(self, observation: Any, controllers: Sequence[Controller], horizon: int, seed: int) -> FloatArray:
        result = self.model(observation, controllers, horizon, np.random.default_rng(seed))
        wanted = (2, len(controllers))
        try:
            sums = np.array(result, np.float64)
        except (TypeError, ValueError):
            sums = np.zeros(0)
        if sums.shape != wanted or not np.isfinite(sums).all():
            raise InputError(
                f"the model must return (returns, costs), {wanted[1]} finite numbers each, one per controller; "
                f"actually: {result!r}"
            )
        return sums
