"""`blendctl zoo`: list the trained controllers that ship with blendctl."""

from __future__ import annotations

import json
from pathlib import Path

import click

from blendctl.cli.completers import zoo_controllers
from blendctl.cli.output import echo, make_table, optional, table_console, write_json
from blendctl.cli.shared_options import json_option
from blendctl.controllers import load, zoo_names
from blendctl.controllers.zoo import add_to_zoo, lookahead_names, zoo_card
from blendctl.errors import InputError


@click.command(epilog="Example: blendctl zoo --show PointGoal1/ppo")
@json_option("the cards, or with --show or --add that one card,")
@click.option("--show", metavar="NAME", shell_complete=zoo_controllers, help="Print one card.")
@click.option(
    "--add", "run", type=click.Path(path_type=Path),
    help="Add the controller or the look-ahead networks of a finished run to the zoo of this installation.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="With --add: the controller's name after WORLD/.  [its algorithm]")
@click.option("--replace", is_flag=True, help="Allow --add to overwrite an entry of the same name.")
def zoo(json_file: Path | None, show: str | None, run: Path | None, name: str | None, replace: bool) -> None:
    """List the trained controllers and look-ahead networks that ship with blendctl, with their return and cost."""
    if run is not None and show is not None:
        raise InputError("--add and --show cannot be used together; use one of them")
    for option, used in (("--replace", replace), ("--name", name is not None)):
        if used and run is None:
            raise InputError(f"{option} needs --add RUN")
    if run is not None:
        path = add_to_zoo(run, name=name, replace=replace)
        table_console(json_file).print(f"added {path}", soft_wrap=True)
        write_json(json_file, json.loads(path.with_suffix(".json").read_text()))
        return
    if show is not None:
        card, page = zoo_card(show)
        if json_file is None:
            echo(page)
        write_json(json_file, card)
        return
    cards = {name: load(name).card for name in zoo_names()}
    if json_file is not None:
        write_json(json_file, cards | {name: zoo_card(name)[0] for name in lookahead_names()})
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
    console = table_console(None)
    console.print(table)
    if not lookahead_names():
        return
    table = make_table(
        "look-ahead networks", "weight", "return", "cost", "over", "R²",
        caption="weight: middle of the dial; over: episodes above the budget; R²: differences of return, cost",
    )  # fmt: skip
    for name in lookahead_names():
        card, _ = zoo_card(name)
        dial = card.get("dial") or [{}]
        point = dial[len(dial) // 2]
        table.add_row(
            name,
            optional(point.get("weight"), ".3g"),
            optional(point.get("return_mean"), ".2f"),
            optional(point.get("cost_mean"), ".1f"),
            optional(point.get("over_budget"), ".0%"),
            ", ".join(f"{r2:.2f}" for r2 in card.get("r2_difference") or ()),
        )
    console.print(table)
