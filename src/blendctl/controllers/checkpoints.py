"""Read policies of other libraries as plain weights: OmniSafe checkpoints and stable-baselines3 archives."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.controllers.torch_zip import LARGEST, read_torch_zip
from blendctl.errors import FileFormatError, InputError
from blendctl.file_reading import check_archive, parse_json, read_json_object, reading

Layers = tuple[tuple[FloatArray, FloatArray], ...]  # weights (inputs, outputs) and biases (outputs,)

LARGEST_LOG_STD = 20.0

ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class GaussianPolicy:
    """A Gaussian policy: a network computes the mean, a vector holds the log standard deviation."""

    name: str
    layers: Layers
    activation: str  # between the layers
    log_std: FloatArray  # (action_size,)
    shift: FloatArray | float = 0.0  # (observation_size,) subtracted from observations
    scale: FloatArray | float = 1.0  # (observation_size,) divisor of observations
    clip: float = np.inf  # limit of the standardised observations
    low: float = -1.0
    high: float = 1.0

    keeps_time = True

    def __repr__(self) -> str:
        sizes = "-".join(str(weight.shape[0]) for weight, _ in self.layers)
        return f"GaussianPolicy({self.name!r}, {sizes}-{self.action_size}, {self.activation})"

    @property
    def observation_size(self) -> int:
        """Entries of an observation."""
        return int(self.layers[0][0].shape[0])

    @property
    def action_size(self) -> int:
        """Entries of an action."""
        return int(self.log_std.size)

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> FloatArray:
        """Return the action for one observation or a batch: the mean, or with `rng` a sample."""
        x = np.asarray(observation, np.float64)
        if x.shape[-1:] != (self.observation_size,):
            raise InputError(
                f"observation has shape {x.shape}; {self.name} takes ({self.observation_size},) or a batch of it"
            )
        x = np.clip((x - self.shift) / self.scale, -self.clip, self.clip)
        activate = ACTIVATIONS[self.activation]
        for weight, bias in self.layers[:-1]:
            x = activate(x @ weight + bias)
        mean = x @ self.layers[-1][0] + self.layers[-1][1]
        if rng is not None:
            mean = mean + np.exp(self.log_std) * rng.standard_normal(mean.shape)
        return np.asarray(np.clip(mean, self.low, self.high))


def read_omnisafe(path: str | Path, *, activation: str | None = None) -> GaussianPolicy:
    """Read an OmniSafe checkpoint (`torch_save/epoch-N.pt`): its Gaussian actor and its normaliser.

    The activation is read from the run's config.json if OmniSafe's directory has one, otherwise it is tanh.
    """
    path = Path(path)
    checkpoint = read_torch_zip(path)
    actor = checkpoint.get("pi")
    if not isinstance(actor, Mapping):
        raise FileFormatError(
            f'{path} is not an OmniSafe checkpoint: it has no actor "pi", but: {", ".join(map(str, checkpoint))}'
        )
    if "log_std" not in actor or not any(str(key).startswith("mean.") for key in actor):
        raise FileFormatError(
            f"{path} holds an actor that is not OmniSafe's Gaussian one (PPO, TRPO, CPO and related); "
            f"its parts: {', '.join(map(str, actor))}"
        )
    activation = activation or _omnisafe_activation(path)
    with reading(path, "an OmniSafe checkpoint"):
        layers = _layers(actor, "mean")
        standardise: dict[str, Any] = {}
        normaliser = checkpoint.get("obs_normalizer")
        if isinstance(normaliser, Mapping) and int(normaliser["_count"]) > 1:
            size = layers[0][0].shape[:1]
            standardise = {
                "shift": _array(normaliser["_mean"], size),
                "scale": np.maximum(_array(normaliser["_std"], size), 1e-8),
                "clip": float(np.asarray(normaliser["_clip"]).ravel()[0]),
            }
            if not standardise["clip"] > 0.0:
                raise ValueError(f"the normaliser clips to {standardise['clip']}")
        return _policy(path, layers, activation, actor["log_std"], **standardise)


def _omnisafe_activation(path: Path) -> str:
    config = path.parent.parent / "config.json"
    if not config.is_file():
        return "tanh"
    with reading(config, "a configuration with the actor's activation"):
        return str(read_json_object(config)["model_cfgs"]["actor"]["activation"])


def read_sb3(path: str | Path, *, activation: str | None = None) -> GaussianPolicy:
    """Read the actor of a stable-baselines3 archive (.zip): PPO, A2C, TRPO with an MlpPolicy and continuous actions.

    Only weights and plain text are read; nothing in the archive is unpickled. For other models, load them with
    stable-baselines3 and pass the model itself.
    """
    path = Path(path)
    with reading(path, "a stable-baselines3 archive"), zipfile.ZipFile(path) as archive:
        check_archive(archive, path.stat().st_size)
        if archive.getinfo("policy.pth").file_size > LARGEST:
            raise ValueError(f"its policy.pth unpacks to more than {LARGEST >> 20} MiB")
        weights = read_torch_zip(io.BytesIO(archive.read("policy.pth")))
        settings = parse_json(archive.read("data")) if "data" in archive.namelist() else {}
    if "action_net.weight" not in weights or "log_std" not in weights:
        raise FileFormatError(
            f"{path} holds no Gaussian actor with an MlpPolicy (PPO, A2C, TRPO); load it with stable-baselines3 "
            "and pass the model"
        )
    with reading(path, "a stable-baselines3 archive"):
        layers = (*_layers(weights, "mlp_extractor.policy_net"), _layer(weights, "action_net"))
        return _policy(path, layers, activation or _sb3_activation(settings), weights["log_std"])


def _sb3_activation(settings: Any) -> str:
    kwargs = settings.get("policy_kwargs") if isinstance(settings, Mapping) else None
    text = json.dumps({k: v for k, v in kwargs.items() if k != ":serialized:"}) if isinstance(kwargs, Mapping) else ""
    named = re.search(r"activation\.(\w+)", text)
    return named.group(1).lower() if named else "tanh"


def _layers(weights: Mapping[Any, Any], prefix: str) -> Layers:
    """Return the dense layers under "prefix.0", "prefix.2" and so on, in order."""
    matches = (re.fullmatch(re.escape(prefix) + r"\.(\d{1,6})\.weight", str(key)) for key in weights)
    return tuple(_layer(weights, f"{prefix}.{i}") for i in sorted(int(match.group(1)) for match in matches if match))


def _layer(weights: Mapping[Any, Any], name: str) -> tuple[FloatArray, FloatArray]:
    matrix = _array(weights[f"{name}.weight"])
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"layer {name} has shape {matrix.shape}; only dense layers can be read")
    return np.ascontiguousarray(matrix.T), _array(weights[f"{name}.bias"], matrix.shape[:1])


def _array(value: Any, shape: tuple[int, ...] | None = None) -> FloatArray:
    """Return finite numbers as float64, of a shape if one is required."""
    array = np.asarray(value, np.float64)
    if (shape is not None and array.shape != shape) or not np.isfinite(array).all():
        raise ValueError(f"an array of shape {array.shape} does not fit its layer, or is not finite")
    return array


def _policy(path: Path, layers: Layers, activation: str, log_std: Any, **standardise: Any) -> GaussianPolicy:
    if activation not in ACTIVATIONS:
        raise FileFormatError(f'{path} uses the activation "{activation}"; allowed: {", ".join(ACTIVATIONS)}')
    sizes = [weight.shape for weight, _ in layers]
    if not layers or any(before[1] != after[0] for before, after in pairwise(sizes)):
        raise ValueError(f"its layers {sizes} do not fit together")
    spread = _array(np.ravel(log_std), (sizes[-1][1],))
    if np.abs(spread).max() > LARGEST_LOG_STD:
        raise ValueError(f"log_std must lie within {LARGEST_LOG_STD:g}")
    return GaussianPolicy(path.stem, layers, activation, spread, **standardise)
