"""`blendctl train-context`: give controllers of one world their context networks."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.table import Table

from blendctl.cli.completers import zoo_controllers
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.cli.world_argument import world_option
from blendctl.controllers import NetworkController, load, write_controller
from blendctl.controllers.zoo import find_controller_file, in_zoo, write_card
from blendctl.errors import FileFormatError, InputError
from blendctl.training.context_config import ContextConfig

__all__ = ["train_context"]

USUAL = ContextConfig()


@click.command(
    "train-context",
    epilog="Example: blendctl train-context runs/PointGoal1-ppo-s0 runs/PointGoal1-ppo-lagrangian-s0",
)
@click.argument("controllers", nargs=-1, required=True, metavar="NAME|PATH...", shell_complete=zoo_controllers)
@world_option("--env", "world", help="world, or FILE.py:TASK  [the one in the controllers' cards]")
@click.option("--steps", default=str(USUAL.steps), show_default=True, help="transitions to learn from")
@click.option(
    "--horizons", default=",".join(map(str, USUAL.horizons)), show_default=True,
    help="steps ahead of each view; the first is 1",
)  # fmt: skip
@click.option(
    "--discount", type=click.FloatRange(0, 1), default=USUAL.discount, show_default=True,
    help="discount within a horizon",
)  # fmt: skip
@click.option(
    "--passes", type=click.IntRange(1), default=USUAL.passes, show_default=True,
    help="passes over the transitions",
)  # fmt: skip
@click.option(
    "--worlds", type=click.IntRange(1), default=USUAL.worlds, show_default=True,
    help="worlds that run in lock-step",
)  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=USUAL.seed,
    show_default=True,
    help="seed of everything random",
)
@click.option(
    "--threads", type=click.IntRange(1), default=USUAL.threads, show_default=True,
    help="threads of physics and torch",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False),
    help="write copies of the controllers into this directory  [write into their own files]",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="overwrite a controller of the zoo, or what --out has already")
@json_option("the held-out R²")
def train_context(
    controllers: tuple[str, ...],
    world: str | None,
    steps: str,
    horizons: str,
    discount: float,
    passes: int,
    worlds: int,
    seed: int,
    threads: int,
    out: Path | None,
    replace: bool,
    json_file: Path | None,
) -> None:
    """Train the context networks of CONTROLLERS, which belong to one world, and write them into their files.

    The controllers take turns at driving; every network learns from all of it. Prints and writes into the cards
    the held-out R². Only networks of blendctl can carry context networks: zoo names, run directories and .safetensors
    files.
    """
    from blendctl.training import train_contexts

    loaded = [_network(name) for name in controllers]
    targets = _targets(controllers, out=out, replace=replace)
    places = {world} if world else {str(c.card["world"]) for c in loaded}
    if len(places) != 1:
        raise InputError(f"the controllers belong to different worlds ({', '.join(sorted(places))}); give those of one")
    try:
        config = ContextConfig(
            horizons=tuple(int(h) for h in horizons.split(",")),
            discount=discount,
            steps=int(float(steps)),
            worlds=worlds,
            passes=passes,
            seed=seed,
            threads=threads,
        )
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"steps {steps!r} or horizons {horizons!r} are no numbers; try 5e5 and 1,10,50") from error
    with progress_bar() as progress:
        bars = {}

        def on_progress(stage: str, share: float) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=1.0)
            progress.update(bars[stage], completed=share)

        trained = train_contexts(loaded, world=places.pop(), config=config, on_progress=on_progress)
    table = Table("controller", "horizon", "R² reward", "R² cost", "alone: reward", "cost")
    for name, controller, path in zip(controllers, trained, targets, strict=True):
        write_controller(controller, path)
        write_card(controller.card, path)
        for row in controller.card["context"]["r2"]:
            numbers = ("reward_blending", "cost_blending", "reward_alone", "cost_alone")
            table.add_row(name, str(row["horizon"]), *(f"{row[k]:.3f}" for k in numbers))
    console = table_console(json_file)
    console.print(table)
    console.print("wrote " + ", ".join(map(str, targets)), soft_wrap=True)
    write_json(json_file, {name: c.card["context"] for name, c in zip(controllers, trained, strict=True)})


def _network(name: str) -> NetworkController:
    """Load a controller that can carry context networks: one that was saved by blendctl and knows its world."""
    try:
        controller = load(name)
    except (InputError, FileFormatError) as error:
        raise type(error)(
            f"{error}. Context networks are for networks of blendctl: zoo names, run directories, .safetensors files"
        ) from error
    if not controller.card.get("world"):
        raise InputError(f"the card of {name} names no world; let its training run finish first")
    return controller


def _targets(names: tuple[str, ...], *, out: Path | None, replace: bool) -> list[Path]:
    """Give the file that each controller will be written to; refuse before hours of training, not after."""
    targets = [find_controller_file(name) for name in names]
    if out is not None:
        targets = [
            out / (f"{p.absolute().parent.name}.safetensors" if p.name == "controller.safetensors" else p.name)
            for p in targets
        ]
    if len(set(targets)) < len(targets):
        told = ", ".join(map(str, targets))
        raise InputError(f"two controllers would be written to the same file ({told}); name each of them once")
    for name, path in zip(names, targets, strict=True):
        if replace:
            break
        if out is not None and path.exists():
            raise InputError(f"{path} is there already; give another --out, or --replace to overwrite it")
        if in_zoo(path):
            words = shlex.join(["blendctl", "train-context", *names, "--out", "out/context"])
            raise InputError(
                f'"{name}" ships with blendctl, and its file would be overwritten; to write copies: {words}; '
                "to overwrite it all the same, give --replace"
            )
    return targets
