"""Checks of the readers: a damaged file causes an error of blendctl only, quickly and in little memory."""

from __future__ import annotations

import io
import json
import resource
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from blendctl.errors import BlendctlError
from blendctl.selftest.checks import Check
from blendctl.selftest.damage import damaged, odd_json, odd_tensor_header
from blendctl.user_errors import describe_error

LARGEST_GROWTH = 64.0  # MB; the samples are so small that ten times their size does not matter


@dataclass(frozen=True)
class Reader:
    """A reader under test: how to make an intact sample, and how to read it."""

    file: str  # the sample that is damaged, in its folder
    make: Callable[[Path], None]  # writes the sample into a folder
    read: Callable[[Path], Any]
    package: str | None = None  # makes the sample


def _controller(folder: Path) -> None:
    """Write a controller whose networks have few units, so that most damage hits the file's structure."""
    from blendctl.controllers import load, write_controller
    from blendctl.controllers.dense import Dense

    def thin(dense: Dense) -> Dense:
        last, sizes = len(dense.weights) - 1, [dense.inputs, *(4 for _ in dense.weights[1:]), dense.outputs]
        weights = [np.ascontiguousarray(w[:a, :b]) for w, (a, b) in zip(dense.weights, pairwise(sizes), strict=True)]
        biases = [bias if i == last else bias[:4].copy() for i, bias in enumerate(dense.biases)]
        return replace(dense, weights=tuple(weights), biases=tuple(biases))

    full = load("PointGoal1/ppo")
    context = full.context and replace(full.context, network=thin(full.context.network))
    longer = full.longer and replace(full.longer, network=thin(full.longer.network))
    small = replace(full, actor=thin(full.actor), critic=thin(full.critic), cost_critic=thin(full.cost_critic))
    write_controller(replace(small, context=context, longer=longer), folder / "controller.safetensors")


def _read_controller(path: Path) -> None:
    from blendctl.controllers import read_controller

    read_controller(path)


def _lookahead(folder: Path) -> None:
    from blendctl.controllers import LookAheadNetwork, write_lookahead
    from blendctl.controllers.dense import Dense
    from blendctl.controllers.lookahead_network import Normalisation

    def dense(*sizes: int) -> Dense:
        pairs = list(pairwise(sizes))
        weights, biases = [np.ones(pair, np.float32) for pair in pairs], [np.zeros(b, np.float32) for _, b in pairs]
        return Dense(tuple(weights), tuple(biases), "relu")

    network = LookAheadNetwork(
        encoding=Normalisation(np.zeros(3, np.float32), np.ones(3, np.float32)),
        level=dense(4, 4, 2), differences=(dense(4, 4, 4), dense(4, 4, 4)),
        level_unit=np.ones(2, np.float32), difference_unit=np.ones(2, np.float32),
        weight_range=(0.01, 1.0), hold=10, discount=0.99, digests=("0" * 64, "1" * 64), names=("fast", "safe"), card={},
    )  # fmt: skip
    write_lookahead(network, folder / "lookahead.safetensors")


def _read_lookahead(path: Path) -> None:
    from blendctl.controllers import read_lookahead

    read_lookahead(path)


def _run(folder: Path) -> None:
    """Write the directory of a small blend."""
    from blendctl.blender import Recorder

    blender = _blender(record=Recorder(folder / "record"))
    for step in range(40):
        blender.act(np.zeros(2))
        blender.observe(reward=0.1, cost=0.0, done=step % 20 == 19)
    blender.close()
    blender.save(folder / "bandit.safetensors")
    options = {"features": "one-hot", "objectives": ["reward", "-cost"], "hold": 1}
    about = {
        "experiment": "blend", "world": "PointGoal1", "controllers": ["pure-pursuit", "stop"], "steps": None, "seed": 0,
        "names": ["fast", "safe"], "options": options,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(about))


def _blender(**options: Any) -> Any:
    from blendctl.blender import Blender

    return Blender(
        [lambda o: [0.5, 0.1], lambda o: [0.1, 0.2]], ["fast", "safe"], features="one-hot", seed=0, **options
    )


