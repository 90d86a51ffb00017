"""Run jobs in worker processes of this machine, with one thread each; replace workers that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from blendctl.errors import StateError
from blendctl.experiments.engines import Job, JobResult, run_job

# Units run in parallel: numeric libraries must not use all cores for each of them.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ProcessEngine:
    """A fixed number of workers; one that dies is replaced, and its job is reported as lost."""

    def __init__(self, workers: int) -> None:
        self._workers = [_Worker() for _ in range(workers)]  # a worker's process starts with its first job
        # A worker that is still importing does not detect the end of its parent, so the parent kills it.
        self._handles_term = _in_main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        if self._handles_term:
            signal.signal(signal.SIGTERM, _terminate)

    def room(self) -> int:
        return sum(worker.job is None for worker in self._workers)

    def submit(self, job: Job) -> None:
        next(worker for worker in self._workers if worker.job is None).send(job)

    def wait(self) -> list[JobResult]:
        """Wait until a job is finished or a worker died, which closes its pipe."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None and worker.pipe is not None}
        return [busy[pipe].receive() for pipe in wait(list(busy))]  # type: ignore[index]  # wait() returns only pipes of `busy`

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        if self._handles_term and _in_main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _terminate(number: int, frame: object) -> None:
    for child in multiprocessing.active_children():
        child.kill()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self.job: int | None = None  # number of the running job
        self.pipe: Connection | None = None
        self._process: BaseProcess | None = None

    def send(self, job: Job) -> None:
        self.job = job.number
        for _ in range(2):
            if self.pipe is None:
                self._start()
            assert self.pipe is not None
            try:
                self.pipe.send(job)
                return
            except OSError:  # it died while idle
                self.stop(keep_job=True)
        raise StateError("worker processes die as soon as they start; see their output above")

    def receive(self) -> JobResult:
        number, pipe = self.job, self.pipe
        assert number is not None
        assert pipe is not None
        try:
            result = pipe.recv()
            assert isinstance(result, JobResult)
        except (EOFError, OSError):
            message = self._exit_reason()
            self.stop()
            return JobResult(number, "lost", message=message)
        self.job = None
        return result

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, worker_end = context.Pipe()
        process = context.Process(target=_work, args=(worker_end,), daemon=True, name="blendctl-worker")
        with starting_workers():
            process.start()
            self._process = process  # before an interrupt, so that `stop` finds it
            worker_end.close()

    def _exit_reason(self) -> str:
        process = self._process
        if process is None:
            return "its worker vanished"
        process.join(5)
        code = process.exitcode
        if code is not None and code < 0:
            return f"its worker was killed by {signal.Signals(-code).name}"
        return f"its worker ended with code {code}"

    def stop(self, *, keep_job: bool = False) -> None:
        """Kill the process and drop its job."""
        if self.pipe is not None:
            self.pipe.close()
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        self.pipe = self._process = None
        if not keep_job:
            self.job = None


@contextmanager
def starting_workers() -> Iterator[None]:
    """Start processes in this context: they never receive Ctrl-C, and their numeric libraries use one thread."""
    with _without_interrupts(), _one_thread():
        yield


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block Ctrl-C for processes started in this context; for this process delay it to the end.

    A terminal sends Ctrl-C to all processes, but only the one that shows the progress decides what it means. A new
    process inherits the blocked signal. Any later, while it imports, an interrupt would show its traceback. In this
    process, an interrupt must not come between the start of a process and the moment when it is known.
    """
    delayed = False

    def delay(number: int, frame: object) -> None:
        nonlocal delayed
        delayed = True

    previous = signal.getsignal(signal.SIGINT)
    handles = _in_main_thread() and previous is not None  # None: not a handler of Python
    if handles:
        signal.signal(signal.SIGINT, delay)  # other threads of this process still receive the signal
    try:
        resource_tracker.ensure_running()  # before blocking, because its start unblocks the signal
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        if handles:
            signal.signal(signal.SIGINT, previous)
        if delayed:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Limit the numeric libraries of processes started in this context to one thread."""
    previous = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in previous.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """End this process as soon as its parent does, in the middle of a job."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(pipe: Connection) -> None:
    """Run jobs until the pipe closes or the parent dies."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            pipe.send(run_job(pipe.recv()))
        except (EOFError, OSError):
            return
