"""Time one observation through a controller's networks: blendctl's compiled rows against torch and onnxruntime.

One run compares all on the same 256x256 tanh network with the same weights; the numbers are medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from blendctl.training.encodings import world_encodings
from blendctl.training.policy import Policy

ROUNDS, CALLS, BATCH = 30, 300, 4096


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    encoding = world_encodings("PointGoal1").policy
    policy = Policy(encoding, 2, hidden=(256, 256), log_std=-0.5, generator=torch.Generator().manual_seed(0))
    controller = policy.to_controller("bench")
    rng = np.random.default_rng(0)
    observations = rng.random((BATCH, encoding.observation_size))
    inputs = encoding(observations)
    row, one = observations[0], inputs[0]
    tensor = torch.from_numpy(inputs)
    scripted = torch.jit.freeze(torch.jit.trace(policy.actor.eval(), tensor[:1]))

    def torch_of(network: Callable[[torch.Tensor], torch.Tensor], rows: torch.Tensor) -> Callable[[], object]:
        def call() -> object:
            with torch.inference_mode():
                return network(rows).numpy()

        return call

    candidates: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "blendctl network": (lambda: controller.actor.row(one), lambda: controller.actor.batch(inputs)),
        "blendctl act (encoding included)": (
            lambda: controller.act(row),
            lambda: controller.act(observations),
        ),
        "torch eager": (torch_of(policy.actor, tensor[:1]), torch_of(policy.actor, tensor)),
        "torch.jit, frozen": (torch_of(scripted, tensor[:1]), torch_of(scripted, tensor)),
    }
    session = onnx_session(policy)
    if session is not None:
        name = session.get_inputs()[0].name
        candidates["onnxruntime"] = (
            lambda: session.run(None, {name: inputs[:1]}),
            lambda: session.run(None, {name: inputs}),
        )
    with torch.inference_mode():
        error = np.abs(policy.actor(tensor).numpy() - np.stack([controller.actor.row(x) for x in inputs])).max()
    print(f"network {encoding.size}-256-256-2, one thread; largest difference from torch {error:.1e}")
    print(f"| | one observation, µs | batch of {BATCH}, µs per row |\n|---|---|---|")
    rows = {name: (median_us(a, CALLS), median_us(b, 3) / BATCH) for name, (a, b) in candidates.items()}
    for name, (single, batch) in rows.items():
        print(f"| {name} | {single:.1f} | {batch:.2f} |")
    if session is None:
        print("onnxruntime: not installed (pip install onnxruntime onnx)")
    if options.json:
        results = {
            "machine": platform.machine(),
            "python": platform.python_version(),
            "torch": torch.__version__,
            "largest_difference_from_torch": float(error),
            "microseconds": {name: {"one": one, "row_of_a_batch": many} for name, (one, many) in rows.items()},
        }
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def median_us(call: Callable[[], object], calls: int) -> float:
    """Return the median over rounds of the mean time of a call (µs)."""
    call()
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - started) / calls * 1e6)
    return float(np.median(times))


def onnx_session(policy: Policy):
    """Export the actor and open it in onnxruntime; None if it is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("onnx", "onnxruntime")):
        return None
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, last = [], [], "x"
    layers = [layer for layer in policy.actor if isinstance(layer, torch.nn.Linear)]
    for index, layer in enumerate(layers):
        weights.append(numpy_helper.from_array(layer.weight.detach().numpy(), f"w{index}"))
        weights.append(numpy_helper.from_array(layer.bias.detach().numpy(), f"b{index}"))
        nodes.append(helper.make_node("Gemm", [last, f"w{index}", f"b{index}"], [f"h{index}"], transB=1))
        last = f"h{index}"
        if index + 1 < len(layers):
            nodes.append(helper.make_node("Tanh", [last], [f"t{index}"]))
            last = f"t{index}"
    size = policy.encoding.size
    graph = helper.make_graph(
        nodes,
        "actor",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", size])],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, ["n", 2])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "actor.onnx"
        onnx.save(model, str(path))
        return onnxruntime.InferenceSession(str(path), options)


if __name__ == "__main__":
    main()