def _read_blend(path: Path) -> None:
    from blendctl.blender import Blender

    Blender.load(path.parent).close()


def _read_record(path: Path) -> None:
    from blendctl.blender.explain import read_record

    read_record(path.parent, step=3)


def _read_page(path: Path) -> None:
    from blendctl.reports import build_report

    build_report(path.parent)


def _certificate(folder: Path) -> None:
    from blendctl.certificates import Claim, certify

    about = {"world": "PointGoal1", "digests": {"controllers": {"fast": "0"}}}
    certified = certify(np.linspace(15, 20, 40), np.arange(40.0), Claim(budget=25.0, cost_ceiling=1000.0), about=about)
    certified.write(folder / "certificate.json")


def _read_certificate(path: Path) -> None:
    from blendctl.certificates import CertificateMonitor, read_certificate

    CertificateMonitor(read_certificate(path))


def _unit(folder: Path) -> None:
    import pyarrow

    from blendctl.experiments.store import encode
    from blendctl.experiments.units import Result

    table = pyarrow.table({"episode": [1, 2, 3], "return": [0.5, 1.5, 2.5], "name": ["fast", "safe", "fast"]})
    (folder / "unit.parquet").write_bytes(encode("k", b'{"function": "f"}', Result({"mean": 1.5}, table, {})))


def _read_unit(path: Path) -> None:
    from blendctl.experiments.store import decode

    decode(path.read_bytes(), key="k")


def _frame(folder: Path) -> None:
    import msgpack

    from blendctl.controllers.wire import pack_array

    request = {"op": "act", "id": 7, "observation": pack_array(np.arange(3.0)), "seed": None}
    (folder / "frame").write_bytes(msgpack.packb(request))


def _read_frame(path: Path) -> None:
    from blendctl.controllers.wire import unpack_array, unpack_frame

    unpack_array(unpack_frame(path.read_bytes()).get("observation"))


def _omnisafe(folder: Path) -> None:
    import torch

    actor = {"mean.0.weight": torch.ones(3, 2), "mean.0.bias": torch.ones(3), "log_std": torch.zeros(3)}
    normaliser = {"_mean": torch.zeros(2), "_std": torch.ones(2), "_count": torch.tensor(9), "_clip": torch.tensor(5.0)}
    torch.save({"pi": actor, "obs_normalizer": normaliser}, folder / "omnisafe.pt")


def _recording(folder: Path) -> None:
    from blendctl.envs.recordings import ARRAYS

    arrays: dict[str, Any] = {name: np.zeros(2) for name in ARRAYS}
    np.savez(folder / "SafetyPointGoal0-v0.npz", **arrays)
    about = {"bodies": ["world", "agent"], "layout_names": ["agent", "goal"], "cost_components": ["cost_sum"]}
    (folder / "SafetyPointGoal0-v0.json").write_text(json.dumps(about))


def _read_recording(path: Path) -> None:
    from blendctl.envs.recordings import load_recording

    load_recording(path.with_suffix(".npz"))


def _read_omnisafe(path: Path) -> None:
    from blendctl.controllers.checkpoints import read_omnisafe

    read_omnisafe(path)


def _sb3(folder: Path) -> None:
    import torch

    buffer = io.BytesIO()
    policy = {"mlp_extractor.policy_net.0": (4, 2), "action_net": (3, 4)}
    weights = {f"{name}.weight": torch.ones(*shape) for name, shape in policy.items()}
    weights |= {f"{name}.bias": torch.ones(shape[0]) for name, shape in policy.items()}
    torch.save(weights | {"log_std": torch.zeros(3)}, buffer)
    with zipfile.ZipFile(folder / "sb3.zip", "w") as archive:
        archive.writestr("policy.pth", buffer.getvalue())
        archive.writestr("data", json.dumps({"policy_kwargs": {"activation_fn": "torch.nn.modules.activation.ReLU"}}))


def _read_sb3(path: Path) -> None:
    from blendctl.controllers.checkpoints import read_sb3

    read_sb3(path)


