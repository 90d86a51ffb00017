"""The zoo: find and load the trained controllers of the package, or one from a path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blendctl.atomic import write_atomically
from blendctl.controllers.card import card_markdown
from blendctl.controllers.controller_file import read_controller
from blendctl.controllers.network import NetworkController
from blendctl.errors import InputError, did_you_mean

__all__ = ["PAIRS", "load", "find_controller_file", "zoo_names", "in_zoo", "add_to_zoo", "write_card", "ZOO"]

# The pairs of the paper, by world: the performant controller, then the safe one.
PAIRS = {
    "PointGoal1": ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian"),
    "PointPush1": ("PointPush1/trpo", "PointPush1/cpo"),
    "CarButton1": ("CarButton1/trpo", "CarButton1/trpo-lagrangian"),
}

ZOO = Path(__file__).parent


def zoo_names() -> list[str]:
    """List the controllers of the zoo by the names that `load` takes, such as "PointGoal1/ppo"."""
    return sorted(_names())


def _names() -> Iterator[str]:
    for path in ZOO.glob("*/*.safetensors"):
        yield f"{path.parent.name}/{path.stem}"


def load(name: str | Path) -> NetworkController:
    """Load a controller: a zoo name such as "PointGoal1/ppo", or the path of a .safetensors file.

    With a run directory of `blendctl train`, load its latest controller.
    """
    return read_controller(find_controller_file(name))


def find_controller_file(name: str | Path) -> Path:
    """Return the file of a controller by its zoo name, path or run directory."""
    path = Path(name)
    if str(name) in _names():
        return ZOO / f"{name}.safetensors"
    if path.is_dir() and (path / "controller.safetensors").is_file():
        return path / "controller.safetensors"
    if path.is_file() or path.suffix == ".safetensors":
        return path
    shipped = zoo_names()
    hint = did_you_mean(str(name), shipped) if shipped else "the zoo is empty"
    raise InputError(f'there is no controller "{name}", neither in the zoo nor as a file; {hint}')


def in_zoo(path: Path) -> bool:
    """Return whether a file is part of the installed zoo."""
    return path.resolve().is_relative_to(ZOO.resolve())


def add_to_zoo(run: str | Path, *, zoo: Path | None = None, replace: bool = False) -> Path:
    """Copy a run's controller and its card into a zoo, under World/algorithm; return the new file.

    zoo: the directory; the installed one by default. An existing controller is overwritten only with `replace`.
    """
    controller = load(run)
    if not controller.card:
        raise InputError(f"the controller of {run} has no card yet; finish the training run first")
    world, algorithm = (str(controller.card.get(word, "")) for word in ("world", "algorithm"))
    for word in (world, algorithm):
        if not word or Path(word).name != word:
            raise InputError(f"the card of {run} must name a world and an algorithm, actually: {word!r}")
    path = (zoo or ZOO) / world / f"{algorithm}.safetensors"
    if path.exists() and not replace:
        raise InputError(
            f'the zoo has a "{world}/{algorithm}" already; overwrite it with --replace. Every command also accepts the '
            f"path {run} directly"
        )
    write_atomically(path, find_controller_file(run).read_bytes())
    write_card(controller.card, path)
    return path


def write_card(card: dict[str, Any], controller_path: Path) -> None:
    """Write a card beside its controller, as JSON and as Markdown."""
    write_atomically(controller_path.with_suffix(".json"), (json.dumps(card, indent=2) + "\n").encode())
    write_atomically(controller_path.with_suffix(".md"), card_markdown(card).encode())
