"""The engine of this machine: worker processes, one thread each, that may die without harm."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from blendctl.errors import StateError
from blendctl.experiments.engines import Answer, Task, do_task

__all__ = ["Processes", "ONE_THREAD", "one_thread"]

# Units share the cores among themselves: a library that took them all would slow every unit down.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class Processes:
    """A fixed number of workers; one that dies is replaced, and its task is told as lost."""

    def __init__(self, workers: int) -> None:
        self._workers = [_Worker() for _ in range(workers)]  # a worker's process starts with its first task

    def room(self) -> int:
        return sum(worker.task is None for worker in self._workers)

    def submit(self, task: Task) -> None:
        next(worker for worker in self._workers if worker.task is None).give(task)

    def wait(self) -> list[Answer]:
        """Wait for an answer or a death; the pipe of a dead worker ends."""
        busy = {worker.pipe: worker for worker in self._workers if worker.task is not None and worker.pipe is not None}
        return [busy[pipe].answer() for pipe in wait(list(busy))]  # type: ignore[index]  # only our pipes come back

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self.task: int | None = None  # the number of the task under way
        self.pipe: Connection | None = None
        self._process: BaseProcess | None = None

    def give(self, task: Task) -> None:
        self.task = task[0]
        for _ in range(2):
            if self.pipe is None:
                self._start()
            assert self.pipe is not None
            try:
                self.pipe.send(task)
                return
            except OSError:  # it died while it was idle
                self.stop(keep_task=True)
        raise StateError("worker processes die as soon as they start; see what they printed above")

    def answer(self) -> Answer:
        number, pipe = self.task, self.pipe
        assert number is not None
        assert pipe is not None
        try:
            answer = pipe.recv()
            assert isinstance(answer, Answer)
        except (EOFError, OSError):
            words = self._exit_reason()
            self.stop()
            return Answer(number, "lost", words=words)
        self.task = None
        return answer

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True, name="blendctl-worker")
        with one_thread():
            process.start()
        theirs.close()
        self._process = process

    def _exit_reason(self) -> str:
        process = self._process
        if process is None:
            return "its worker vanished"
        process.join(5)
        code = process.exitcode
        if code is not None and code < 0:
            return f"its worker was killed by {signal.Signals(-code).name}"
        return f"its worker ended with code {code}"

    def stop(self, *, keep_task: bool = False) -> None:
        """End the process at once; nothing that it has under way is needed."""
        if self.pipe is not None:
            self.pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        self.pipe = self._process = None
        if not keep_task:
            self.task = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Let processes that start now use one thread each in their libraries."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _work(pipe: Connection) -> None:
    """Answer tasks until the pipe ends, which it also does when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    while True:
        try:
            task = pipe.recv()
            pipe.send(do_task(task))
        except (EOFError, OSError):
            return
