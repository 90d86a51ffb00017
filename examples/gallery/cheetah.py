"""HalfCheetah-v5 with a speed limit: a linear policy at full and at reduced torque."""

import json
from pathlib import Path

import numpy as np

SPEED_LIMIT = 5.0  # m/s
_POLICY = json.loads(Path(__file__).with_suffix(".json").read_text())
_GAIN, _OFFSET = np.array(_POLICY["gain"]), np.array(_POLICY["offset"])


def sprint(observation):
    """Run as fast as the policy can without falling."""
    return 0.95 * _policy(observation)


def jog(observation):
    """Apply less torque."""
    return 0.8 * _policy(observation)


def _policy(observation):
    return np.clip(np.asarray(observation) @ _GAIN.T + _OFFSET, -1.0, 1.0)


def speeding(observation, action, info):
    """Cost of a step: faster than the limit."""
    return float(info["x_velocity"] > SPEED_LIMIT)
