"""The file of look-ahead networks: weights, encoding, digests and card as safetensors; reading it runs no code."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from blendctl.controllers.controller_file import read_network, read_tensors, write_network, write_tensors
from blendctl.controllers.encoding import Encoding
from blendctl.controllers.lookahead_network import LookAheadNetwork, Normalisation
from blendctl.controllers.number_checks import check_whole
from blendctl.controllers.path_encoding import MapDeclaration, PathEncoding
from blendctl.errors import FileFormatError
from blendctl.file_reading import reading

FORMAT = "blendctl-lookahead"
VERSION = 1
LOOKAHEAD_FILE = "lookahead.safetensors"  # in the directory of a training run

Array = NDArray[np.float32]


def write_lookahead(network: LookAheadNetwork, path: str | Path) -> None:
    """Write look-ahead networks to one file, atomically."""
    tensors: dict[str, Array] = {"level_unit": network.level_unit, "difference_unit": network.difference_unit}
    tensors |= write_network("level", network.level)
    for number, member in enumerate(network.differences):
        tensors |= write_network(f"difference{number}", member)
    encoding: dict[str, Any] | None = None
    if isinstance(network.encoding, Encoding):
        encoding = network.encoding.to_dict()
    else:
        tensors |= {"normalisation.mean": network.encoding.mean, "normalisation.scale": network.encoding.scale}
    paths, path_arrays = write_paths(network.paths)
    tensors |= path_arrays
    header = {
        "format": FORMAT,
        "version": VERSION,
        "encoding": encoding,
        "paths": paths,
        "weight_range": list(network.weight_range),
        "members": len(network.differences),
        "hold": network.hold,
        "discount": network.discount,
        "digests": list(network.digests),
        "names": list(network.names),
        "card": network.card,
    }
    write_tensors(Path(path), header, tensors)


def write_paths(paths: PathEncoding | None) -> tuple[dict[str, Any] | None, dict[str, Array]]:
    """Return paths as plain JSON data and named arrays."""
    if paths is None:
        return None, {}
    header = {
        "map": asdict(paths.declaration),
        "hold": paths.hold,
        "discount": paths.discount,
        "controllers": paths.controllers,
    }
    arrays = {"paths.unit": paths.unit, "paths.spread": paths.spread}
    return header, arrays | write_network("paths.network", paths.network)


def read_paths(header: dict[str, Any] | None, tensors: dict[str, Array]) -> PathEncoding | None:
    """Build paths from what `write_paths` returned; the parts check their own numbers and shapes."""
    if header is None:
        return None
    return PathEncoding(
        MapDeclaration.from_dict(header["map"]),
        network=read_network("paths.network", tensors, activation="relu"),
        unit=tensors["paths.unit"],
        spread=tensors["paths.spread"],
        hold=header["hold"],
        discount=header["discount"],
        controllers=header["controllers"],
    )


def read_lookahead(path: str | Path) -> LookAheadNetwork:
    """Read look-ahead networks from a file or from the directory of a training run.

    Raise FileFormatError if the file is missing, foreign, damaged or of another version.
    """
    path = Path(path)
    path = path / LOOKAHEAD_FILE if path.is_dir() else path
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file; expected the path of look-ahead networks (.safetensors)")
    header, tensors = read_tensors(path, content="look-ahead networks", format_name=FORMAT, version=VERSION)
    with reading(path, "look-ahead networks"):
        return _assemble(header, tensors)


def read_digests(path: Path) -> tuple[str, ...] | None:
    """Return the digests of the controllers from the header alone; None if it is not such a file."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            header = json.loads((file.metadata() or {})["blendctl"])
        return tuple(header["digests"]) if header["format"] == FORMAT else None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _assemble(header: dict[str, Any], tensors: dict[str, Array]) -> LookAheadNetwork:
    """Build the networks; the parts check their own numbers and shapes."""
    encoding: Encoding | Normalisation
    if header["encoding"] is not None:
        encoding = Encoding.from_dict(header["encoding"])
    else:
        encoding = Normalisation(tensors["normalisation.mean"], tensors["normalisation.scale"])
    low, high = header["weight_range"]
    if not isinstance(header["card"], dict):
        raise ValueError("the card must be a JSON object")
    return LookAheadNetwork(
        encoding=encoding,
        level=read_network("level", tensors, activation="relu"),
        differences=tuple(
            read_network(f"difference{number}", tensors, activation="relu")
            for number in range(check_whole(header["members"], "the number of difference networks", low=1, high=100))
        ),
        level_unit=tensors["level_unit"],
        difference_unit=tensors["difference_unit"],
        weight_range=(low, high),
        hold=header["hold"],
        discount=header["discount"],
        digests=tuple(header["digests"]),
        names=tuple(header["names"]),
        card=header["card"],
        paths=read_paths(header.get("paths"), tensors),
    )
