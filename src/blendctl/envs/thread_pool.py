"""Run one compiled loop on several threads, each with its own slot."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import mujoco

from blendctl.envs.physics import PhysicsSlot, make_slot

T = TypeVar("T")


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ThreadPool:
    """Threads that share the worlds of a batch; the caller's own thread is one of them.

    A thread takes the next world when it has finished one, so one with many contacts does not delay the others. The
    result does not depend on which thread steps a world: a slot keeps no state of it.
    """

    def __init__(self, model: mujoco.MjModel, threads: int) -> None:
        self.threads = threads
        self._model = model
        slots = [make_slot(model) for _ in range(threads)]
        self._slots = [slot for slot, _ in slots]
        self._memory = [memory for _, memory in slots]
        self._helpers = ThreadPoolExecutor(threads - 1, "blendctl-world") if threads > 1 else None

    def __reduce__(self) -> tuple[type[ThreadPool], tuple[mujoco.MjModel, int]]:
        """Copy by making new slots: their addresses point into this pool's memory."""
        return ThreadPool, (self._model, self.threads)

    def run(self, work: Callable[[PhysicsSlot], T]) -> list[T]:
        """Call `work`, which distributes its jobs, once per thread; wait for all."""
        if self._helpers is None:
            return [work(self._slots[0])]
        pending = [self._helpers.submit(work, slot) for slot in self._slots[1:]]
        mine = work(self._slots[0])
        return [mine, *(future.result() for future in pending)]

    def close(self) -> None:
        """End the helper threads; the caller's thread can still do all the work."""
        if self._helpers is not None:
            self._helpers.shutdown()
            self._helpers = None
