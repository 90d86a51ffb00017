"""The zoo: find and load the trained controllers and look-ahead networks of the package, or one from a path."""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from blendctl.atomic import write_atomically
from blendctl.controllers.base import Controller
from blendctl.controllers.card import card_markdown, lookahead_markdown
from blendctl.controllers.controller_file import read_controller, write_controller
from blendctl.controllers.lookahead_file import LOOKAHEAD_FILE, read_digests, read_lookahead
from blendctl.controllers.lookahead_network import LookAheadNetwork, controller_digest
from blendctl.controllers.network import NetworkController
from blendctl.errors import InputError, did_you_mean

# The pairs of the paper, by world: the performant controller, then the safe one.
PAIRS = {
    "PointGoal1": ("PointGoal1/ppo", "PointGoal1/ppo-lagrangian"),
    "PointPush1": ("PointPush1/trpo", "PointPush1/cpo"),
    "CarButton1": ("CarButton1/trpo", "CarButton1/trpo-lagrangian"),
}

# The controllers that commands use to look ahead, where networks of more than the pair ship: another way to go on is
# worth more than better foresight of two, and a cost budget needs one that costs less than the safe one of the pair.
LOOKAHEAD_SETS = {
    "PointGoal1": ("PointGoal1/ppo", "PointGoal1/trpo", "dwa", "PointGoal1/ppo-lagrangian"),
    "PointPush1": ("PointPush1/trpo", "PointPush1/ppo-lagrangian", "push", "PointPush1/cpo"),
    "CarButton1": ("CarButton1/trpo", "dwa", "stop", "CarButton1/trpo-lagrangian"),
}

ZOO = Path(__file__).parent
LOOKAHEAD_SUFFIX = ".lookahead.safetensors"  # WORLD/NAME+NAME.lookahead.safetensors


def shipped_controllers(world: str, *, lookahead: bool = False) -> tuple[str, ...]:
    """Return the default controllers of a world: its pair, or its set to look ahead with, or none."""
    names = (LOOKAHEAD_SETS if lookahead and world in LOOKAHEAD_SETS else PAIRS).get(world, ())
    return names if {name for name in names if "/" in name} <= set(zoo_names()) else ()


def zoo_names() -> list[str]:
    """List the controllers of the zoo by the names that `load` takes, such as "PointGoal1/ppo"."""
    return sorted(_names())


def _names() -> Iterator[str]:
    for path in ZOO.glob("*/*.safetensors"):
        if not path.name.endswith(LOOKAHEAD_SUFFIX):
            yield f"{path.parent.name}/{path.stem}"


def lookahead_names() -> list[str]:
    """List the look-ahead networks of the zoo, such as "PointGoal1/ppo+ppo-lagrangian"."""
    return sorted(
        f"{p.parent.name}/{p.name.removesuffix(LOOKAHEAD_SUFFIX)}" for p in ZOO.glob(f"*/*{LOOKAHEAD_SUFFIX}")
    )


def lookahead_file(name: str | Path) -> Path:
    """Return the file of look-ahead networks by their name in the zoo, or a path as it is."""
    return ZOO / f"{name}{LOOKAHEAD_SUFFIX}" if str(name) in lookahead_names() else Path(name)


def zoo_card(name: str | Path) -> tuple[dict[str, Any], str]:
    """Return the card of a controller or of look-ahead networks of the zoo, as data and as Markdown."""
    if name in lookahead_names():
        card = read_lookahead(lookahead_file(name)).card
        return card, lookahead_markdown(card)
    card = load(name).card
    return card, card_markdown(card)


def find_lookahead(controllers: Sequence[Controller], *, memory: bool = True) -> LookAheadNetwork | None:
    """Return the look-ahead networks for these controllers in this order, or None; digests decide.

    memory=False prefers networks that need no map of the episode, if there are several.
    """
    found = None
    for path in lookahead_files(controllers):
        network = read_lookahead(path)
        if memory or network.paths is None:
            return network
        found = found or network
    return found


def lookahead_files(controllers: Sequence[Controller]) -> Iterator[Path]:
    """Yield the files of look-ahead networks for these controllers in this order, the preferred one first.

    They may be in the directory of a controller's file (`lookahead.safetensors` or `NAME.lookahead.safetensors`) or in
    the zoo.
    """
    digests = tuple(controller_digest(controller) for controller in controllers)
    yield from (path for path, known in _known_digests(controllers) if known == digests)


def other_order(controllers: Sequence[Controller]) -> list[Controller] | None:
    """Return the controllers in an order that look-ahead networks exist for, or None."""
    by_digest = {controller_digest(controller): controller for controller in controllers}
    for _, known in _known_digests(controllers):
        if known is not None and sorted(known) == sorted(by_digest):
            return [by_digest[digest] for digest in known]
    return None


