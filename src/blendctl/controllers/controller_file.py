"""The file of a controller: weights, encoding and card as safetensors; nothing in it can run code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from blendctl.atomic import write_atomically
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import Encoding
from blendctl.controllers.network import ContextNetwork, NetworkController
from blendctl.errors import FileFormatError

__all__ = ["read_controller", "write_controller", "FORMAT", "VERSION"]

FORMAT = "blendctl-controller"
VERSION = 1

Array = NDArray[np.float32]


def write_controller(controller: NetworkController, path: str | Path) -> None:
    """Write a controller to one file, whole or not at all."""
    tensors: dict[str, Array] = {"log_std": controller.log_std}
    networks = {"actor": controller.actor, "critic": controller.critic, "cost_critic": controller.cost_critic}
    context = controller.context
    described: dict[str, Any] | None = None
    if context is not None:
        networks["context"] = context.network
        tensors |= {"context.scale": context.scale, "context.shift": context.shift}
        described = {
            "encoding": context.encoding.to_dict(),
            "action_gains": list(context.action_gains),
            "horizons": list(context.horizons),
            "discount": context.discount,
        }
    for name, network in networks.items():
        for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
            tensors[f"{name}.{layer}.weight"] = np.ascontiguousarray(weight, np.float32)
            tensors[f"{name}.{layer}.bias"] = np.ascontiguousarray(bias, np.float32)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": controller.name,
        "encoding": controller.encoding.to_dict(),
        "context": described,
        "card": controller.card,
    }
    write_atomically(Path(path), save(tensors, metadata={"blendctl": json.dumps(header, sort_keys=True)}))


def read_controller(path: str | Path) -> NetworkController:
    """Read a controller; refuse a file that is missing, foreign, damaged or of another version."""
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path} is no file; give the path of a controller's .safetensors file")
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    except (SafetensorError, OSError, TypeError) as error:
        raise FileFormatError(f"{path} cannot be read as safetensors ({error}); is it damaged?") from error
    try:
        header = json.loads(metadata["blendctl"])
        if header["format"] != FORMAT:
            raise KeyError("format")
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(
            f"{path} holds tensors, but no blendctl controller; was it written by blendctl?"
        ) from error
    if header.get("version") != VERSION:
        raise FileFormatError(
            f"{path} has format version {header.get('version')}; this blendctl reads version {VERSION}"
        )
    try:
        return _assemble(header, tensors)
    except (KeyError, TypeError, ValueError, FileFormatError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error


def _assemble(header: dict[str, Any], tensors: dict[str, Array]) -> NetworkController:
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            raise ValueError(f"tensor {name!r} is not finite single precision")
    encoding = Encoding.from_dict(header["encoding"])
    log_std = tensors["log_std"]
    context: ContextNetwork | None = None
    if header["context"] is not None:
        told = header["context"]
        context_encoding = Encoding.from_dict(told["encoding"])
        gains = tuple(float(g) for g in told["action_gains"])
        horizons = tuple(int(h) for h in told["horizons"])
        context = ContextNetwork(
            _network(
                "context",
                tensors,
                inputs=context_encoding.size + len(gains) * log_std.size,
                outputs=2 * len(horizons),
            ),
            context_encoding,
            action_gains=gains,
            horizons=horizons,
            discount=float(told["discount"]),
            scale=_vector("context.scale", tensors, 2 * len(horizons)),
            shift=_vector("context.shift", tensors, 2 * len(horizons)),
        )
        if context_encoding.observation_size != encoding.observation_size:
            raise ValueError("actor and context networks expect observations of different sizes")
    return NetworkController(
        name=str(header["name"]),
        encoding=encoding,
        actor=_network("actor", tensors, inputs=encoding.size, outputs=log_std.size),
        log_std=log_std,
        critic=_network("critic", tensors, inputs=encoding.size, outputs=1),
        cost_critic=_network("cost_critic", tensors, inputs=encoding.size, outputs=1),
        context=context,
        card=dict(header["card"]),
    )


def _network(name: str, tensors: dict[str, Array], *, inputs: int, outputs: int) -> Dense:
    layers = sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in tensors)
    if layers == 0:
        raise ValueError(f"network {name!r} is missing")
    weights = tuple(tensors[f"{name}.{layer}.weight"] for layer in range(layers))
    biases = tuple(tensors[f"{name}.{layer}.bias"] for layer in range(layers))
    size = inputs
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        if weight.ndim != 2 or weight.shape[0] != size or bias.shape != weight.shape[1:]:
            raise ValueError(f"layer {layer} of {name!r} has shape {weight.shape}, expected ({size}, ...)")
        size = weight.shape[1]
    if size != outputs:
        raise ValueError(f"network {name!r} has {size} outputs, expected {outputs}")
    return Dense(weights, biases)


def _vector(name: str, tensors: dict[str, Array], size: int) -> Array:
    if tensors[name].shape != (size,):
        raise ValueError(f"tensor {name!r} has shape {tensors[name].shape}, expected ({size},)")
    return tensors[name]
