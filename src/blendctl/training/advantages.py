"""Generalised advantage estimates, with time limits told apart from real ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["advantages"]

Array = NDArray[np.float32]


def advantages(
    signals: Array,  # (steps, worlds) rewards or costs
    values: Array,  # (steps, worlds) of the state before the step
    *,
    next_values: Array,  # (steps, worlds) of the state the step led to, before any reset
    terminated: NDArray[np.bool_],  # (steps, worlds) the episode ended there: nothing follows
    ended: NDArray[np.bool_],  # (steps, worlds) terminated, or cut off by the time limit
    discount: float,
    gae: float,
) -> tuple[Array, Array]:
    """Give advantages and the critics' targets, (steps, worlds) each.

    A time limit is no end: the value of the state it cut off still counts, but the
    next row belongs to another episode, so that no later surprise leaks back over it.

    >>> ones, zeros = np.ones((3, 1), np.float32), np.zeros((3, 1), np.float32)
    >>> cut = np.array([[False], [False], [True]])
    >>> def run(terminated):
    ...     return advantages(ones, zeros, next_values=5 * cut.astype(np.float32), terminated=terminated,
    ...                       ended=cut, discount=0.5, gae=1.0)[0].ravel().tolist()
    >>> run(terminated=cut & False)  # a time limit: 1 + 0.5 (1 + 0.5 (1 + 0.5 * 5))
    [2.375, 2.75, 3.5]
    >>> run(terminated=cut)  # a real end: nothing follows
    [1.75, 1.5, 1.0]
    """
    surprise = signals + discount * np.where(terminated, 0.0, next_values) - values
    out = np.empty_like(values)
    running = np.zeros_like(values[0])
    for t in range(len(values) - 1, -1, -1):
        running = surprise[t] + discount * gae * np.where(ended[t], 0.0, running)
        out[t] = running
    return out, out + values
