"""Run one compiled loop on several threads, each with a bench of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import mujoco

from blendctl.envs.physics import PhysicsSlot, make_bench

__all__ = ["Crew"]

T = TypeVar("T")


class Crew:
    """Threads that share the worlds of a batch; the caller's own thread is one of them.

    A thread takes the next world when it is done with one, so a world with many contacts does not hold
    the others up. Which thread steps a world changes nothing: a bench keeps nothing of a world.
    """

    def __init__(self, model: mujoco.MjModel, threads: int) -> None:
        self.threads = threads
        self._model = model
        benches = [make_bench(model) for _ in range(threads)]
        self._benches = [bench for bench, _ in benches]
        self._memory = [memory for _, memory in benches]
        self._helpers = ThreadPoolExecutor(threads - 1, "blendctl-world") if threads > 1 else None

    def __reduce__(self) -> tuple[type[Crew], tuple[mujoco.MjModel, int]]:
        """Copy by making benches anew: the addresses on them are this crew's own memory."""
        return Crew, (self._model, self.threads)

    def run(self, work: Callable[[PhysicsSlot], T]) -> list[T]:
        """Call `work`, which shares out its jobs, once per thread and wait for all."""
        if self._helpers is None:
            return [work(self._benches[0])]
        pending = [self._helpers.submit(work, bench) for bench in self._benches[1:]]
        mine = work(self._benches[0])
        return [mine, *(future.result() for future in pending)]

    def close(self) -> None:
        """Let the helpers go; the caller's own thread can still do all the work."""
        if self._helpers is not None:
            self._helpers.shutdown()
            self._helpers = None
