"""Pendulum-v1: energy shaping swings the pendulum up and does not catch it; a linear regulator catches it only."""

import numpy as np

TORQUE, SPEED_LIMIT = 2.0, 5.0


def energy(observation):
    """Pump energy until it is that of the upright position."""
    cosine, _, speed = observation
    lacking = 15.0 * (1.0 - cosine) / 2.0 * 2.0 - speed**2 / 2.0
    return np.clip([0.4 * lacking * np.sign(speed + 1e-9)], -TORQUE, TORQUE)


def regulator(observation):
    """Hold the upright position: linear feedback of angle and speed."""
    cosine, sine, speed = observation
    return np.clip([-(14.0 * np.arctan2(sine, cosine) + 4.0 * speed)], -TORQUE, TORQUE)


def speeding(observation, action, info):
    """Cost of a step: faster than the limit."""
    return float(abs(observation[2]) > SPEED_LIMIT)
