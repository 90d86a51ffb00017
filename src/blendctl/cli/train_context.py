"""`blendctl train-context`: train the context networks of the controllers of one world."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from blendctl.cli import shared_options as shared
from blendctl.cli.completers import zoo_controllers
from blendctl.cli.output import make_table, progress_bar, table_console, write_json
from blendctl.cli.train import chosen_options, hyper_parameters
from blendctl.cli.world_argument import world_option
from blendctl.controllers import NetworkController, load, write_controller
from blendctl.controllers.card import optional_number
from blendctl.controllers.zoo import find_controller_file, in_zoo, write_card
from blendctl.directory_lock import DirectoryLock
from blendctl.errors import FileFormatError, InputError
from blendctl.training.config import convert_options
from blendctl.training.context_config import ContextConfig


@click.command(
    "train-context",
    epilog="Example: blendctl train-context runs/PointGoal1-ppo-s0 runs/PointGoal1-ppo-lagrangian-s0",
)
@click.argument("controllers", nargs=-1, required=True, metavar="NAME|PATH...", shell_complete=zoo_controllers)
@world_option(help="World, or FILE.py:TASK.  [the one in the controllers' cards]")
@hyper_parameters(ContextConfig)
@shared.out_option("Directory for copies of the controllers.  [write into their own files]")
@click.option("--replace", is_flag=True, help="Overwrite a controller of the zoo, or files in --out.")
@shared.json_option("the held-out R²")
def train_context(
    controllers: tuple[str, ...],
    world: str | None,
    out: Path | None,
    replace: bool,
    json_file: Path | None,
    **hyper_parameter_values: Any,
) -> None:
    """Train the context networks of CONTROLLERS of one world, and write them into the controllers' files.

    The controllers take turns at driving. From every state the world evaluates the actions of all of them, and their
    networks learn together: rewards and costs, and how the controllers differ. Name all controllers of a blend in one
    command, because a blend chooses by the differences. The held-out R² is printed and written into the cards. Only
    controllers in blendctl's format have context networks: zoo names, run directories and .safetensors files.
    """
    from blendctl.training import train_contexts

    loaded = [_network(name) for name in controllers]
    targets = _targets(controllers, out=out, replace=replace)
    trained_in = {world} if world else {str(c.card["world"]) for c in loaded}
    if len(trained_in) != 1:
        raise InputError(f"the controllers belong to different worlds ({', '.join(sorted(trained_in))}); use one world")
    config = ContextConfig(**convert_options(ContextConfig, chosen_options(hyper_parameter_values)))
    with ExitStack() as stack:
        for folder in sorted({path.parent for path in targets}):
            stack.enter_context(DirectoryLock(folder))
        progress = stack.enter_context(progress_bar())
        bars = {}

        def on_progress(stage: str, share: float) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=1.0)
            progress.update(bars[stage], completed=share)

        trained = train_contexts(loaded, world=trained_in.pop(), config=config, on_progress=on_progress)
        for controller, path in zip(trained, targets, strict=True):
            write_controller(controller, path)
            write_card(controller.card, path)
    table = make_table("controller", "horizon", "R² reward", "R² cost", "alone: reward", "cost")
    for name, controller in zip(controllers, trained, strict=True):
        for row in controller.card["context"]["r2"]:
            numbers = ("reward_blending", "cost_blending", "reward_alone", "cost_alone")
            table.add_row(name, str(row["horizon"]), *(f"{row[k]:.3f}" for k in numbers))
    console = table_console(json_file)
    console.print(table)
    entry = trained[0].card["context"]
    if "r2_difference" in entry:
        r2, choices = entry["r2_difference"], entry["choices"]
        console.print(
            f"differences at the same state: R² of the reward {optional_number(r2['reward'])}, of the cost "
            f"{optional_number(r2['cost'])}; choices by the predictions: {choices['correct']:.1%} correct (random: "
            f"{choices['correct_random']:.1%}), {choices['loss_share']:.2f} of the loss of random ones",
            soft_wrap=True,
        )
        if limit := entry["choices_limit"]:
            console.print(
                f"choices by the simulator, from what the observation shows: {limit['correct']:.1%} correct, "
                f"{limit['loss_share']:.2f} of the loss",
                soft_wrap=True,
            )
    console.print("wrote " + ", ".join(map(str, targets)), soft_wrap=True)
    write_json(json_file, {name: c.card["context"] for name, c in zip(controllers, trained, strict=True)})


def _network(name: str) -> NetworkController:
    """Load a controller that can have context networks: saved by blendctl, with a world in its card."""
    try:
        controller = load(name)
    except (InputError, FileFormatError) as error:
        raise type(error)(
            f"{error}. Context networks need a zoo name, a run directory or a .safetensors file"
        ) from error
    if not controller.card.get("world"):
        raise InputError(f"the card of {name} does not name a world; let its training run finish first")
    return controller


def _targets(names: tuple[str, ...], *, out: Path | None, replace: bool) -> list[Path]:
    """Return the file that each controller will be written to; raise before the training if one must not be."""
    targets = [find_controller_file(name) for name in names]
    if out is not None:
        targets = [
            out / (f"{p.absolute().parent.name}.safetensors" if p.name == "controller.safetensors" else p.name)
            for p in targets
        ]
    if len(set(targets)) < len(targets):
        files = ", ".join(map(str, targets))
        raise InputError(f"two controllers would be written to the same file ({files}); name each of them once")
    for name, path in zip(names, targets, strict=True):
        if replace:
            break
        if out is not None and path.exists():
            raise InputError(f"{path} exists; use another --out, or --replace to overwrite it")
        if in_zoo(path):
            command = shlex.join(["blendctl", "train-context", *names, "--out", "out/context"])
            raise InputError(
                f'"{name}" ships with blendctl and would be overwritten; to write copies: {command}; '
                "to overwrite it, use --replace"
            )
    return targets
