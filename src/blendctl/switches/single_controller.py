"""One controller drives all the time."""

from __future__ import annotations

import numpy as np

from blendctl.arrays import ArmArray
from blendctl.switches.base import StepInput, Switch


class SingleController(Switch):
    """Let controller `arm` drive; -1 is the last."""

    def __init__(self, arm: int = 0) -> None:
        self.arm = arm

    def choose(self, frame: StepInput) -> ArmArray:
        arms, worlds = frame.proposals.shape[:2]
        return np.full(worlds, arms - 1 if self.arm == -1 else self.arm)
