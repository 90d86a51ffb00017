"""Estimate how well a network could choose from an observation: by the simulator, from what the observation shows.

Worlds are rebuilt from observations; what an observation hides, such as the rotation of a box or an object behind
another one, is drawn. The simulator then evaluates the actions of all controllers in each of them. Its choices by the
means over the draws, with the smallest loss, are wrong only because of what is hidden or badly drawn. That is no bound:
a rule that ignores the cost may be correct more often, at a larger loss.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.envs.catalog import find_task
from blendctl.envs.lidar_scene import rebuild_worlds
from blendctl.envs.scene_memory import MAPPED_ROBOTS
from blendctl.envs.vector import VectorWorld
from blendctl.training.context_data import Drives
from blendctl.training.context_evaluation import Choices, judge_choices

STATES = 2000  # at most, over all worlds
DRAWS = 8  # worlds that are rebuilt from each observation


def observation_limit(
    drives: Drives, *, world: str, seed: int, on_progress: Callable[[float], None] = lambda share: None
) -> Choices | None:
    """Return the choices of the simulator on some states of the drives; None if the world cannot be rebuilt."""
    if find_task(world).robot not in MAPPED_ROBOTS:
        return None
    steps, n = drives.driver.shape
    every = max(1, steps * n // STATES)
    times = np.arange(every // 2, steps, every)
    begun = _episode_steps(drives)
    predicted: FloatArray = np.zeros((len(times), n, *drives.truth.shape[2:]))
    rng = np.random.default_rng([seed, 5])
    with closing(VectorWorld(world, n, threads=1)) as worlds:
        worlds.reset(seed=seed)
        for done, time in enumerate(times):
            actions = np.clip(drives.proposals[time].astype(np.float64).transpose(1, 0, 2), -1.0, 1.0)
            for _ in range(DRAWS):
                observations = drives.observations[time].astype(np.float64)
                rebuilt = rebuild_worlds(worlds.batch, observations, begun[time], rng.spawn(n))
                for name, values in rebuilt._asdict().items():
                    if name not in ("key", "pos"):  # the random generators of the worlds
                        getattr(worlds.batch.worlds, name)[:] = values
                reward, cost = worlds.peek(actions)[:2]
                predicted[done] += np.stack([reward.T, cost.T], axis=-1) / DRAWS
            on_progress((done + 1) / len(times))
    arms = drives.truth.shape[2]
    return judge_choices(predicted.reshape(-1, arms, 2), drives.truth[times].reshape(-1, arms, 2).astype(np.float64))


def _episode_steps(drives: Drives) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the control steps since the episode began, (steps, worlds)."""
    out = np.zeros(drives.ended.shape, np.int64)
    for time in range(1, len(out)):
        out[time] = np.where(drives.ended[time - 1], 0, out[time - 1] + 1)
    return out
