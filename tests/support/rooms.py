"""An environment without a cost whose observations are not vectors, and controllers for it and for corridors."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete


class Rooms(gymnasium.Env):
    """Ten steps in one of two rooms. The reward is 1 for the action that has the room's number; there is no cost."""

    observation_space = Dict({"room": Discrete(2), "map": Box(-1, 1, (2, 2))})
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock = 0
        return self._look(), {}

    def _look(self):
        self.room = int(self.np_random.integers(2))
        return {"room": self.room, "map": self.np_random.uniform(-1, 1, (2, 2)).astype(np.float32)}

    def step(self, action):
        assert isinstance(action, int), "a discrete action is a whole number"
        reward, self.clock = float(action == self.room), self.clock + 1
        return self._look(), reward, False, self.clock >= 10, {}


def always_0(observation):
    assert set(observation) == {"room", "map"}
    return 0


def always_1(observation):
    return 1


def fast(observation):
    return [1.0]


def slow(observation):
    return [0.1]
