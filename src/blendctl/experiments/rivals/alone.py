"""One controller drives all the time."""

from __future__ import annotations

import numpy as np

from blendctl.experiments.rivals.base import FloatArray, Frame, Rival, Seat, one_hot

__all__ = ["Alone"]


class Alone(Rival):
    """Let controller `arm` drive; -1 is the last."""

    def __init__(self, seat: Seat, *, arm: int) -> None:
        self.weights = one_hot(np.full(seat.worlds.num_envs, arm), seat.arms)

    def mix(self, frame: Frame) -> FloatArray:
        return self.weights
