"""`blendctl zoo`: list the trained controllers that ship with blendctl."""

from __future__ import annotations

from pathlib import Path

import click

from blendctl.cli.completers import zoo_controllers
from blendctl.cli.output import make_table, optional, table_console, write_json
from blendctl.cli.shared_options import json_option
from blendctl.controllers import load, zoo_names
from blendctl.controllers.card import card_markdown
from blendctl.controllers.zoo import add_to_zoo
from blendctl.errors import InputError


@click.command(epilog="Example: blendctl zoo --show PointGoal1/ppo")
@json_option("the cards, or with --show or --add that one card,")
@click.option("--show", metavar="NAME", shell_complete=zoo_controllers, help="Print the card of one controller.")
@click.option(
    "--add", "run", type=click.Path(path_type=Path),
    help="Add the controller of a finished run to the zoo of this installation.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Allow --add to overwrite a controller of the same world and algorithm.")
def zoo(json_file: Path | None, show: str | None, run: Path | None, replace: bool) -> None:
    """List the trained controllers that ship with blendctl, with their return and cost."""
    if run is not None and show is not None:
        raise InputError("--add and --show cannot be used together; use one of them")
    if replace and run is None:
        raise InputError("--replace needs --add RUN")
    if run is not None:
        path = add_to_zoo(run, replace=replace)
        table_console(json_file).print(f"added {path}", soft_wrap=True)
        write_json(json_file, load(path).card)
        return
    if show is not None:
        card = load(show).card
        if json_file is None:
            click.echo(card_markdown(card))
        write_json(json_file, card)
        return
    cards = {name: load(name).card for name in zoo_names()}
    if json_file is not None:
        write_json(json_file, cards)
        return
    table = make_table(
        "controller", "steps", "return", "cost", "R²", caption="R²: next-step reward, cost while blending"
    )
    for name, card in cards.items():
        evaluation, context = card.get("evaluation") or {}, card.get("context")
        r2 = context["r2"][0] if context else None
        table.add_row(
            name,
            f"{card['steps']:,}",
            optional(evaluation.get("return_mean"), ".2f"),
            optional(evaluation.get("cost_mean"), ".1f"),
            f"{r2['reward_blending']:.2f}, {r2['cost_blending']:.2f}" if r2 else "",
        )
    table_console(None).print(table)
