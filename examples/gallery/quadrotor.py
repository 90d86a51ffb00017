"""A quadrotor of rotorpy (Crazyflie) flies to a person: it should arrive soon, and not fly fast near the person."""

import gymnasium
import numpy as np
from rotorpy.learning.quadrotor_reward_functions import hover_reward
from rotorpy.vehicles.crazyflie_params import quad_params
from rotorpy.vehicles.multirotor import Multirotor

SUBSTEPS, TIME_STEP = 5, 0.01  # s, of the velocity controller inside
NEAR, SPEED_LIMIT = 1.0, 0.6  # m, m/s


class Approach(gymnasium.Env):
    """Start up to 3 m away in every direction; the action is a velocity, the reward is rotorpy's for hovering there."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (6,))
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (3,))

    def __init__(self):
        self.vehicle = Multirotor(quad_params, control_abstraction="cmd_vel", enable_ground=False)

    def reset(self, *, seed=None, options=None):
        """Begin at rest."""
        super().reset(seed=seed)
        self.state = {name: np.array(value, np.float64) for name, value in self.vehicle.initial_state.items()}
        self.state["x"] = self.np_random.uniform(-3.0, 3.0, 3)
        self.state["v"] = np.zeros(3)
        return self._observe(), {}

    def step(self, action):
        """Fly with a commanded velocity."""
        command = {"cmd_v": np.asarray(action, np.float64)}
        for _ in range(SUBSTEPS):
            self.state = self.vehicle.step(self.state, command, TIME_STEP)
        observation = self._observe()
        distance, speed = np.linalg.norm(self.state["x"]), np.linalg.norm(self.state["v"])
        info = {"cost": float(distance < NEAR and speed > SPEED_LIMIT)}
        return observation, float(hover_reward(observation, action)), False, False, info

    def _observe(self):
        return np.concatenate([self.state["x"], self.state["v"]]).astype(np.float32)


def dash(observation):
    """Fly to the person at up to 2 m/s."""
    return _towards(observation, 2.0)


def creep(observation):
    """Fly to the person at up to 0.5 m/s."""
    return _towards(observation, 0.5)


def _towards(observation, speed):
    wanted = -2.0 * np.asarray(observation[:3], np.float64)
    return wanted * min(1.0, speed / max(np.linalg.norm(wanted), 1e-9))
