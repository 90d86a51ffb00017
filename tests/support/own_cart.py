"""Blend two controllers in an environment of the user, which draws its step as a grey level."""

import pytest

from blendctl.cli import main

FILE = """
import gymnasium
import numpy as np


class Cart(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (3,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}
    dt = 0.1

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v, self.now = 0.0, float(self.np_random.uniform(-0.1, 0.1)), 0
        return np.array([self.x, self.v, 1.0], np.float32), {}

    def step(self, action):
        self.now += 1
        self.v = 0.9 * self.v + float(action[0]) + 0.1 * float(self.np_random.normal())
        self.x += 0.1 * self.v
        return np.array([self.x, self.v, 1.0], np.float32), 0.1 * self.v, False, False, {"cost": float(self.v > 2.0)}

    def render(self):
        return np.full((48, 64, 3), 4 * self.now, np.uint8)


class Blind(Cart):
    metadata = {"render_modes": []}


def fast(observation):
    return [0.5]


def slow(observation):
    return [0.1]
"""


def blend_cart(out, *more, env="Cart", names=("fast", "slow"), frames=13, code=0):
    """Run `blendctl blend` for two episodes of 60 steps; return the output directory."""
    out.mkdir(parents=True, exist_ok=True)
    file = out.with_name(f"{out.name}.py")
    file.write_text(FILE)
    words = ["blend", f"{file}:{env}", "--controllers", f"{file}:fast", f"{file}:slow", "--names", *names]
    words += ["--episodes", 2, "--episode-steps", 60, "--seed", 3, "--out", out, *more]
    words += [] if frames is None else ["--frames", frames]
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    assert stopped.value.code == code
    return out
