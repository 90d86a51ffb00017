"""`blendctl zoo`: the trained controllers that ship."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from blendctl.controllers import load, zoo_names
from blendctl.controllers.card import card_markdown
from blendctl.controllers.library import add_to_zoo

__all__ = ["zoo"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="print the cards as JSON")
@click.option("--show", metavar="NAME", help="print the card of one controller")
@click.option(
    "--add", "run", type=click.Path(path_type=Path), help="put the controller of a finished run in the zoo"
)
def zoo(as_json: bool, show: str | None, run: Path | None) -> None:
    """List the trained controllers that ship, with what they reach."""
    if run is not None:
        click.echo(f"added {add_to_zoo(run)}")
        return
    if show is not None:
        card = load(show).card
        click.echo(json.dumps(card, indent=2) if as_json else card_markdown(card))
        return
    cards = {name: load(name).card for name in zoo_names()}
    if as_json:
        click.echo(json.dumps(cards, indent=2))
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
    Console().print(table)
