"""An offline-trained switch: linear fitted Q iteration on logged rollouts, frozen before the comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.errors import InputError
from blendctl.switches.base import RolloutContext, StepInput
from blendctl.switches.log_collection import Log
from blendctl.switches.state_features import describe_states


@dataclass(frozen=True)
class Fitted:
    """A linear model of the future: (return, cost) = ((state - shift) / scale) @ weights[arm]."""

    shift: FloatArray  # (size,)
    scale: FloatArray  # (size,)
    weights: FloatArray  # (arms, size, 2)

    def __call__(self, states: FloatArray) -> FloatArray:
        """Return (B, arms, 2) for described states (B, size)."""
        return np.asarray(np.einsum("bs,ksj->bkj", (states - self.shift) / self.scale, self.weights))

    def to_dict(self) -> dict[str, Any]:
        """Return the model as JSON data."""
        return {"shift": self.shift.tolist(), "scale": self.scale.tolist(), "weights": self.weights.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Fitted:
        """Read the result of `to_dict`."""
        return cls(*(np.array(data[name], np.float64) for name in ("shift", "scale", "weights")))


def fit(log: Log, *, arms: int, every: int, cost_weight: float, ridge: float, passes: int = 60) -> Fitted:
    """Fit return and cost of driving `every` steps with each arm and greedily from then on.

    Greedy means the arm with the greatest return - cost_weight * cost. Each arm's model is a ridge regression
    on the windows that it drove, of their sums plus the model's estimate after them.
    """
    shift, scale = log.state.mean(axis=0), log.state.std(axis=0)
    constant = scale < 1e-9
    shift[constant], scale[constant] = 0.0, 1.0  # the column of ones stays
    state, after = (log.state - shift) / scale, (log.after - shift) / scale
    solvers: list[NDArray[np.float64]] = []
    rows = [np.flatnonzero(log.arm == arm) for arm in range(arms)]
    for arm, chosen in enumerate(rows):
        if len(chosen) < 10:
            raise InputError(f"controller {arm} drove only {len(chosen)} logged windows; log longer rollouts")
        x = state[chosen]
        gram = x.T @ x + ridge * len(chosen) * np.diag(~constant)  # the constant is not shrunk
        solvers.append(np.linalg.lstsq(gram, x.T, rcond=None)[0])
    weights = np.zeros((arms, state.shape[1], 2))
    step = log.discount**every
    for _ in range(passes):
        expected = np.einsum("bs,ksj->bkj", after, weights)
        greedy = (expected @ np.array([1.0, -cost_weight])).argmax(axis=1)
        target = log.sums + step * expected[np.arange(len(after)), greedy]
        weights = np.stack([solvers[arm] @ target[rows[arm]] for arm in range(arms)])
    return Fitted(shift, scale, weights)


class FittedAhead:
    """The fitted model as a foresight."""

    def __init__(self, context: RolloutContext, model: Fitted) -> None:
        self.controllers, self.model = context.controllers, model

    def __call__(self, frame: StepInput) -> FloatArray:
        return self.model(describe_states(self.controllers, frame.observations))
