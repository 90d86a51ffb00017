"""`blendctl train-context`: give controllers of one world their context networks."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import click
from rich.table import Table

from blendctl.cli.completing import zoo_controllers
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.controllers import load, write_controller
from blendctl.controllers.library import controller_file, write_card
from blendctl.errors import InputError
from blendctl.training.context import ContextConfig, train_contexts

__all__ = ["train_context"]

USUAL = {entry.name: entry.default for entry in fields(ContextConfig)}


@click.command(
    "train-context",
    epilog="Example: blendctl train-context runs/PointGoal1-ppo-s0 runs/PointGoal1-ppo-lagrangian-s0",
)
@click.argument(
    "controllers", nargs=-1, required=True, metavar="NAME|PATH...", shell_complete=zoo_controllers
)
@click.option("--steps", default=str(USUAL["steps"]), show_default=True, help="transitions to learn from")
@click.option(
    "--horizons", default="1,10,50", show_default=True, help="steps ahead of each view; the first is 1"
)
@click.option("--discount", default=USUAL["discount"], show_default=True, help="discount within a horizon")
@click.option("--passes", default=USUAL["passes"], show_default=True, help="passes over the transitions")
@click.option("--worlds", default=USUAL["worlds"], show_default=True, help="worlds that run in lock-step")
@click.option("--seed", default=USUAL["seed"], show_default=True, help="seed of everything random")
@click.option("--threads", default=USUAL["threads"], show_default=True, help="threads of physics and torch")
@json_option("the held-out R²")
def train_context(
    controllers: tuple[str, ...],
    steps: str,
    horizons: str,
    discount: float,
    passes: int,
    worlds: int,
    seed: int,
    threads: int,
    json_file: Path | None,
) -> None:
    """Train the context networks of CONTROLLERS, which belong to one world, and write them into their files.

    The controllers take turns at driving; every network learns from all of it. Prints and writes into the cards
    the held-out R².
    """
    loaded = [load(name) for name in controllers]
    places = {str(c.card.get("world")) for c in loaded}
    if len(places) != 1:
        raise InputError(
            f"the controllers belong to different worlds ({', '.join(sorted(places))}); give those of one"
        )
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
        raise InputError(
            f"steps {steps!r} or horizons {horizons!r} are no numbers; try 5e5 and 1,10,50"
        ) from error
    with progress_bar() as progress:
        bars = {}

        def on_progress(stage: str, share: float) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=1.0)
            progress.update(bars[stage], completed=share)

        trained = train_contexts(loaded, world=places.pop(), config=config, on_progress=on_progress)
    table = Table("controller", "horizon", "R² reward", "R² cost", "alone: reward", "cost")
    for name, controller in zip(controllers, trained, strict=True):
        path: Path = controller_file(name)
        write_controller(controller, path)
        write_card(controller.card, path)
        for row in controller.card["context"]["r2"]:
            numbers = ("reward_blending", "cost_blending", "reward_alone", "cost_alone")
            table.add_row(name, str(row["horizon"]), *(f"{row[k]:.3f}" for k in numbers))
    table_console(json_file).print(table)
    write_json(json_file, {name: c.card["context"] for name, c in zip(controllers, trained, strict=True)})
