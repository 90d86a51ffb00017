"""Measure how long `act` takes while remote controllers stall, flood, send garbage and huge frames.

    python bench/hostile.py [--steps 100000] [--json bench/results/hostile.json]

Four remote controllers in another process change their behaviour every 500 requests, each at a different time; a local
controller is always well. The deadline is 5 ms. The baseline, in the same run, has the same controllers behaving
well. The last line of the output has the figures as JSON: by how much p99.9 of `act` exceeds the deadline plus the
baseline's p99.9, in ms (goal: 3 at most), and the steps without a finite action (goal: none).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import socket
import struct
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from blendctl.blender import Blender
from blendctl.controllers.remote import RemoteController
from blendctl.controllers.wire import Channel, pack_array

DEADLINE, PEERS, TURN = 0.005, 4, 500
MOODS = ("well", "stall", "flood", "garbage", "huge")
SPAWN = multiprocessing.get_context("spawn")


def frame(message: Any) -> bytes:
    """Return a frame of the wire."""
    body = msgpack.packb(message)
    return struct.pack(">I", len(body)) + body


FLOOD = frame({"id": 0}) * 5000
HUGE = frame({"x": [{}] * 1_000_000})


def answer(mood: str, number: int) -> bytes:
    """Return what a peer sends for a request."""
    good = frame({"id": number, "action": pack_array([0.1, 0.0])})
    return {"well": good, "stall": b"", "flood": FLOOD + good, "garbage": b"\xff\x00\x13" * 50, "huge": HUGE}[mood]


def serve(listener: socket.socket, hostile: bool, offset: int) -> None:
    """Welcome every client; answer each request with the present behaviour."""
    requests = offset * TURN // PEERS
    while True:
        connection, _ = listener.accept()
        with connection:
            try:
                channel = Channel(connection)
                channel.receive(until=time.monotonic() + 60)
                channel.send({"protocol": 1, "name": f"peer {offset}", "action_size": 2})
                channel.limit = 1 << 20
                while True:
                    number = channel.receive(until=time.monotonic() + 600)["id"]
                    requests += 1
                    mood = MOODS[(requests // TURN) % len(MOODS)] if hostile else "well"
                    connection.sendall(answer(mood, number))
            except Exception:  # after any error of a client, serve the next one
                continue


def peers(pipe: Connection, hostile: bool) -> None:
    """Serve all peers in this process and send their addresses."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(PEERS)]
    for offset, listener in enumerate(listeners):
        threading.Thread(target=serve, args=(listener, hostile, offset), daemon=True).start()
    pipe.send([f"tcp://127.0.0.1:{listener.getsockname()[1]}" for listener in listeners])
    pipe.recv()  # until the other end closes


def local(observation: NDArray[np.float64]) -> list[float]:
    """Drive well."""
    return [0.0, 0.1]


def drive(steps: int, *, hostile: bool) -> tuple[NDArray[np.float64], int]:
    """Return the times of `act` in ms, and the steps without a finite action."""
    here, there = SPAWN.Pipe()
    process = SPAWN.Process(target=peers, args=(there, hostile), daemon=True)
    process.start()
    addresses: Sequence[str] = here.recv()
    remotes = [RemoteController(address, deadline=DEADLINE) for address in addresses]
    names = ["local", *(f"peer {i}" for i in range(PEERS))]
    times, bad = np.empty(steps), 0
    with Blender(
        [local, *remotes],
        names,
        features="one-hot",
        fallback="local",
        safe_action=[0.0, 0.0],
        deadline=DEADLINE,
        seed=0,
    ) as blender:
        for step in range(-200, steps):
            started = time.perf_counter()
            action = blender.act(np.zeros(8))
            if step >= 0:
                times[step] = 1e3 * (time.perf_counter() - started)
                bad += not bool(np.isfinite(action).all())
            blender.observe(reward=0.1, cost=0.0)
    process.terminate()
    process.join()
    return times, bad


def main() -> None:
    """Measure both, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = {}
    for name, hostile in (("baseline", False), ("hostile", True)):
        times, bad = drive(args.steps, hostile=hostile)
        cells = dict(
            zip(("p50", "p99", "p99.9", "max"), np.percentile(times, [50, 99, 99.9, 100]).tolist(), strict=True)
        )
        rows[name] = cells | {"without an action": bad}
        print(f"{name:9} ms: " + ", ".join(f"{key} {value:.2f}" for key, value in cells.items()), flush=True)
    excess = rows["hostile"]["p99.9"] - 1e3 * DEADLINE - rows["baseline"]["p99.9"]
    figures = {"excess of p99.9, ms": excess, "without an action": rows["hostile"]["without an action"]}
    if args.json:
        whole = {"steps": args.steps, "deadline_ms": 1e3 * DEADLINE, "rows": rows, "platform": platform.platform()}
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(whole | figures, indent=2) + "\n")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
