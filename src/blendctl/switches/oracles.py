"""The oracles: true return and cost of each controller, from the simulator itself.

The look-ahead oracle is the ceiling of all switches that decide as often: it rolls every controller out from the very
state, but the future's randomness (next goals, action noise) is drawn afresh and averaged over a few samples:
it knows the world, not the outcome of its random draws.
"""

from __future__ import annotations

import numpy as np
from gymnasium.vector import AutoresetMode

from blendctl.controllers.adapters import act_rows
from blendctl.envs import VectorWorld
from blendctl.switches.base import FloatArray, RolloutContext, StepInput


class NextStep:
    """Return and cost of the next step, by stepping every controller's action from the frozen state."""

    def __init__(self, context: RolloutContext) -> None:
        self.worlds = context.worlds

    def __call__(self, frame: StepInput) -> FloatArray:
        reward, cost = self.worlds.peek(frame.proposals)[:2]  # (arms, B) each
        return np.stack([reward.T, cost.T], axis=-1)


class Rollouts:
    """Return and cost of the next `horizon` steps, by rolling every controller out `samples` times.

    All controllers, samples and worlds are one batch of worlds. Sample j has the same draws of goals for every
    controller, which makes the comparison less noisy; no draw is that of the real future.
    """

    def __init__(self, context: RolloutContext, *, horizon: int, samples: int, gamma: float = 1.0) -> None:
        self.context, self.horizon, self.gamma = context, horizon, gamma
        self.rng = np.random.default_rng(context.seed)
        self.shape = (context.arms, samples, context.worlds.num_envs)
        self.futures = VectorWorld(
            context.worlds.task,
            context.arms * samples * context.worlds.num_envs,
            threads=context.worlds.threads,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=context.worlds.batch.compiled_task.max_steps,
        )

    def __call__(self, frame: StepInput) -> FloatArray:
        arms, samples, n = self.shape
        self.futures.restore(self.context.worlds.snapshot() * (arms * samples))
        seeds = self.rng.integers(2**32, size=(samples, n))
        for row, seed in enumerate(np.tile(seeds.ravel(), arms)):
            self.futures.batch.seed(row, int(seed))
        noise = int(self.rng.integers(2**31))
        streams = [np.random.default_rng(noise) for _ in range(arms)]
        per_arm = samples * n

        def everyone(observations: FloatArray) -> FloatArray:
            actions = [
                act_rows(controller, observations[k * per_arm : (k + 1) * per_arm], streams[k])
                for k, controller in enumerate(self.context.controllers)
            ]
            return np.asarray(np.clip(np.concatenate(actions), -1.0, 1.0), np.float64)

        reward, cost = self.futures.peek([everyone], horizon=self.horizon, gamma=self.gamma)[:2]  # (1, rows)
        return np.stack([values.reshape(self.shape).mean(axis=1).T for values in (reward, cost)], axis=-1)
