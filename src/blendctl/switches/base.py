"""What a rival is: a way to drive many worlds with the same controllers, step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendctl.controllers import Controller
from blendctl.envs import VectorWorld

__all__ = ["StepInput", "Switch", "RolloutContext", "one_hot"]

FloatArray = NDArray[np.float64]
ArmArray = NDArray[np.intp]


@dataclass(frozen=True)
class RolloutContext:
    """What a rival is given when it takes its seat in B worlds."""

    controllers: Sequence[Controller]  # performant first, safe last
    worlds: VectorWorld  # B of them; only oracles may look inside
    seed: int  # of the rival's own randomness

    @property
    def arms(self) -> int:
        """How many controllers there are."""
        return len(self.controllers)


@dataclass(frozen=True)
class StepInput:
    """What can be known before a step in B worlds."""

    step: int  # 0, 1, ...
    observations: FloatArray  # (B, observation_size)
    proposals: FloatArray  # (arms, B, action_size) what each controller would do


class Switch(ABC):
    """A way to drive. It answers every frame with weights, of which a switch has a single 1."""

    @abstractmethod
    def mix(self, frame: StepInput) -> FloatArray:
        """Give the weight of every controller's action, (B, arms), each row >= 0 with sum 1."""

    def learn(self, reward: FloatArray, cost: FloatArray, *, ended: bool) -> None:  # noqa: B027  # most learn nothing
        """Hear what the step brought, (B,) each; `ended` if it was some episode's last."""


def one_hot(arm: ArmArray, arms: int) -> FloatArray:
    """Give the weights (B, arms) of a switch to arm (B,).

    >>> one_hot(np.array([1, 0]), 2)
    array([[0., 1.],
           [1., 0.]])
    """
    return np.asarray(np.eye(arms)[arm])
