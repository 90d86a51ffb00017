"""Evaluate actions from earlier states of a world: many at once, on a separate thread.

The outcome of an alternative action is rarely needed at once. So the state is kept and the world continues; when enough
states are collected, one compiled loop steps them, in parallel to the world's own steps.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.envs.batch import name_costs
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.kernels import run_peeks
from blendctl.envs.physics import make_slot
from blendctl.envs.thread_pool import available_cores
from blendctl.envs.world_state import WorldState, empty_worlds

if TYPE_CHECKING:
    from blendctl.envs.single import SingleWorld


class PeekResult(NamedTuple):
    """Outcomes of n alternative actions, in the order in which they were added."""

    reward: FloatArray  # (n,)
    cost: FloatArray  # (n,)
    parts: dict[str, FloatArray]  # "cost_hazards" and so on: (n,)


class DeferredPeeks:
    """Keep up to `size` (state, action) pairs of a world, and evaluate them while the next ones are collected."""

    def __init__(self, world: SingleWorld, *, size: int = 32) -> None:
        batch = world.batch
        self.task, self.compiled_task, self.size = batch.task, batch.compiled_task, size
        self.added = 0  # since the last `start`
        self._source = batch.worlds
        self._slot, self._memory = make_slot(batch.model)
        # Two sets: one is filled while the other is evaluated.
        self._kept = [empty_worlds(batch.compiled_task, batch.model, size) for _ in range(2)]
        self._actions = [np.zeros((1, size, batch.act_size)) for _ in range(2)]
        self._filling = 0
        self._helper = ThreadPoolExecutor(1, "blendctl-peeks") if available_cores() > 1 else None

    @property
    def full(self) -> bool:
        """Whether no more pairs fit before the next `start`."""
        return self.added == self.size

    def add(self, action: FloatArray) -> None:
        """Keep the world's present state, and an action (act,) to be evaluated from it."""
        kept, actions = self.filling
        keep(self._source, 0, kept, self.added)
        actions[0, self.added] = action
        self.added += 1

    @property
    def filling(self) -> tuple[WorldState, FloatArray]:
        """States and actions (1, size, act) of the pairs; a caller that fills them passes their number to `start`."""
        return self._kept[self._filling], self._actions[self._filling]

    def start(self, filled: int | None = None) -> Future[PeekResult]:
        """Begin to evaluate the pairs that were added, or the first `filled`; wait for the earlier result first."""
        (kept, actions), n = self.filling, self.added if filled is None else filled
        self._filling, self.added = 1 - self._filling, 0
        if self._helper is not None:
            return self._helper.submit(self._judge, kept, actions, n)
        done: Future[PeekResult] = Future()
        done.set_result(self._judge(kept, actions, n))
        return done

    def close(self) -> None:
        """Finish the submitted peeks, and end the thread."""
        if self._helper is not None:
            self._helper.shutdown()
            self._helper = None

    def _judge(self, kept: WorldState, actions: FloatArray, n: int) -> PeekResult:
        reward, cost = np.zeros((1, n)), np.zeros((1, n))
        parts = np.zeros((1, n, len(self.task.cost_names)))
        counter = np.zeros(1, dtype=np.int64)
        some = WorldState._make(array[:n] for array in kept)
        # The loop is compiled for contiguous arrays, as in the worlds' own peeks.
        judged = np.ascontiguousarray(actions[:, :n])
        run_peeks(self.compiled_task, self._slot, some, judged, SUBSTEPS, reward, parts, cost, counter)
        return PeekResult(reward[0], cost[0], name_costs(self.task, parts[0]))


@compiled
def keep(worlds: WorldState, w: int, kept: WorldState, slot: int) -> None:
    """Copy the part of world w that a peek reads; the random generator and the observation are not needed."""
    kept.qpos[slot] = worlds.qpos[w]
    kept.qvel[slot] = worlds.qvel[w]
    kept.warmstart[slot] = worlds.warmstart[w]
    kept.time[slot] = worlds.time[w]
    kept.xy[slot] = worlds.xy[w]
    kept.rot[slot] = worlds.rot[w]
    kept.last[slot] = worlds.last[w]
    kept.button[slot] = worlds.button[w]
    kept.timer[slot] = worlds.timer[w]
    kept.phase[slot] = worlds.phase[w]
