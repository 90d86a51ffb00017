"""Smoke checks of what blendctl depends on: each does a small piece of real work and returns a summary.

`python -m blendctl.cli.smoke_checks NAME` runs one check. `diagnostics` runs each check in its own process, because a
broken driver or library can crash or hang the process that uses it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blendctl.errors import BlendctlError, did_you_mean

# ONNX model that squares its input.
SQUARE_ONNX = (
    b'\x08\x08\x12\x00:5\n\x0e\n\x01x\n\x01x\x12\x01y"\x03Mul\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08'
    b"\x01b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)


class CheckFailed(BlendctlError):
    """A check computed a wrong result."""


class Unavailable(BlendctlError):
    """An optional part cannot work on this machine; the message says what would help."""


@dataclass(frozen=True)
class SmokeCheck:
    """One check."""

    name: str
    package: str  # must be installed
    run: Callable[[], str]  # does the work and returns a summary
    slow: bool = False  # skipped by --quick


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise CheckFailed(message)


def _physics() -> str:
    import mujoco
    import numpy as np

    from blendctl.envs import SingleWorld

    world = SingleWorld("PointGoal1")
    world.reset(seed=0)
    start = world.snapshot()
    first = [world.step(np.array([1.0, 0.1]))[0] for _ in range(10)]
    world.restore(start)
    again = [world.step(np.array([1.0, 0.1]))[0] for _ in range(10)]
    _require(bool(np.isfinite(first).all()), "ten steps of PointGoal1 returned observations that are not finite")
    _require(np.array_equal(first, again), "a restored world did not repeat its trajectory")
    return f"MuJoCo {mujoco.__version__} simulates PointGoal1 reproducibly"


def _can_render(render_mode: str) -> bool:
    """Render a world; return whether the picture shows anything."""
    from blendctl.envs import SingleWorld

    world = SingleWorld("PointGoal1", render_mode=render_mode)
    world.reset(seed=0)
    picture = world.render()
    world.close()
    return picture is not None and picture.ndim == 3 and bool(picture.std() > 1)


def _drawing() -> str:
    _require(_can_render("topdown"), "the top-down picture is empty")
    return "top-down pictures work"


def _camera() -> str:
    from blendctl.envs.gl import explain_missing, find_backend

    backend = find_backend()
    if backend is None:
        raise Unavailable(explain_missing())
    _require(_can_render("rgb_array"), f"MuJoCo's camera rendered an empty picture with {backend}")
    return f"MuJoCo's camera renders with {backend.upper()}"


def _compiling() -> str:
    import numba
    import numpy as np

    from blendctl import BlendingBandit

    @numba.njit
    def total(values: Any) -> float:
        result = 0.0
        for value in values:
            result += value
        return result

    _require(total(np.arange(101.0)) == 5050.0, "a compiled loop computed a wrong sum")
    bandit = BlendingBandit(n_features=2, n_objectives=2, seed=0)
    for _ in range(50):
        arm = bandit.decide(np.eye(2)).arm
        bandit.update(np.eye(2)[arm], [float(arm), float(arm)])
    _require(bandit.decide(np.eye(2)).arm == 1, "the learner did not find the better of two arms")
    return f"numba {numba.__version__} compiles and the learner learns"


def _zoo() -> str:
    import numpy as np

    from blendctl.controllers import load, zoo_names

    names = zoo_names()
    _require(bool(names), "this installation has no trained controllers")
    for name in names:
        controller = load(name)
        action = np.asarray(controller.act(np.zeros(controller.encoding.observation_size)))
        _require(bool(np.isfinite(action).all()), f"{name} returned the action {action}")
    return f"{len(names)} trained controllers load and act"


def _records() -> str:
    import tempfile
    from pathlib import Path

    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "table.parquet"
        table = pyarrow.table({"step": [1, 2, 3], "name": ["fast", "safe", "fast"]})
        pyarrow.parquet.write_table(table, path)
        _require(pyarrow.parquet.read_table(path).equals(table), "a table changed on its way through Parquet")
    return f"pyarrow {pyarrow.__version__} writes and reads Parquet"


def _torch() -> str:
    torch: Any = importlib.import_module("torch")
    weights = torch.eye(3, requires_grad=True)
    product = (weights @ torch.arange(3.0)).square().sum()
    product.backward()
    _require(float(product.detach()) == 5.0, f"torch computed a wrong product: {product}")
    _require(weights.grad is not None and float(weights.grad.sum()) == 18.0, "torch computed a wrong gradient")
    return f"torch {torch.__version__} multiplies and differentiates on {torch.get_num_threads()} threads"


def _ray() -> str:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    ray: Any = importlib.import_module("ray")
    ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        configure_logging=False,
        log_to_driver=False,
        object_store_memory=80 * 1024**2,
        _node_ip_address="127.0.0.1",
    )
    try:
        answer = ray.get(ray.remote(lambda: 6 * 7).remote(), timeout=90)
    finally:
        ray.shutdown()
    _require(answer == 42, f"a Ray task returned {answer} instead of 42")
    return f"Ray {ray.__version__} starts on loopback and runs a task"


def _onnx() -> str:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    import numpy as np

    session = onnxruntime.InferenceSession(SQUARE_ONNX, providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": np.array([3.0], np.float32)})
    _require(answer.tolist() == [9.0], f"a model that squares returned {answer.tolist()} for 3")
    return f"onnxruntime {onnxruntime.__version__} runs a model"


def _sb3() -> str:
    sb3: Any = importlib.import_module("stable_baselines3")
    model = sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu", seed=0)
    action, _ = model.predict(model.observation_space.sample(), deterministic=True)
    _require(model.action_space.contains(action), f"a PPO policy returned {action}")
    return f"stable-baselines3 {sb3.__version__} builds a policy that acts"


def _film() -> str:
    import subprocess

    ffmpeg: Any = importlib.import_module("imageio_ffmpeg")
    version = subprocess.run(
        [ffmpeg.get_ffmpeg_exe(), "-version"], capture_output=True, text=True, check=True, timeout=30
    )
    return f"ffmpeg {version.stdout.split()[2]} writes MP4"


CHECKS = {
    check.name: check
    for check in (
        SmokeCheck("physics", "mujoco", _physics),
        SmokeCheck("drawing", "mujoco", _drawing),
        SmokeCheck("camera", "mujoco", _camera, slow=True),
        SmokeCheck("compiling", "numba", _compiling),
        SmokeCheck("zoo", "safetensors", _zoo),
        SmokeCheck("records", "pyarrow", _records),
        SmokeCheck("torch", "torch", _torch),
        SmokeCheck("ray", "ray", _ray, slow=True),
        SmokeCheck("onnx", "onnxruntime", _onnx),
        SmokeCheck("sb3", "stable-baselines3", _sb3, slow=True),
        SmokeCheck("film", "imageio-ffmpeg", _film),
    )
}

EXIT_UNAVAILABLE = 3  # exit code of a check that cannot work on this machine


def main(name: str) -> int:
    """Run one check and print its summary, or the reason of its failure."""
    if name not in CHECKS:
        raise SystemExit(f'unknown check "{name}"; {did_you_mean(name, CHECKS)}')
    try:
        print(CHECKS[name].run())
    except Unavailable as error:
        print(error)
        return EXIT_UNAVAILABLE
    except Exception as error:  # any error is the result of the check
        print(error if isinstance(error, BlendctlError) else f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
