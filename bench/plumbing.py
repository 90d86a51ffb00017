"""Time the process pool and the wire protocol against the standard ones: overhead of a unit, round trip of a request.

One run compares all on the same work. It also shows what happens when one of twenty units kills its worker.
The peers are `concurrent.futures`, `multiprocessing.Pool`, `multiprocessing.connection` and gRPC (if it is installed).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import platform
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))  # workers import the module small_units

# ruff: noqa: E402  # the path comes first
from blendctl.controllers.remote import RemoteController
from blendctl.controllers.server import ControllerServer
from blendctl.experiments.engines import Job, run_job
from blendctl.experiments.processes import ProcessEngine
from blendctl.experiments.units import Unit

UNITS, ROUNDS, CALLS, PATIENCE = 400, 15, 300, 30.0
SPAWN = multiprocessing.get_context("spawn")
OBSERVATION = np.random.default_rng(0).random(60)


def tasks(count: int, *, killer: int | None = None) -> list[Job]:
    """Make small units; the one with the number `killer` kills its worker."""
    units = [Unit("small_units:square", {"number": n, "die": n == killer, "seconds": 0.01}) for n in range(count)]
    if killer is None:
        units = [Unit("small_units:square", {"number": n}) for n in range(count)]
    return [Job(number, unit.to_json(), unit.key) for number, unit in enumerate(units)]


def by_processes(work: list[Job]) -> list[float]:
    """Run tasks on blendctl's pool; return the times at which they were done."""
    left, under_way = list(reversed(work)), 0
    times: list[float] = []
    with closing(ProcessEngine(2)) as engine:
        while left or under_way:
            while left and engine.room():
                engine.submit(left.pop())
                under_way += 1
            for answer in engine.wait():
                under_way -= 1
                if answer.state == "done":
                    times.append(time.perf_counter())
    return times


def by_executor(work: list[Job]) -> list[float]:
    """Run tasks on `concurrent.futures`; return the times at which they were done."""
    times: list[float] = []
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        for future in [pool.submit(run_job, task) for task in work]:
            with suppress(BrokenProcessPool):
                future.result()
                times.append(time.perf_counter())
    return times


def by_pool(work: list[Job]) -> list[float]:
    """Run tasks on `multiprocessing.Pool`; return the times at which they were done, until patience ends."""
    times: list[float] = []
    with SPAWN.Pool(2) as pool:
        for result in [pool.apply_async(run_job, (task,)) for task in work]:
            with suppress(multiprocessing.TimeoutError):
                result.get(PATIENCE)
                times.append(time.perf_counter())
    return times


class Half:
    """A controller that takes no time."""

    def act(self, observation: Any, rng: Any = None) -> Any:
        return 0.5 * np.asarray(observation)[:2]


def serve_blendctl(pipe: Connection) -> None:
    """Serve as `blendctl serve` does."""
    with ControllerServer(Half()) as server:
        server.start()
        pipe.send(str(server.address))
        pipe.recv()


def serve_connection(pipe: Connection) -> None:
    """Serve with `multiprocessing.connection`, which pickles."""
    with Listener(("127.0.0.1", 0), authkey=b"token") as listener:
        pipe.send(listener.address)
        with listener.accept() as connection:
            while True:
                try:
                    connection.send(Half().act(connection.recv()))
                except EOFError:
                    return


def serve_grpc(pipe: Connection) -> None:
    """Serve with gRPC, one method that takes and returns bytes."""
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    def act(request: bytes, context: Any) -> bytes:
        return bytes(Half().act(np.frombuffer(request)).tobytes())

    server = grpc.server(ThreadPoolExecutor(1))
    handlers = {"act": grpc.unary_unary_rpc_method_handler(act)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("controller", handlers),))
    pipe.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    pipe.recv()


def ask_blendctl(address: Any) -> Callable[[], object]:
    """Return a call with a deadline."""
    remote = RemoteController(address, deadline=1.0)
    return lambda: remote.act(OBSERVATION)


def ask_connection(address: Any) -> Callable[[], object]:
    """Return a call with a deadline."""
    connection = Client(address, authkey=b"token")

    def call() -> object:
        connection.send(OBSERVATION)
        return connection.recv() if connection.poll(1.0) else None

    return call


def ask_grpc(address: Any) -> Callable[[], object]:
    """Return a call with a deadline."""
    import grpc

    method = grpc.insecure_channel(f"127.0.0.1:{address}").unary_unary("/controller/act")
    return lambda: np.frombuffer(method(OBSERVATION.tobytes(), timeout=1.0))


WIRES = {
    "blendctl": (serve_blendctl, ask_blendctl),
    "multiprocessing.connection": (serve_connection, ask_connection),
    "gRPC": (serve_grpc, ask_grpc),
}
POOLS = {"blendctl": by_processes, "concurrent.futures": by_executor, "multiprocessing.Pool": by_pool}


def round_trips() -> dict[str, float]:
    """Return the median round trip (µs) of each protocol, taken in turns."""
    calls, pipes, processes = {}, [], []
    for name, (serve, ask) in WIRES.items():
        if name == "gRPC" and importlib.util.find_spec("grpc") is None:
            continue
        ours, theirs = SPAWN.Pipe()
        process = SPAWN.Process(target=serve, args=(theirs,), daemon=True)
        process.start()
        calls[name] = ask(ours.recv())
        pipes.append(ours)
        processes.append(process)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = time.perf_counter()
            for _ in range(CALLS):
                call()
            times[name].append((time.perf_counter() - started) / CALLS * 1e6)
    for process in processes:
        process.kill()
    return {name: float(np.median(values)) for name, values in times.items()}


def pool_times() -> dict[str, dict[str, float]]:
    """Return per pool the overhead of a unit (µs, workers running), and the result of 20 units with a killed worker."""
    figures: dict[str, dict[str, float]] = {}
    for name, run in POOLS.items():
        times = [np.diff(run(tasks(UNITS))[UNITS // 4 :]).mean() for _ in range(3)]
        started = time.perf_counter()
        done = len(run(tasks(20, killer=5)))
        hangs = time.perf_counter() - started > PATIENCE  # the loss is not reported
        figures[name] = {"per_unit_us": float(min(times)) * 1e6, "done_of_20": done, "hangs": hangs}
    return figures


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args()
    wires, pools = round_trips(), pool_times()
    print("| wire protocol | round trip, µs | ratio |\n|---|---|---|")
    for name, micros in wires.items():
        print(f"| {name} | {micros:.0f} | {micros / wires['blendctl']:.2f} |")
    print("\n| pool | overhead of a unit, µs | after one of 20 units killed its worker |\n|---|---|---|")
    for name, row in pools.items():
        after = f"{row['done_of_20']:.0f} done, {'waits for the lost one' if row['hangs'] else 'loss reported'}"
        print(f"| {name} | {row['per_unit_us']:.0f} | {after} |")
    if options.json:
        versions = {"machine": platform.machine(), "python": platform.python_version()}
        options.json.write_text(json.dumps(versions | {"wire_us": wires, "pools": pools}, indent=2) + "\n")


if __name__ == "__main__":
    main()
