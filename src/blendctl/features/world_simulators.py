"""Simulate futures in the worlds of blendctl: copies of the true ones, or rebuilt from their observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray, IndexArray
from blendctl.envs import SingleWorld, VectorWorld
from blendctl.envs.batch import WorldBatch
from blendctl.envs.catalog import as_task
from blendctl.envs.lidar_scene import rebuild_worlds
from blendctl.envs.mersenne import seed_generator
from blendctl.envs.scene_memory import check_rebuildable, open_memory
from blendctl.envs.tasks import Task
from blendctl.envs.world_state import RUNNING, WorldState, copy_worlds
from blendctl.errors import InputError
from blendctl.features.compiled_futures import compiled_actors, drive_worlds
from blendctl.features.futures import Branches, FutureDrivers, Rng, Simulator

_TRANSPARENT = (wrappers.OrderEnforcing, wrappers.PassiveEnvChecker, wrappers.RecordEpisodeStatistics)


def own_world(env: Any) -> SingleWorld | VectorWorld | None:
    """Return the world of blendctl below wrappers that change nothing, None if there is none."""
    layer = env
    while isinstance(layer, gymnasium.Wrapper):
        if not isinstance(layer, _TRANSPARENT) and not getattr(layer, "only_watches", False):
            return None
        layer = layer.env
    return layer if isinstance(layer, SingleWorld | VectorWorld) else None


class OwnWorlds(Simulator):
    """Futures of the worlds of blendctl: all of them are rows of one batch, on all cores."""

    copies_driven = True

    def __init__(self, source: WorldBatch, *, threads: int | None = None) -> None:
        self.source, self.threads = source, threads
        self._batch: WorldBatch | None = None

    def open(
        self, observations: FloatArray, rows: IndexArray, seeds: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> Branches:
        self.source.expect_reset()
        return _WorldBranches(self.batch, copy_worlds(self.source.worlds, rows), seeds)

    def batch(self, rows: int) -> WorldBatch:
        """Return a batch that steps `rows` worlds."""
        if self._batch is None or self._batch.num_envs < rows:
            steps = self.source.compiled_task.max_steps
            self._batch = WorldBatch(self.source.task, rows, threads=self.threads, max_steps=steps)
        return self._batch


def rebuilt_worlds(world: Task | str, *, max_steps: int | None, threads: int | None, memory: bool) -> RebuiltWorlds:
    """Return the simulator of a world that is rebuilt from its observations; None uses all cores."""
    task = as_task(world)
    check_rebuildable(task)
    return RebuiltWorlds(WorldBatch(task, 1, threads=1, max_steps=max_steps), threads=threads, memory=memory)


class RebuiltWorlds(Simulator):
    """Futures of worlds that are rebuilt from their observations.

    memory: use all observations of a world's episode.
    """

    def __init__(self, source: WorldBatch, *, threads: int | None, memory: bool) -> None:
        self.source, self._worlds = source, OwnWorlds(source, threads=threads)
        self._remembers, self._memory = memory, open_memory(source.task, 0)

    def open(
        self, observations: FloatArray, rows: IndexArray, seeds: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> Branches:
        if observations.shape[1:] != self.source.worlds.obs.shape[1:]:
            raise InputError(
                f"the twin's observations have {self.source.worlds.obs.shape[1]} entries, actually: "
                f"{observations.shape[1]}; it must be of the world that is driven"
            )
        # Futures of a world with the same seed begin in the same rebuilt world.
        pairs, place = np.unique(np.stack([rows, seeds], axis=1), axis=0, return_inverse=True)
        rngs = [np.random.default_rng(seed) for _, seed in pairs]
        if self._remembers:
            if len(self._memory) != len(observations):
                self._memory = open_memory(self.source.task, len(observations))
            self._memory.observe(observations, steps)
        at = pairs[:, 0]
        memory = self._memory if self._remembers else None
        rebuilt = rebuild_worlds(self.source, observations[at], steps[at], rngs, memory=memory, rows=at)
        return _WorldBranches(self._worlds.batch, copy_worlds(rebuilt, place.ravel()), seeds)


class _WorldBranches(Branches):
    def __init__(
        self,
        batch_of: Callable[[int], WorldBatch],
        worlds: WorldState,
        seeds: NDArray[np.int64] | None = None,
    ) -> None:
        self.batch_of, self.worlds, self._batch = batch_of, worlds, batch_of(len(worlds.phase))
        if seeds is not None:
            for row, seed in enumerate(seeds):
                seed_generator(worlds.key[row], worlds.pos[row], int(seed))

    @property
    def observations(self) -> FloatArray:
        return self.worlds.obs

    @property
    def running(self) -> BoolArray:
        return np.asarray(self.worlds.phase == RUNNING)

    def step(self, actions: FloatArray) -> tuple[FloatArray, FloatArray]:
        running, rows = self.running, len(actions)
        out = self._batch.step(np.ascontiguousarray(actions), worlds=self.worlds)
        return running * out.reward[:rows], running * out.cost[:rows]

    def drive(
        self, drivers: FutureDrivers, arm: IndexArray, steps: int, *, block: int, rng: Rng, discount: float
    ) -> FloatArray | None:
        act_size = self._batch.act_size
        actors = compiled_actors(drivers.controllers, self.worlds, act_size)
        if actors is None:
            return None
        noise = drivers.noise(steps, (block, act_size), rng)
        return drive_worlds(self._batch, self.worlds, actors, arm, noise, discount=discount)

    def branch(self, index: IndexArray) -> Branches:
        return _WorldBranches(self.batch_of, copy_worlds(self.worlds, index))
