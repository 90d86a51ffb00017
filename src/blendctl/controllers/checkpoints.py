"""Policies trained elsewhere: OmniSafe checkpoints and stable-baselines3 archives, as plain weights."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.controllers.torch_zip import read_torch_zip
from blendctl.errors import FileFormatError, InputError

__all__ = ["GaussianPolicy", "read_omnisafe", "read_sb3"]

FloatArray = NDArray[np.float64]

ACTIVATIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "identity": lambda x: x,
}


@dataclass(frozen=True)
class GaussianPolicy:
    """A Gaussian policy: a network gives the mean, a vector the spread; observations may be standardised."""

    name: str
    layers: tuple[tuple[FloatArray, FloatArray], ...]  # (inputs, outputs) and (outputs,) each
    activation: str  # between the layers
    log_std: FloatArray  # (action_size,)
    shift: FloatArray | float = 0.0  # (observation_size,) subtracted from observations
    scale: FloatArray | float = 1.0  # (observation_size,) that they are divided by
    clip: float = np.inf  # ... and clipped to
    low: float = -1.0
    high: float = 1.0

    keeps_time = True

    @property
    def observation_size(self) -> int:
        """Entries of an observation."""
        return int(self.layers[0][0].shape[0])

    @property
    def action_size(self) -> int:
        """Entries of an action."""
        return int(self.log_std.size)

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> FloatArray:
        """Give the action for one observation or a batch: the mean, or with `rng` a draw."""
        x = np.asarray(observation, np.float64)
        if x.shape[-1:] != (self.observation_size,):
            raise InputError(
                f"observation has shape {x.shape}; {self.name} takes ({self.observation_size},) or a batch of it"
            )
        x = np.clip((x - self.shift) / self.scale, -self.clip, self.clip)
        act = ACTIVATIONS[self.activation]
        for weight, bias in self.layers[:-1]:
            x = act(x @ weight + bias)
        mean = x @ self.layers[-1][0] + self.layers[-1][1]
        if rng is not None:
            mean = mean + np.exp(self.log_std) * rng.standard_normal(mean.shape)
        return np.asarray(np.clip(mean, self.low, self.high))


def read_omnisafe(path: str | Path, *, activation: str | None = None) -> GaussianPolicy:
    """Read an OmniSafe checkpoint (`torch_save/epoch-N.pt`): its Gaussian actor and its normaliser.

    The activation comes from the run's config.json if it lies where OmniSafe puts it, else it is tanh.
    """
    path = Path(path)
    found = read_torch_zip(path)
    actor = found.get("pi")
    if not isinstance(actor, Mapping):
        raise FileFormatError(
            f'{path} is no OmniSafe checkpoint: it has no actor "pi", but: {", ".join(map(str, found))}'
        )
    if "log_std" not in actor or not any(key.startswith("mean.") for key in actor):
        raise FileFormatError(
            f"{path} holds an actor that is not OmniSafe's Gaussian one (PPO, TRPO, CPO and their kin); "
            f"its parts: {', '.join(actor)}"
        )
    chosen = activation or _omnisafe_activation(path)
    layers = _layers(actor, "mean", path)
    more: dict[str, Any] = {}
    normaliser = found.get("obs_normalizer")
    if isinstance(normaliser, Mapping) and int(normaliser["_count"]) > 1:
        more = {
            "shift": np.asarray(normaliser["_mean"], np.float64),
            "scale": np.maximum(np.asarray(normaliser["_std"], np.float64), 1e-8),
            "clip": float(np.asarray(normaliser["_clip"]).ravel()[0]),
        }
    return _policy(path, layers, chosen, actor["log_std"], more)


def _omnisafe_activation(path: Path) -> str:
    config = path.parent.parent / "config.json"
    if not config.is_file():
        return "tanh"
    try:
        return str(json.loads(config.read_text())["model_cfgs"]["actor"]["activation"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{config} does not tell the actor's activation: {error!r}") from None


def read_sb3(path: str | Path, *, activation: str | None = None) -> GaussianPolicy:
    """Read the actor of a stable-baselines3 archive (.zip): PPO, A2C, TRPO with an MlpPolicy and continuous actions.

    Only weights and plain text are read: nothing in the archive is unpickled. Other models: load them with
    stable-baselines3 yourself and pass the model, which blendctl takes as it is.
    """
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            weights = read_torch_zip(io.BytesIO(archive.read("policy.pth")))
            told = json.loads(archive.read("data")) if "data" in archive.namelist() else {}
    except (zipfile.BadZipFile, KeyError, OSError, ValueError) as error:
        raise FileFormatError(f"{path} is no stable-baselines3 archive: {error}") from None
    if "action_net.weight" not in weights or "log_std" not in weights:
        raise FileFormatError(
            f"{path} holds no Gaussian actor with an MlpPolicy (PPO, A2C, TRPO); load it with stable-baselines3 "
            "and pass the model"
        )
    prefix = "mlp_extractor.policy_net"
    hidden = _layers(weights, prefix, path) if any(k.startswith(prefix) for k in weights) else ()
    head = (_matrix(weights["action_net.weight"], path), np.asarray(weights["action_net.bias"], np.float64))
    return _policy(path, (*hidden, head), activation or _sb3_activation(told), weights["log_std"], {})


def _sb3_activation(told: Mapping[str, Any]) -> str:
    kwargs = told.get("policy_kwargs")
    text = json.dumps({k: v for k, v in kwargs.items() if k != ":serialized:"}) if isinstance(kwargs, Mapping) else ""
    named = re.search(r"activation\.(\w+)", text)
    return named.group(1).lower() if named else "tanh"


def _layers(weights: Mapping[str, Any], prefix: str, path: Path) -> tuple[tuple[FloatArray, FloatArray], ...]:
    found = (re.fullmatch(re.escape(prefix) + r"\.(\d+)\.weight", key) for key in weights)
    numbers = sorted(int(match.group(1)) for match in found if match)
    return tuple(
        (
            _matrix(weights[f"{prefix}.{i}.weight"], path),
            np.asarray(weights[f"{prefix}.{i}.bias"], np.float64),
        )
        for i in numbers
    )


def _matrix(weight: Any, path: Path) -> FloatArray:
    matrix = np.asarray(weight, np.float64)
    if matrix.ndim != 2:
        raise FileFormatError(f"{path} has a layer of shape {matrix.shape}; only dense layers can be read")
    return np.ascontiguousarray(matrix.T)


def _policy(
    path: Path,
    layers: tuple[tuple[FloatArray, FloatArray], ...],
    activation: str,
    log_std: Any,
    more: dict[str, Any],
) -> GaussianPolicy:
    if activation not in ACTIVATIONS:
        raise FileFormatError(f'{path} uses the activation "{activation}"; allowed: {", ".join(ACTIVATIONS)}')
    sizes = [layers[0][0].shape[0], *(w.shape[1] for w, _ in layers)] if layers else []
    fits = all(
        w.shape == (a, b) and bias.shape == (b,) for (w, bias), a, b in zip(layers, sizes, sizes[1:], strict=False)
    )
    spread = np.asarray(log_std, np.float64).ravel()
    finite = all(np.isfinite(part).all() for layer in layers for part in layer) and np.isfinite(spread).all()
    if not layers or not fits or not finite or spread.size != sizes[-1]:
        raise FileFormatError(f"{path} is damaged: its layers do not fit together or are not finite")
    return GaussianPolicy(path.stem, layers, activation, spread, **more)
