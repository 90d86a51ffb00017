"""Worlds in lock-step with two controllers whose best choice is known by hand, for the tests of look-ahead."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from blendctl.controllers import as_controller

LENGTH = 50  # control steps per episode, ended by the time limit
HOLD = 5  # the danger changes after so many steps


class Corridor(gymnasium.Env):
    """Reward is the speed; in danger (first entry 1, else -1) it is half of the speed, and the cost is the speed.

    The danger does not depend on the actions. So the fast controller is better where there is no danger, and in danger
    if the cost weight is below 0.5. Fast and slow differ by 0.9 in speed.
    """

    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(0, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.clock = 0
        return self._observe(), {"cost": 0.0}

    def _observe(self):
        if self.clock % HOLD == 0:
            self.danger = float(np.sign(self.np_random.uniform(-1, 1)))
        return np.array([self.danger, 0.0], np.float32)

    def step(self, action):
        speed = float(action[0])
        danger = self.danger > 0
        reward, cost = speed * (0.5 if danger else 1.0), speed * danger
        self.clock += 1
        return self._observe(), reward, False, self.clock >= LENGTH, {"cost": cost}


class BranchingCorridor(SyncVectorEnv):
    """Corridors with `snapshot` and `restore`, as the built-in worlds have them."""

    envs: Any

    def snapshot(self):
        return [copy.deepcopy((env.clock, env.danger, env.np_random)) for env in self.envs]

    def restore(self, snapshots):
        for env, state in zip(self.envs, snapshots, strict=True):
            env.clock, env.danger, env.np_random = copy.deepcopy(state)
        self._autoreset_envs[:] = False


def corridor(*, branching=True, mode=AutoresetMode.SAME_STEP, worlds=16):
    """Make corridors in lock-step."""
    kind = BranchingCorridor if branching else SyncVectorEnv
    return kind([Corridor] * worlds, autoreset_mode=mode)


def fast(observation):
    """Drive at full speed."""
    return [1.0]


def slow(observation):
    """Drive at a tenth of the speed."""
    return [0.1]


def drivers():
    """Return the fast and the slow controller."""
    return [as_controller(fast), as_controller(slow)]