def _known_digests(controllers: Sequence[Controller]) -> Iterator[tuple[Path, tuple[str, ...] | None]]:
    """Yield the files of look-ahead networks beside the controllers and in the zoo, with the digests they are for."""
    homes = dict.fromkeys(path.parent for c in controllers if isinstance(path := getattr(c, "path", None), Path))
    beside = (path for home in homes for path in sorted(home.glob("*lookahead.safetensors")))
    shipped = (ZOO / f"{name}{LOOKAHEAD_SUFFIX}" for name in lookahead_names())
    for path in dict.fromkeys((*beside, *shipped)):
        yield path, _digests(path, path.stat().st_mtime_ns)


@functools.cache
def _digests(path: Path, modified: int) -> tuple[str, ...] | None:
    """Read the digests of a file once per modification time."""
    return read_digests(path)


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


def add_to_zoo(run: str | Path, *, name: str | None = None, zoo: Path | None = None, replace: bool = False) -> Path:
    """Copy the result of a run and its card into a zoo; return the new file.

    A controller is stored as WORLD/NAME, by default WORLD/ALGORITHM, look-ahead networks as WORLD/NAME+NAME. zoo: the
    directory; the installed one by default. An existing file is overwritten only with `replace`.
    """
    zoo = zoo or ZOO
    lookahead = Path(run) / LOOKAHEAD_FILE if Path(run).is_dir() else Path(run)
    if lookahead.name.endswith("lookahead.safetensors") and lookahead.is_file():
        if name is not None:
            raise InputError(f"look-ahead networks are named after their controllers; leave the name {name!r} out")
        network = read_lookahead(lookahead)
        world = str(network.card.get("world") or network.names[0].rpartition("/")[0])
        return _add(lookahead, network.card, lookahead_path(world, network.names, zoo=zoo), replace=replace)
    controller = load(run)
    if not controller.card:
        raise InputError(f"the controller of {run} has no card yet; finish the training run first")
    world, algorithm = (str(controller.card.get(word, "")) for word in ("world", "algorithm"))
    for word in (world, algorithm):
        if not _is_file_name(word):
            raise InputError(f"the card of {run} must name a world and an algorithm, actually: {word!r}")
    if name is None:
        source = find_controller_file(run)
        return _add(source, controller.card, zoo / world / f"{algorithm}.safetensors", replace=replace)
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]*", name) or name.endswith("lookahead"):
        raise InputError(
            f"a name in the zoo has letters, digits, - and _, and does not end with lookahead, such as {algorithm}-2; "
            f"actually: {name!r}"
        )
    path = zoo / world / f"{name}.safetensors"
    check_new(path, find_controller_file(run), replace=replace)
    card = controller.card | {"name": f"{world}/{name}"}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_controller(dataclasses.replace(controller, name=card["name"], card=card), path)
    write_card(card, path)
    return path


def _is_file_name(word: str) -> bool:
    """Return whether a word is a plain file name that cannot point outside its directory."""
    return word not in ("", "..") and Path(word).name == word and word.isprintable()


def lookahead_path(world: str, controllers: Sequence[str], *, zoo: Path | None = None) -> Path:
    """Return the path of look-ahead networks in a zoo: WORLD/NAME+NAME.lookahead.safetensors."""
    names = [name.rpartition("/")[2] for name in controllers]
    for word in (world, *names):
        if not _is_file_name(word):
            raise InputError(f"look-ahead networks in the zoo must name a world and controllers, actually: {word!r}")
    return (zoo or ZOO) / world / f"{'+'.join(names)}{LOOKAHEAD_SUFFIX}"


def check_new(path: Path, source: Path, *, replace: bool) -> None:
    """Raise InputError if a file of the zoo exists and may not be overwritten."""
    if path.exists() and not replace:
        name = f"{path.parent.name}/{path.name.removesuffix(LOOKAHEAD_SUFFIX).removesuffix('.safetensors')}"
        raise InputError(
            f'the zoo has a "{name}" already; overwrite it with --replace. Every command also accepts the path '
            f"{source} directly"
        )


def _add(source: Path, card: dict[str, Any], path: Path, *, replace: bool) -> Path:
    check_new(path, source, replace=replace)
    write_atomically(path, source.read_bytes())
    write_card(card, path)
    return path


def write_card(card: dict[str, Any], path: Path) -> None:
    """Write a card beside its controller or look-ahead networks, as JSON and as Markdown."""
    markdown = lookahead_markdown if path.name.endswith("lookahead.safetensors") else card_markdown
    write_atomically(path.with_suffix(".json"), (json.dumps(card, indent=2) + "\n").encode())
    write_atomically(path.with_suffix(".md"), markdown(card).encode())
