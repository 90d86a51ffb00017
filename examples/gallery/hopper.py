"""Hopper-v5 with a speed limit: a linear policy, and the same policy with an overstated speed."""

import json
from pathlib import Path

import numpy as np

SPEED_LIMIT = 2.5  # m/s
FORWARD = 5  # entry of the observation with the forward speed
_POLICY = json.loads(Path(__file__).with_suffix(".json").read_text())
_GAIN, _OFFSET = np.array(_POLICY["gain"]), np.array(_POLICY["offset"])


def hurry(observation):
    """Hop as fast as the policy can; it falls after some 480 steps."""
    return np.clip(np.asarray(observation) @ _GAIN.T + _OFFSET, -1.0, 1.0)


def amble(observation):
    """Hop more slowly; alone it loses its balance and falls after some 130 steps."""
    seen = np.array(observation, np.float64)
    seen[..., FORWARD] += 1.2
    return hurry(seen)


def speeding(observation, action, info):
    """Cost of a step: faster than the limit."""
    return float(info["x_velocity"] > SPEED_LIMIT)
