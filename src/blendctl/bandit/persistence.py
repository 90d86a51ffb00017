"""Learners on disk: safetensors for the numbers, JSON for the options, a digest over both.

Loading cannot run code. Format version 1:

    tensors   state (B, ...) float64, rng (B, 4) uint64, laid out as in memory_layout.py
    metadata  format, version, options (JSON), digest (SHA-256 of options and tensors), blendctl

The file may hold further arrays, and JSON data about them: a blender keeps the state of its features there. Their names
begin with "beside."; they have a separate digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl._version import __version__
from blendctl.atomic import write_atomically
from blendctl.bandit import memory_layout
from blendctl.bandit.core import Core
from blendctl.bandit.options import Options
from blendctl.bandit.rules import Rule, describe_rule, make_rule
from blendctl.errors import BlendctlError, FileFormatError, InputError
from blendctl.file_reading import parse_json, reading
from blendctl.tensor_bytes import ordered_bytes

FORMAT, VERSION = "blendctl-bandit", 1
BESIDE = "beside."


def save(
    core: Core,
    path: str | Path,
    *,
    beside: Mapping[str, NDArray[np.float64]] | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write the learners atomically."""
    from safetensors.numpy import save as pack

    values = {field.name: getattr(core.options, field.name) for field in fields(Options)}
    options = json.dumps(values | {"rule": describe_rule(core.rule)}, sort_keys=True)
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "options": options,
        "digest": _digest(options, core.state, core.rng),
        "blendctl": __version__,
    }
    arrays: dict[str, NDArray[Any]] = {"state": core.state, "rng": core.rng}
    if about is not None:
        more = {f"{BESIDE}{name}": np.ascontiguousarray(array) for name, array in (beside or {}).items()}
        arrays |= more
        metadata["about"] = json.dumps(dict(about), sort_keys=True)
        metadata["about_digest"] = _digest(metadata["about"], *(more[name] for name in sorted(more)))
    try:
        write_atomically(Path(path), ordered_bytes(pack(arrays, metadata=metadata)), make_folder=False)
    except OSError as error:
        raise BlendctlError(f"cannot write {path}: {error.strerror or error}") from error


def load(path: str | Path, *, learners: int | None, rule: Rule | None) -> Core:
    """Read the learners; raise FileFormatError if the file is not exactly as `save` wrote it."""
    rule = None if rule is None else make_rule(rule)
    with reading(path, "a saved bandit"):
        return _load(Path(path), learners=learners, rule=rule)


def _load(path: Path, *, learners: int | None, rule: Rule | None) -> Core:
    arrays, metadata = _read(path)
    state, rng = arrays["state"], arrays["rng"]
    try:
        if metadata.get("format") != FORMAT:
            raise FileFormatError(
                f"{path} is not a saved bandit: expected format {FORMAT!r}, actually: {metadata.get('format')!r}"
            )
        if metadata.get("version") != str(VERSION):
            raise FileFormatError(
                f"{path} has format version {metadata.get('version')}, this blendctl reads version {VERSION}; "
                f"it was written by blendctl {metadata.get('blendctl')}"
            )
        if metadata["digest"] != _digest(metadata["options"], state, rng):
            raise FileFormatError(f"{path} was changed after it was written: its digest does not match")
        options = _options(json.loads(metadata["options"]), rule, path)
    except KeyError as error:
        raise FileFormatError(f"{path} is damaged: its metadata lack {error}") from None
    except (TypeError, AttributeError, RecursionError, json.JSONDecodeError, InputError) as error:
        raise FileFormatError(f"{path} is damaged: {error}") from None
    size = memory_layout.learner_size(options.n_features, options.n_objectives)
    count = len(state) if state.ndim else 0
    shapes = state.shape == (count, size) and rng.shape == (count, 4)
    if not count or not shapes or state.dtype != np.float64 or rng.dtype != np.uint64:
        raise FileFormatError(f"{path} is damaged: its arrays do not fit its options")
    if learners is not None and count != learners:
        raise FileFormatError(f"{path} holds {count} learners; load it with BanditBatch.load")
    core = Core.restored(options, state, rng)
    diagonals = core.root.diagonal(axis1=1, axis2=2)  # of U: a square root of V has no zero there
    if not np.isfinite(state).all() or not (diagonals > 0).all() or not rng.any(axis=1).all():
        raise FileFormatError(f"{path} is damaged: its numbers are not those of a learner")
    return core


def load_beside(path: str | Path) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
    """Read the further arrays of a file and the data about them; both are empty if there are none."""
    with reading(path, "a saved blend"):
        return _load_beside(Path(path))


def _load_beside(path: Path) -> tuple[dict[str, NDArray[np.float64]], dict[str, Any]]:
    arrays, metadata = _read(path)
    more = {name.removeprefix(BESIDE): arrays[name] for name in sorted(arrays) if name.startswith(BESIDE)}
    about = metadata.get("about")
    if about is None:
        return {}, {}
    if metadata.get("about_digest") != _digest(about, *more.values()):
        raise FileFormatError(f"{path} was changed after it was written: its digest does not match")
    return more, dict(parse_json(about))


def _read(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileFormatError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            names = {name for name in file.keys() if not name.startswith(BESIDE)}  # noqa: SIM118  # no dictionary
            if names != {"state", "rng"}:
                raise FileFormatError(
                    f"{path} is not a saved bandit: expected the arrays state and rng, actually: {sorted(names)}"
                )
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118  # as above
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:  # numpy lacks some types
        raise FileFormatError(f"{path} is truncated, damaged or not a safetensors file: {error}") from None


def _options(plain: dict[str, Any], rule: Rule | None, path: str | Path) -> Options:
    saved = plain.pop("rule")
    if rule is None:
        if not saved["own"]:
            raise FileFormatError(
                f'{path} was saved with a rule that is not part of blendctl, "{saved["name"]}"; '
                f"pass it again: load(path, rule=...)"
            )
        parameters = {name: tuple(v) if isinstance(v, list) else v for name, v in saved["parameters"].items()}
        rule = make_rule(saved["name"], parameters)
    elif rule.name != saved["name"]:
        raise FileFormatError(f'{path} was saved with the rule "{saved["name"]}", actually: "{rule.name}"')
    return Options(rule=rule, **plain)


def _digest(words: str, *arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256(words.encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