READERS = {
    "controller": Reader("controller.safetensors", _controller, _read_controller),
    "look-ahead networks": Reader("lookahead.safetensors", _lookahead, _read_lookahead),
    "learner": Reader("bandit.safetensors", _run, lambda path: _blender(bandit=path).close()),
    "blend": Reader("run.json", _run, _read_blend),
    "record": Reader("record/part-000001.parquet", _run, _read_record),
    "report": Reader("run.json", _run, _read_page),
    "certificate": Reader("certificate.json", _certificate, _read_certificate),
    "unit": Reader("unit.parquet", _unit, _read_unit),
    "recording": Reader("SafetyPointGoal0-v0.npz", _recording, _read_recording),
    "description of a recording": Reader("SafetyPointGoal0-v0.json", _recording, _read_recording),
    "frame of the wire": Reader("frame", _frame, _read_frame),
    "OmniSafe checkpoint": Reader("omnisafe.pt", _omnisafe, _read_omnisafe, package="torch"),
    "stable-baselines3 archive": Reader("sb3.zip", _sb3, _read_sb3, package="torch"),
}


@dataclass(frozen=True)
class Fuzzed:
    """Results of reading many damaged files."""

    escapes: tuple[str, ...]  # errors that are not blendctl's
    refused: int
    slowest: float  # s
    growth: float  # of peak memory, MB


def fuzz(reader: Reader, inputs: int, *, folder: Path, seed: int) -> Fuzzed:
    """Read damaged files, half of them with odd values where the format has JSON."""
    rng = np.random.default_rng(seed)
    reader.make(folder)
    path = folder / reader.file
    intact = path.read_bytes()
    reader.read(path)
    before, escapes, refused, slowest = _peak(), [], 0, 0.0
    for number in range(inputs):
        path.write_bytes(_change(intact, path.suffix if number % 2 else "", rng))
        started = time.perf_counter()
        try:
            reader.read(path)
        except BlendctlError:
            refused += 1
        except Exception as error:
            escapes.append(f"input {number}: {describe_error(error)}")
        slowest = max(slowest, time.perf_counter() - started)
    return Fuzzed(tuple(escapes), refused, slowest, _peak() - before)


def _change(intact: bytes, suffix: str, rng: np.random.Generator) -> bytes:
    if suffix == ".json":
        return odd_json(intact.decode(), rng).encode()
    if suffix == ".safetensors" and (changed := odd_tensor_header(intact, rng)) is not None:
        return changed
    return damaged(intact, rng)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def damaged_files(inputs: int, *, name: str) -> dict[str, float]:
    """Return the number of foreign errors, the time of the slowest file, and the growth of memory."""
    with tempfile.TemporaryDirectory() as place:
        done = fuzz(READERS[name], inputs, folder=Path(place), seed=sum(name.encode()))
    for escape in done.escapes[:20]:
        print(escape)
    return {"escapes": float(len(done.escapes)), "slowest, s": done.slowest, "growth, MB": done.growth}


def changed_bits(count: int) -> dict[str, float]:
    """Change one bit of the weights of a controller's file; return how many changes went unnoticed."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        _controller(Path(place))
        path = Path(place) / "controller.safetensors"
        intact = path.read_bytes()
        start = 8 + int.from_bytes(intact[:8], "little")  # of the tensors
        unnoticed = 0
        for _ in range(count):
            changed = bytearray(intact)
            changed[int(rng.integers(start, len(intact)))] ^= 1 << int(rng.integers(8))
            path.write_bytes(changed)
            try:
                _read_controller(path)
                unnoticed += 1
            except BlendctlError:
                pass
    return {"unnoticed": float(unnoticed)}


LIMITS = {"escapes": 0.0, "slowest, s": 1.0, "growth, MB": LARGEST_GROWTH}
CHECKS = (
    *(
        Check(
            f"damaged files: {name}",
            LIMITS,
            quick=300,
            full=200_000,
            measure=partial(damaged_files, name=name),
            package=reader.package,
        )
        for name, reader in READERS.items()
    ),
    Check("changed bits of a controller", {"unnoticed": 0.0}, quick=100, full=2000, measure=changed_bits),
)
