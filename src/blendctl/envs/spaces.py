"""Declare the observation and action spaces of a world."""

from __future__ import annotations

from typing import cast

import numpy as np
from gymnasium.spaces import Box, Space

from blendctl.arrays import FloatArray
from blendctl.envs.compiled_task import CompiledTask
from blendctl.lidar_ring import LIDAR_BINS

# Gymnasium warns of infinite bounds; a velocity beyond 1e10 ends the episode, so no sensor gets this far
SENSOR_LIMIT = 1e15


def observation_space(plan: CompiledTask) -> Space[FloatArray]:
    """Return the space: sensors practically without bounds, then lidars in [0, 1]."""
    low = np.full(plan.obs_size, -SENSOR_LIMIT)
    high = np.full(plan.obs_size, SENSOR_LIMIT)
    lidars = LIDAR_BINS * plan.sights.shape[0]
    low[-lidars:], high[-lidars:] = 0.0, 1.0
    return cast(Space[FloatArray], Box(low, high, dtype=np.float64))


def action_space(act_size: int) -> Space[FloatArray]:
    """Return the space: all motors from -1 to 1."""
    return cast(Space[FloatArray], Box(-1.0, 1.0, (act_size,), dtype=np.float64))
