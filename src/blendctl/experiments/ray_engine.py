"""The engine of many machines: Ray, driven from a process of its own so that its end is not ours."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

from blendctl.errors import MissingExtraError, StateError
from blendctl.experiments.engines import Answer, Task, do_task
from blendctl.experiments.processes import ONE_THREAD, one_thread

__all__ = ["RayEngine", "expect_ray"]

AHEAD = 2  # tasks that wait at the cluster, per CPU, so that no CPU waits for us
PATIENCE = 120  # seconds to connect
PAUSE = 0.2  # seconds between looks at the pipe while tasks are under way


def expect_ray() -> None:
    """Tell what brings Ray if it is missing."""
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", extra="ray")


class RayEngine:
    """A bridge to Ray. Ray ends the process that drives it when the cluster is lost; that is the bridge, not us.

    address: of a cluster ("10.0.0.1:6379", "auto"); None starts one here, on loopback, with `workers` CPUs.
    """

    def __init__(self, address: str | None, *, workers: int) -> None:
        self.address = address
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_bridge, args=(theirs, address, workers), daemon=False, name="blendctl-ray"
        )
        with one_thread():
            self._process.start()
        theirs.close()
        self._under_way = 0
        self._cpus = 1
        try:
            if not self._pipe.poll(PATIENCE):
                raise self._lost(f"no connection within {PATIENCE} seconds")
            self._hear()  # that it is connected
        except BaseException:
            self.close(0.0)
            raise

    def room(self) -> int:
        return max(self._cpus * AHEAD, 1) - self._under_way

    def submit(self, task: Task) -> None:
        try:
            self._pipe.send(task)
        except OSError:
            raise self._lost("the bridge to it ended") from None
        self._under_way += 1

    def wait(self) -> list[Answer]:
        answers = self._hear()
        self._under_way -= len(answers)
        return answers

    def _hear(self) -> list[Answer]:
        """Hear of answers, of the number of CPUs, or that all is over."""
        try:
            kind, told = self._pipe.recv()
        except (EOFError, OSError):
            raise self._lost("the connection to it ended") from None
        if kind == "error":
            raise self._lost(told)
        self._cpus, answers = told
        return list(answers)

    def _lost(self, why: str) -> StateError:
        where = "the Ray that was started here" if self.address is None else f"the Ray cluster at {self.address}"
        return StateError(
            f"{where} cannot be reached or was lost: {why}. What is finished is kept; run the same command again"
        )

    def close(self, patience: float = 20.0) -> None:
        self._pipe.close()  # the bridge hears it and lets Ray go
        self._process.join(patience)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _bridge(pipe: Connection, address: str | None, workers: int) -> None:
    """Pass tasks to Ray and answers back, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not os.environ.get("BLENDCTL_DEBUG"):
        _silence()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # what runs here is nobody else's business
    os.environ.setdefault("RAY_worker_niceness", "0")  # these workers are what the machine is for
    if address is None or address.startswith(("127.0.0.1:", "localhost:")):
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # Ray's word for: loopback stays loopback
    import ray

    try:
        _connect(ray, address, workers)
    except Exception as error:  # Ray raises many kinds; all mean that there is no cluster
        pipe.send(("error", f"{type(error).__name__}: {error}".splitlines()[0]))
        return
    try:
        _pass_on(ray, pipe)
    except (EOFError, OSError):
        pass  # the other side is gone: nothing is waited for
    except Exception as error:
        pipe.send(("error", f"{type(error).__name__}: {error}".splitlines()[0]))
    finally:
        ray.shutdown()


def _silence() -> None:
    """Let Ray talk to nobody: what matters comes through the pipe, and the terminal belongs to the progress."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _connect(ray: Any, address: str | None, workers: int) -> None:
    variables = ONE_THREAD | {"PYTHONPATH": os.pathsep.join(_own_paths())}
    common = {"log_to_driver": False, "logging_level": "error", "runtime_env": {"env_vars": variables}}
    if address is not None:
        ray.init(address=address, **common)
    else:
        ray.init(num_cpus=workers, include_dashboard=False, **common)


def _own_paths() -> list[str]:
    """List where modules are found here beyond the installation: kinds of units may live there."""
    installed = tuple({sys.prefix, sys.base_prefix})
    return [path for path in map(os.path.abspath, sys.path) if not path.startswith(installed)]


def _pass_on(ray: Any, pipe: Connection) -> None:
    remote = ray.remote(num_cpus=1, max_retries=0)(do_task)  # whether to run again is the schedule's to say
    under_way: dict[Any, int] = {}
    pipe.send(("answers", (_cpus(ray), [])))
    while True:
        while pipe.poll(0 if under_way else None):
            task = pipe.recv()
            under_way[remote.remote(task)] = task[0]
        if not under_way:
            continue
        ready, _ = ray.wait(list(under_way), num_returns=len(under_way), timeout=0)
        if not ready:
            ready, _ = ray.wait(list(under_way), num_returns=1, timeout=PAUSE)
        if ready:
            answers = [_answer(ray, reference, under_way.pop(reference)) for reference in ready]
            pipe.send(("answers", (_cpus(ray), answers)))


def _answer(ray: Any, reference: Any, number: int) -> Answer:
    try:
        answer = ray.get(reference)
        assert isinstance(answer, Answer)
        return answer
    except ray.exceptions.RayTaskError as error:  # it never got to our code: the module is missing there, for example
        return Answer(number, "failed", words=f"{type(error.cause).__name__}: {error.cause}")
    except ray.exceptions.RayError as error:  # worker, node or object lost
        return Answer(number, "lost", words=f"{type(error).__name__}")


def _cpus(ray: Any) -> int:
    return int(ray.cluster_resources().get("CPU", 1))
