"""Declare what is observed and what can be done, as Gymnasium spaces."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box

from blendctl.envs.plan import LIDAR_BINS, Plan

__all__ = ["observation_space", "action_space"]


def observation_space(plan: Plan) -> Box:
    """Sensors without bounds, then lidars in [0, 1]."""
    low = np.full(plan.obs_size, -np.inf)
    high = np.full(plan.obs_size, np.inf)
    lidars = LIDAR_BINS * plan.sights.shape[0]
    low[-lidars:], high[-lidars:] = 0.0, 1.0
    return Box(low, high, dtype=np.float64)


def action_space(act_size: int) -> Box:
    """Both motors from -1 to 1."""
    return Box(-1.0, 1.0, (act_size,), dtype=np.float64)
