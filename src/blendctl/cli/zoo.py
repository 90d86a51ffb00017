"""`blendctl zoo`: the trained controllers that ship."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from blendctl.cli.completers import zoo_controllers
from blendctl.cli.output import STDOUT, table_console, write_json
from blendctl.controllers import load, zoo_names
from blendctl.controllers.card import card_markdown
from blendctl.controllers.zoo import add_to_zoo
from blendctl.errors import InputError

__all__ = ["zoo"]


@click.command(epilog="Example: blendctl zoo --show PointGoal1/ppo")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), metavar="[FILE]",
    is_flag=False, flag_value=Path("-"),
    help="Write the cards, with --show or --add that one, as JSON; to stdout if no file is named.",
)  # fmt: skip
@click.option("--show", metavar="NAME", shell_complete=zoo_controllers, help="Print the card of one controller.")
@click.option(
    "--add", "run", type=click.Path(path_type=Path),
    help="Put the controller of a finished run in the zoo of this installation.",
)  # fmt: skip
@click.option("--replace", is_flag=True, help="Let --add overwrite a controller of the same world and algorithm.")
def zoo(json_file: Path | None, show: str | None, run: Path | None, replace: bool) -> None:
    """List the trained controllers that ship, with what they reach."""
    if run is not None and show is not None:
        raise InputError("--add and --show are two commands; give one of them")
    if replace and run is None:
        raise InputError("--replace belongs to --add RUN; there is nothing to replace")
    if run is not None:
        path = add_to_zoo(run, replace=replace)
        click.echo(f"added {path}", err=json_file == STDOUT)
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
    table = Table(box=None, padding=(0, 3, 0, 0), caption="R²: next-step reward, cost while blending")
    for column in ("controller", "steps", "return", "cost", "R²"):
        table.add_column(column, justify="left" if column == "controller" else "right", no_wrap=True)
    for name, card in cards.items():
        seen, context = card.get("evaluation"), card.get("context")
        r2 = context["r2"][0] if context else None
        table.add_row(
            name,
            f"{card['steps']:,}",
            f"{seen['return_mean']:.2f}" if seen else "",
            f"{seen['cost_mean']:.1f}" if seen else "",
            f"{r2['reward_blending']:.2f}, {r2['cost_blending']:.2f}" if r2 else "",
        )
    table_console(None).print(table)
