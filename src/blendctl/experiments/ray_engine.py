"""Run jobs on a Ray cluster through a bridge process, which may die without stopping the experiment."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import sys
from multiprocessing.connection import Connection
from typing import Any

from blendctl.errors import MissingExtraError, StateError
from blendctl.experiments.engines import Job, JobResult, run_job
from blendctl.experiments.processes import ONE_THREAD, starting_workers

QUEUED_PER_CPU = 2  # submitted jobs per CPU, so that no CPU is idle
CONNECT_TIMEOUT = 120  # s
POLL_INTERVAL = 0.2  # s between checks of the pipe while jobs run


def expect_ray() -> None:
    """Raise MissingExtraError if Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", extra="ray")


class RayEngine:
    """Submit jobs through a bridge process: Ray kills its driver process when the cluster is lost.

    address: Ray cluster address ("10.0.0.1:6379", "auto"); None starts a local one on loopback with `workers` CPUs.
    """

    def __init__(self, address: str | None, *, workers: int) -> None:
        self.address = address
        context = multiprocessing.get_context("spawn")
        self._pipe, bridge_end = context.Pipe()
        self._process = context.Process(
            target=_bridge, args=(bridge_end, address, workers), daemon=False, name="blendctl-ray"
        )
        self._running = 0
        self._cpus = 1
        try:
            with starting_workers():
                self._process.start()
                bridge_end.close()
            if not self._pipe.poll(CONNECT_TIMEOUT):
                raise self._lost(f"no connection within {CONNECT_TIMEOUT} seconds")
            self._receive()  # the first message confirms the connection
        except BaseException:
            self.close(0.0)
            raise

    def room(self) -> int:
        return max(self._cpus * QUEUED_PER_CPU, 1) - self._running

    def submit(self, job: Job) -> None:
        try:
            self._pipe.send(job)
        except OSError:
            raise self._lost("the bridge to it ended") from None
        self._running += 1

    def wait(self) -> list[JobResult]:
        results = self._receive()
        self._running -= len(results)
        return results

    def _receive(self) -> list[JobResult]:
        """Receive results and the number of CPUs; raise StateError if the cluster is lost."""
        try:
            kind, content = self._pipe.recv()
        except (EOFError, OSError):
            raise self._lost("the connection to it ended") from None
        if kind == "error":
            raise self._lost(content)
        self._cpus, results = content
        return list(results)

    def _lost(self, why: str) -> StateError:
        where = "the local Ray" if self.address is None else f"the Ray cluster at {self.address}"
        return StateError(
            f"{where} cannot be reached or was lost: {why}. What is finished is kept; run the same command again"
        )

    def close(self, timeout: float = 20.0) -> None:
        self._pipe.close()  # the bridge then disconnects from Ray
        if self._process.pid is None:  # interrupted before its start
            return
        self._process.join(timeout)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _bridge(pipe: Connection, address: str | None, workers: int) -> None:
    """Forward jobs to Ray and results back, until the pipe closes."""
    if not os.environ.get("BLENDCTL_DEBUG"):
        _silence()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # send no usage statistics
    os.environ.setdefault("RAY_worker_niceness", "0")  # run workers at normal priority
    if address is None or address.startswith(("127.0.0.1:", "localhost:")):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # keep a loopback address
    import ray

    try:
        _connect(ray, address, workers)
    except Exception as error:  # Ray raises many kinds; all mean that there is no connection
        pipe.send(("error", f"{type(error).__name__}: {error}".splitlines()[0]))
        return
    try:
        _forward(ray, pipe)
    except (EOFError, OSError):
        pass  # the experiment has ended
    except Exception as error:
        pipe.send(("error", f"{type(error).__name__}: {error}".splitlines()[0]))
    finally:
        ray.shutdown()


def _silence() -> None:
    """Discard the output of Ray, which would disturb the progress display."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(devnull, stream)
    os.close(devnull)


def _connect(ray: Any, address: str | None, workers: int) -> None:
    variables = ONE_THREAD | {"PYTHONPATH": os.pathsep.join(_extra_import_paths())}
    common = {"log_to_driver": False, "logging_level": "error", "runtime_env": {"env_vars": variables}}
    if address is not None:
        ray.init(address=address, **common)
    else:
        ray.init(num_cpus=workers, include_dashboard=False, **common)


def _extra_import_paths() -> list[str]:
    """List import paths outside of the installation, which may hold kinds of units."""
    installed = tuple({sys.prefix, sys.base_prefix})
    return [path for path in map(os.path.abspath, sys.path) if not path.startswith(installed)]


def _forward(ray: Any, pipe: Connection) -> None:
    remote = ray.remote(num_cpus=1, max_retries=0)(run_job)  # the schedule repeats lost jobs
    running: dict[Any, int] = {}
    pipe.send(("results", (_cpus(ray), [])))
    while True:
        while pipe.poll(0 if running else None):
            job = pipe.recv()
            running[remote.remote(job)] = job.number
        if not running:
            continue
        ready, _ = ray.wait(list(running), num_returns=len(running), timeout=0)
        if not ready:
            ready, _ = ray.wait(list(running), num_returns=1, timeout=POLL_INTERVAL)
        if ready:
            results = [_result(ray, reference, running.pop(reference)) for reference in ready]
            pipe.send(("results", (_cpus(ray), results)))


def _result(ray: Any, reference: Any, number: int) -> JobResult:
    try:
        result = ray.get(reference)
        assert isinstance(result, JobResult)
        return result
    except ray.exceptions.RayTaskError as error:  # before our code ran, for example because a module is missing there
        return JobResult(number, "failed", message=f"{type(error.cause).__name__}: {error.cause}")
    except ray.exceptions.RayError as error:  # worker, node or object lost
        return JobResult(number, "lost", message=f"{type(error).__name__}")


def _cpus(ray: Any) -> int:
    return int(ray.cluster_resources().get("CPU", 1))
