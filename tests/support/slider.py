"""Worlds in lock-step whose best policy is known by hand, for the tests of training."""

from __future__ import annotations

import json

import numpy as np

from blendctl.controllers import identity_encoding

LENGTH = 20  # steps per episode, ended by the time limit


class Slider:
    """Reward: a0 - (a1 - 0.3 x)^2; cost: (a0 + 1) / 2, with x = ±1 the observation's first entry.

    Return alone is best at a0 = 1, a1 = 0.3 x. With cost limit C per episode the best a0 is 2 C / LENGTH - 1.
    """

    encoding = identity_encoding(3)
    action_size = 2

    def __init__(self, worlds: int, *, poison_at: int | None = None) -> None:
        self.num_envs = worlds
        self.poison_at = poison_at  # step from which rewards are NaN
        self.steps = 0
        self.time = np.zeros(worlds, np.int64)
        self.obs = np.zeros((worlds, 3))

    def reset(self, *, seed=None, options=None):
        if options:
            self.time[options["reset_mask"]] = 0
            return self.obs.copy(), {}
        self.rng = np.random.default_rng(seed)
        self.time = np.zeros(self.num_envs, np.int64)
        self._observe()
        return self.obs.copy(), {}

    def _observe(self):
        self.obs = self.rng.normal(size=(self.num_envs, 3))
        self.obs[:, 0] = np.sign(self.obs[:, 0])

    def step(self, actions):
        assert np.abs(actions).max() <= 1.0
        reward = actions[:, 0] - (actions[:, 1] - 0.3 * self.obs[:, 0]) ** 2
        cost = (actions[:, 0] + 1.0) / 2.0
        self.steps += 1
        if self.poison_at is not None and self.steps >= self.poison_at:
            reward = reward * np.nan
        self.time += 1
        self._observe()
        truncated = self.time >= LENGTH
        infos = {"cost": cost}
        if truncated.any():
            infos["final_obs"] = self.obs.copy()
            self._observe()
            self.time[truncated] = 0
        return self.obs.copy(), reward, np.zeros(self.num_envs, bool), truncated, infos

    def snapshot(self):
        state = {"rng": self.rng.bit_generator.state, "time": self.time.tolist(), "obs": self.obs.tolist()}
        return [json.dumps(state).encode()] + [b""] * (self.num_envs - 1)

    def restore(self, snapshots):
        state = json.loads(snapshots[0])
        self.rng = np.random.default_rng()
        self.rng.bit_generator.state = state["rng"]
        self.time, self.obs = np.array(state["time"]), np.array(state["obs"])
