"""The oracles: true return and cost of each controller, from the simulator itself.

The look-ahead oracle is the ceiling of all switches that decide as often: it rolls every controller out from the exact
state. The future's randomness (next goals, action noise) is drawn again and averaged over a few samples: the oracle
knows the world, not the outcome of its random draws.
"""

from __future__ import annotations

import numpy as np
from gymnasium.vector import AutoresetMode

from blendctl.arrays import FloatArray
from blendctl.controllers.adapters import act_rows
from blendctl.envs import VectorWorld
from blendctl.features.futures import FutureDrivers, RolloutPlan, remember, roll_out
from blendctl.features.simulators import CopiedEnvironment, action_limits
from blendctl.switches.base import RolloutContext, StepInput


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
    controller, which makes the comparison less noisy; the draws differ from those of the real future.
    """

    def __init__(self, context: RolloutContext, *, horizon: int, samples: int) -> None:
        self.context, self.horizon = context, horizon
        self.rng = np.random.default_rng(context.seed)
        self.shape = (context.arms, samples, context.worlds.num_envs)
        self.copies: CopiedEnvironment | None = None
        if not isinstance(context.worlds, VectorWorld):
            self.copies = CopiedEnvironment(context.worlds, cost=None)
            self.drivers = FutureDrivers(context.controllers, action_limits(context.worlds))
            return
        self.futures = VectorWorld(
            context.worlds.task,
            context.arms * samples * context.worlds.num_envs,
            threads=context.worlds.threads,
            autoreset_mode=AutoresetMode.DISABLED,
            max_episode_steps=context.worlds.batch.compiled_task.max_steps,
        )

    def __call__(self, frame: StepInput) -> FloatArray:
        arms, samples, n = self.shape
        if self.copies is not None:
            return self._roll_copies(self.copies, frame)
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

        reward, cost = self.futures.peek([everyone], horizon=self.horizon)[:2]  # (1, rows)
        return np.stack([values.reshape(self.shape).mean(axis=1).T for values in (reward, cost)], axis=-1)

    def _roll_copies(self, copies: CopiedEnvironment, frame: StepInput) -> FloatArray:
        arms, samples, n = self.shape
        seeds = np.tile(self.rng.integers(2**32, size=samples * n), arms)
        branches = copies.open(frame.observations, np.tile(np.arange(n), arms * samples), seeds, frame.episode_step)
        plan = RolloutPlan(1, self.horizon, 1.0, "same", stochastic=True)
        noise = int(self.rng.integers(2**31))
        futures = roll_out(
            branches,
            self.drivers.open(remember(self.context.controllers), len(seeds)),
            plan,
            samples=samples,
            seed=noise,
        )
        assert futures is not None  # there is no deadline
        return np.stack([values[:, :, 0].mean(axis=2) for values in (futures.returns, futures.costs)], axis=-1)
