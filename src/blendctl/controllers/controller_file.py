"""The file of a controller: weights, encoding and card as safetensors; reading it runs no code."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from blendctl.atomic import write_atomically
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import Encoding
from blendctl.controllers.network import ContextNetwork, NetworkController
from blendctl.errors import FileFormatError
from blendctl.file_reading import parse_json, reading
from blendctl.tensor_bytes import ordered_bytes

FORMAT = "blendctl-controller"
VERSION = 1
LARGEST = np.finfo(np.float32).max

Array = NDArray[np.float32]


def write_controller(controller: NetworkController, path: str | Path) -> None:
    """Write a controller to one file, atomically."""
    tensors: dict[str, Array] = {"log_std": controller.log_std}
    networks = {"actor": controller.actor, "critic": controller.critic, "cost_critic": controller.cost_critic}
    contexts: dict[str, dict[str, Any] | None] = {}
    for name, context in (("context", controller.context), ("longer", controller.longer)):
        contexts[name] = None
        if context is None:
            continue
        networks[name] = context.network
        tensors |= {f"{name}.scale": context.scale, f"{name}.shift": context.shift}
        if context.limits is not None:
            tensors[f"{name}.limits"] = np.clip(context.limits, -LARGEST, LARGEST)  # files hold finite numbers
        stored = {
            "encoding": context.encoding.to_dict(),
            "action_gains": list(context.action_gains),
            "horizons": list(context.horizons),
            "discount": context.discount,
        }
        contexts[name] = stored | ({"factors": context.factors} if context.factors else {})
    for name, network in networks.items():
        tensors |= write_network(name, network)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "name": controller.name,
        "encoding": controller.encoding.to_dict(),
        **contexts,
        "card": controller.card,
    }
    write_tensors(Path(path), header, tensors)


def write_tensors(path: Path, header: dict[str, Any], tensors: dict[str, Array]) -> None:
    """Write header and tensors atomically, with a digest of both that `read_tensors` compares."""
    whole = header | {"digest": _digest(header, tensors)}
    data = save(tensors, metadata={"blendctl": json.dumps(whole, sort_keys=True)})
    write_atomically(path, ordered_bytes(data))


def _digest(header: dict[str, Any], tensors: dict[str, Array]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape} ".encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    return digest.hexdigest()


def read_controller(path: str | Path) -> NetworkController:
    """Read a controller; raise FileFormatError if the file is missing, foreign, damaged or of another version."""
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file; expected the path of a controller's .safetensors file")
    header, tensors = read_tensors(path, content="controller", format_name=FORMAT, version=VERSION)
    try:
        return _assemble(header, tensors, path)
    except (KeyError, TypeError, ValueError, FileFormatError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from error


def _assemble(header: dict[str, Any], tensors: dict[str, Array], path: Path) -> NetworkController:
    """Build the controller; its parts check their own numbers and shapes."""
    if not isinstance(header["name"], str) or not isinstance(header["card"], dict):
        raise ValueError("the name must be a text and the card a JSON object")
    return NetworkController(
        name=header["name"],
        encoding=Encoding.from_dict(header["encoding"]),
        actor=read_network("actor", tensors),
        log_std=tensors["log_std"],
        critic=read_network("critic", tensors),
        cost_critic=read_network("cost_critic", tensors),
        context=_read_context("context", header, tensors),
        longer=_read_context("longer", header, tensors),
        card=header["card"],
        path=path,
    )


def _read_context(name: str, header: dict[str, Any], tensors: dict[str, Array]) -> ContextNetwork | None:
    """Return a context network of a file, None if it has none."""
    values = header["context"] if name == "context" else header.get(name)
    if values is None:
        return None
    if not isinstance(values, dict):
        raise ValueError(f"its {name} network is described by {type(values).__name__}, expected an object")
    factors = values.get("factors", 0)
    return ContextNetwork(
        read_network(name, tensors, activation="relu" if factors else "tanh"),
        Encoding.from_dict(values["encoding"]),
        action_gains=tuple(values["action_gains"]),
        horizons=tuple(values["horizons"]),
        discount=values["discount"],
        scale=tensors[f"{name}.scale"],
        shift=tensors[f"{name}.shift"],
        limits=tensors.get(f"{name}.limits"),
        factors=factors,
    )


def read_tensors(
    path: Path, *, content: str, format_name: str, version: int
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read header and finite float32 tensors of a file; raise FileFormatError if it has another format or version.

    The digest is compared if there is one; files of blendctl 0.1 have none.
    """
    with reading(path, "a safetensors file"), safe_open(str(path), framework="numpy") as file:
        metadata = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    try:
        header = parse_json(metadata["blendctl"])
        if header["format"] != format_name:
            raise KeyError("format")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(
            f"{path} holds tensors, but no blendctl {content}; was it written by blendctl?"
        ) from error
    with reading(path, f"a {content}"):
        if header.get("version") != version:
            raise FileFormatError(
                f"{path} has format version {header.get('version')}; this blendctl reads version {version}"
            )
        for name, tensor in tensors.items():
            if tensor.dtype != np.float32 or not np.isfinite(tensor).all():
                raise ValueError(f"tensor {name!r} is not finite single precision")
        if "digest" in header and header.pop("digest") != _digest(header, tensors):
            raise ValueError("it was changed after it was written, its digest does not match")
    return header, tensors


def write_network(name: str, network: Dense) -> dict[str, Array]:
    """Return the tensors of a network by their names in a file."""
    tensors: dict[str, Array] = {}
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        tensors[f"{name}.{layer}.weight"] = np.ascontiguousarray(weight, np.float32)
        tensors[f"{name}.{layer}.bias"] = np.ascontiguousarray(bias, np.float32)
    return tensors


def read_network(name: str, tensors: dict[str, Array], *, activation: Literal["tanh", "relu"] = "tanh") -> Dense:
    """Return a network from the tensors of a file."""
    layers = range(sum(key.startswith(f"{name}.") and key.endswith(".weight") for key in tensors))
    if not layers:
        raise ValueError(f"network {name!r} is missing")
    return Dense(
        tuple(tensors[f"{name}.{layer}.weight"] for layer in layers),
        tuple(tensors[f"{name}.{layer}.bias"] for layer in layers),
        activation,
    )
