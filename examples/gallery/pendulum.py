"""Pendulum-v1: energy shaping swings the pendulum up and does not catch it; a linear regulator only catches it.

With `make_with_costs` and `brake`: three controllers, and three objectives, the return, the speed and the torque.
"""

import gymnasium
import numpy as np

TORQUE, SPEED_LIMIT = 2.0, 5.0


def energy(observation):
    """Pump energy until it is that of the upright position."""
    cosine, _, speed = observation
    lacking = 15.0 * (1.0 - cosine) - speed**2 / 2.0
    return np.clip([0.4 * lacking * np.sign(speed + 1e-9)], -TORQUE, TORQUE)


def regulator(observation):
    """Hold the upright position: linear feedback of angle and speed."""
    cosine, sine, speed = observation
    return np.clip([-(14.0 * np.arctan2(sine, cosine) + 4.0 * speed)], -TORQUE, TORQUE)


def brake(observation):
    """Slow the pendulum down."""
    return np.clip([-1.0 * observation[2]], -TORQUE, TORQUE)


def speeding(observation, action, info):
    """Cost of a step: faster than the limit."""
    return float(abs(observation[2]) > SPEED_LIMIT)


class Costs(gymnasium.Wrapper):
    """Report the costs of speed and torque, and their sum."""

    def step(self, action):
        """Step, and add the costs."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        torque = float(np.clip(action, -TORQUE, TORQUE)[0])
        costs = {"cost_speed": speeding(observation, action, info), "cost_torque": (torque / TORQUE) ** 2}
        return observation, reward, terminated, truncated, info | costs | {"cost": sum(costs.values())}


def make_with_costs():
    """Return the pendulum with its costs."""
    return Costs(gymnasium.make("Pendulum-v1"))
