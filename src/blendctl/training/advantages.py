"""Generalised advantage estimation (GAE) that bootstraps at time limits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def estimate_advantages(
    signals: Array,  # (steps, worlds) rewards or costs
    values: Array,  # (steps, worlds) of the state before the step
    *,
    next_values: Array,  # (steps, worlds) of the state after the step, before any reset
    terminated: NDArray[np.bool_],  # (steps, worlds) the episode terminated: no value follows
    ended: NDArray[np.bool_],  # (steps, worlds) terminated or truncated
    discount: float,
    gae: float,
) -> tuple[Array, Array]:
    """Return advantages and the targets of the critics, (steps, worlds) each.

    A time limit does not terminate an episode: the value of its last state still counts. The next row belongs to
    another episode, so no later residual is carried back over the limit.

    >>> ones, zeros = np.ones((3, 1), np.float32), np.zeros((3, 1), np.float32)
    >>> last = np.array([[False], [False], [True]])
    >>> def run(terminated):
    ...     return estimate_advantages(ones, zeros, next_values=5 * last.astype(np.float32), terminated=terminated,
    ...                                ended=last, discount=0.5, gae=1.0)[0].ravel().tolist()
    >>> run(terminated=last & False)  # a time limit: 1 + 0.5 (1 + 0.5 (1 + 0.5 * 5))
    [2.375, 2.75, 3.5]
    >>> run(terminated=last)  # terminated: no value follows
    [1.75, 1.5, 1.0]
    """
    residual = signals + discount * np.where(terminated, 0.0, next_values) - values
    out = np.empty_like(values)
    running = np.zeros_like(values[0])
    for t in range(len(values) - 1, -1, -1):
        running = residual[t] + discount * gae * np.where(ended[t], 0.0, running)
        out[t] = running
    return out, out + values
