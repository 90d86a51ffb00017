"""Trials of what blendctl stands on: each does a small piece of real work, in words what came of it.

`python -m blendctl.cli.smoke_checks NAME` runs one and prints its words; checkup.py does that in a process per trial,
because a broken driver or library can end, or stop, the process that touches it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blendctl.errors import BlendctlError, did_you_mean

__all__ = ["TRIALS", "Trial", "TrialFailed", "Unavailable"]

# A model of ONNX that multiplies its input by itself.
SQUARE_ONNX = (
    b'\x08\x08\x12\x00:5\n\x0e\n\x01x\n\x01x\x12\x01y"\x03Mul\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08'
    b"\x01b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)


class TrialFailed(BlendctlError):
    """What was tried gave a wrong answer."""


class Unavailable(BlendctlError):
    """What was tried is optional and cannot work on this machine; the message says what would help."""


@dataclass(frozen=True)
class Trial:
    """One thing to try."""

    name: str
    package: str  # what must be installed for it
    work: Callable[[], str]  # does it, and says what came of it
    slow: bool = False  # left out by --quick


def _must(right: bool, words: str) -> None:
    if not right:
        raise TrialFailed(words)


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
    _must(bool(np.isfinite(first).all()), "ten steps of PointGoal1 gave observations that are not finite")
    _must(
        all((a == b).all() for a, b in zip(first, again, strict=True)),
        "a restored world took another course than before",
    )
    return f"MuJoCo {mujoco.__version__} steps PointGoal1, twice the same"


def _drawing() -> str:
    from blendctl.envs import SingleWorld

    world = SingleWorld("PointGoal1", render_mode="topdown")
    world.reset(seed=0)
    picture = world.render()
    _must(
        picture is not None and picture.ndim == 3 and picture.std() > 1,
        "the picture from above came out empty",
    )
    return "a world is drawn from above"


def _camera() -> str:
    from blendctl.envs import SingleWorld
    from blendctl.envs.gl import explain_missing, find_backend

    backend = find_backend()
    if backend is None:
        raise Unavailable(explain_missing())
    world = SingleWorld("PointGoal1", render_mode="rgb_array")
    world.reset(seed=0)
    picture = world.render()
    world.close()
    _must(picture is not None and picture.std() > 1, f"MuJoCo's camera gave an empty picture with {backend}")
    return f"MuJoCo's camera draws with {backend.upper()}"


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

    _must(total(np.arange(101.0)) == 5050.0, "a compiled loop added up wrongly")
    bandit = BlendingBandit(n_features=2, n_objectives=2, seed=0)
    for _ in range(50):
        arm = bandit.decide(np.eye(2)).arm
        bandit.update(np.eye(2)[arm], [float(arm), float(arm)])
    _must(bandit.decide(np.eye(2)).arm == 1, "the learner did not find the better of two arms")
    return f"numba {numba.__version__} compiles, and the learner learns"


def _zoo() -> str:
    import numpy as np

    from blendctl.controllers import load, zoo_names

    names = zoo_names()
    _must(bool(names), "no trained controllers came with this installation")
    for name in names:
        controller = load(name)
        action = np.asarray(controller.act(np.zeros(controller.encoding.observation_size)))
        _must(bool(np.isfinite(action).all()), f"{name} gave {action}")
    return f"{len(names)} trained controllers load and act"


def _records() -> str:
    import tempfile
    from pathlib import Path

    import pyarrow
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        table = pyarrow.table({"step": [1, 2, 3], "name": ["fast", "safe", "fast"]})
        pyarrow.parquet.write_table(table, path)
        _must(pyarrow.parquet.read_table(path).equals(table), "a table came back from Parquet changed")
    return f"pyarrow {pyarrow.__version__} writes Parquet and reads it back"


def _torch() -> str:
    torch: Any = importlib.import_module("torch")
    weights = torch.eye(3, requires_grad=True)
    product = (weights @ torch.arange(3.0)).square().sum()
    product.backward()
    _must(float(product.detach()) == 5.0, f"torch multiplied wrongly: {product}")
    _must(weights.grad is not None and float(weights.grad.sum()) == 18.0, "torch gave a wrong gradient")
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
    _must(answer == 42, f"a task on Ray gave {answer} instead of 42")
    return f"Ray {ray.__version__} starts on loopback and runs a task"


def _onnx() -> str:
    onnxruntime: Any = importlib.import_module("onnxruntime")
    import numpy as np

    session = onnxruntime.InferenceSession(SQUARE_ONNX, providers=["CPUExecutionProvider"])
    (answer,) = session.run(None, {"x": np.array([3.0], np.float32)})
    _must(answer.tolist() == [9.0], f"a model that squares gave {answer.tolist()} for 3")
    return f"onnxruntime {onnxruntime.__version__} runs a model"


def _sb3() -> str:
    sb3: Any = importlib.import_module("stable_baselines3")
    model = sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu", seed=0)
    action, _ = model.predict(model.observation_space.sample(), deterministic=True)
    _must(model.action_space.contains(action), f"a PPO policy gave {action}")
    return f"stable-baselines3 {sb3.__version__} makes a policy that acts"


def _film() -> str:
    import subprocess

    ffmpeg: Any = importlib.import_module("imageio_ffmpeg")
    told = subprocess.run([ffmpeg.get_ffmpeg_exe(), "-version"], capture_output=True, text=True, check=True, timeout=30)
    return f"ffmpeg {told.stdout.split()[2]} makes MP4"


TRIALS = {
    trial.name: trial
    for trial in (
        Trial("physics", "mujoco", _physics),
        Trial("drawing", "mujoco", _drawing),
        Trial("camera", "mujoco", _camera, slow=True),
        Trial("compiling", "numba", _compiling),
        Trial("zoo", "safetensors", _zoo),
        Trial("records", "pyarrow", _records),
        Trial("torch", "torch", _torch),
        Trial("ray", "ray", _ray, slow=True),
        Trial("onnx", "onnxruntime", _onnx),
        Trial("sb3", "stable-baselines3", _sb3, slow=True),
        Trial("film", "imageio-ffmpeg", _film),
    )
}

EXIT_UNAVAILABLE = 3  # of the child: optional, and not possible here


def main(name: str) -> int:
    """Run one trial; its words, or why it failed, are the last line printed."""
    if name not in TRIALS:
        raise SystemExit(f'there is no trial "{name}"; {did_you_mean(name, TRIALS)}')
    try:
        print(TRIALS[name].work())
    except Unavailable as error:
        print(error)
        return EXIT_UNAVAILABLE
    except Exception as error:  # whatever it is, it is the finding
        print(error if isinstance(error, BlendctlError) else f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
