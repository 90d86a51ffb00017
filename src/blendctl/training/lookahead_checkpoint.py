"""The checkpoint of look-ahead training: networks, optimiser, generator and all decisions, as safetensors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import load_file
from safetensors.numpy import save as save_arrays
from safetensors.torch import save as save_tensors

from blendctl.atomic import write_atomically
from blendctl.controllers import Encoding
from blendctl.controllers.controller_file import read_tensors, write_tensors
from blendctl.controllers.lookahead_file import read_paths, write_paths
from blendctl.controllers.lookahead_network import Normalisation
from blendctl.controllers.number_checks import check_real, check_whole
from blendctl.controllers.path_encoding import PathEncoding
from blendctl.errors import InputError
from blendctl.file_reading import parse_json, reading
from blendctl.training.lookahead_config import LookAheadConfig
from blendctl.training.lookahead_data import DecisionBuffer, Decisions
from blendctl.training.lookahead_learner import LookAheadLearner

FORMAT = "blendctl-lookahead-checkpoint"
VERSION = 1
CHECKPOINT_FILE = "checkpoint.safetensors"
PATHS_FILE = "paths.safetensors"  # written once, before the first decision
PATHS_FORMAT = "blendctl-paths"
HELD_OUT_FILE = "held_out.safetensors"
DECISIONS = "decisions-*.safetensors"  # decisions-FIRST-LAST, appended at every checkpoint
COUNTS = ("done", "size", "held_out", "updates")
MOST = 2**40


@dataclass(frozen=True)
class LookAheadCheckpoint:
    """The state of a run, without its decisions."""

    config: LookAheadConfig
    digests: list[str]
    done: int  # decisions of each world
    size: int  # decisions in the replay
    held_out: int  # decisions that are held out
    updates: int  # gradient steps
    seconds: float
    rng: dict[str, Any]
    tensors: dict[str, torch.Tensor]

    def normalisation(self) -> Normalisation:
        """Return the saved normalisation of observations."""
        try:
            mean, scale = (self.tensors[f"normalisation.{name}"].numpy() for name in ("mean", "scale"))
        except KeyError as error:
            raise InputError("the run was started with an encoding; resume it with the same one") from error
        return Normalisation(mean, scale)


def write_checkpoint(
    directory: Path,
    *,
    config: LookAheadConfig,
    digests: list[str],
    replay: DecisionBuffer,
    held_out: DecisionBuffer,
    learner: LookAheadLearner,
    encoding: Encoding | Normalisation,
    done: int,
    seconds: float,
    rng: np.random.Generator,
) -> None:
    """Write the new decisions, then the state that refers to them; a crash in between leaves the old state valid."""
    written = max((int(path.stem.split("-")[2]) for path in directory.glob(DECISIONS)), default=0)
    if replay.size > written:
        path = directory / f"decisions-{written:09d}-{replay.size:09d}.safetensors"
        _write(replay.take(slice(written, replay.size)), path)
    if held_out.size:
        _write(held_out.take(slice(0, held_out.size)), directory / HELD_OUT_FILE)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "config": config.to_dict(),
        "digests": digests,
        "done": done,
        "size": replay.size,
        "held_out": held_out.size,
        "updates": learner.updates,
        "seconds": seconds,
        "rng": rng.bit_generator.state,
    }
    tensors = learner.tensors()
    if isinstance(encoding, Normalisation):
        tensors["normalisation.mean"] = torch.from_numpy(encoding.mean)
        tensors["normalisation.scale"] = torch.from_numpy(encoding.scale)
    data = save_tensors(tensors, metadata={"blendctl": json.dumps(header)})
    write_atomically(directory / CHECKPOINT_FILE, data)


def read_checkpoint(directory: Path) -> LookAheadCheckpoint:
    """Read the state of a run; raise InputError if there is none, FileFormatError if it is damaged."""
    path = directory / CHECKPOINT_FILE
    if not path.is_file():
        raise InputError(f"{directory} has no checkpoint to resume; start the run without resume")
    with reading(path, "a readable look-ahead checkpoint"):
        with safe_open(str(path), framework="pt") as file:
            header = parse_json((file.metadata() or {})["blendctl"])
            if (header["format"], header["version"]) != (FORMAT, VERSION):
                raise ValueError(f"format {header['format']}, version {header['version']}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
        counts = {key: check_whole(header[key], key, low=0, high=MOST) for key in COUNTS}
        np.random.default_rng().bit_generator.state = header["rng"]  # raises if it is not a state
        return LookAheadCheckpoint(
            config=LookAheadConfig.from_dict(header["config"]),
            digests=header["digests"],
            seconds=check_real(header["seconds"], "seconds", low=0.0),
            rng=header["rng"],
            tensors=tensors,
            **counts,
        )


def write_path_encoding(paths: PathEncoding | None, directory: Path) -> None:
    """Write the paths of a run, None if it has none."""
    header, tensors = write_paths(paths)
    directory.mkdir(parents=True, exist_ok=True)
    write_tensors(directory / PATHS_FILE, {"format": PATHS_FORMAT, "version": VERSION, "paths": header}, tensors)


def read_path_encoding(directory: Path) -> PathEncoding | None:
    """Read the paths of a run, None if it has none; raise FileFormatError if the file is damaged."""
    path = directory / PATHS_FILE
    header, tensors = read_tensors(path, content="paths of controllers", format_name=PATHS_FORMAT, version=VERSION)
    with reading(path, "paths of controllers"):
        return read_paths(header["paths"], tensors)


def read_decisions(directory: Path) -> Iterator[Decisions]:
    """Yield the decisions of the replay, in their order."""
    for path in sorted(directory.glob(DECISIONS)):
        yield _read(path)


def read_held_out(directory: Path) -> tuple[Decisions]:
    """Return the decisions that are held out."""
    return (_read(directory / HELD_OUT_FILE),)


def _write(decisions: Decisions, path: Path) -> None:
    write_atomically(path, save_arrays({name: np.ascontiguousarray(array) for name, array in vars(decisions).items()}))


def _read(path: Path) -> Decisions:
    with reading(path, "decisions of look-ahead training"):
        decisions = Decisions(**load_file(str(path)))
        n, k = decisions.near_carry.shape
        empty = Decisions.empty(0, k, decisions.inputs.shape[1])
        for name, array in vars(decisions).items():
            expected = getattr(empty, name)
            if array.dtype != expected.dtype or array.shape != (n, *expected.shape[1:]) or not np.isfinite(array).all():
                raise ValueError(f"{name} has a wrong shape or type, or is not finite")
        return decisions
