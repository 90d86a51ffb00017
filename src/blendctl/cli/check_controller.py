"""`blendctl check-controller`: try a controller, and say what is wrong with it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from blendctl.cli.completers import controllers
from blendctl.cli.output import json_option, table_console, write_json
from blendctl.cli.world_argument import world_option

__all__ = ["check_controller"]

SIGNS = {"good": "[green]good[/]", "note": "[yellow]note[/]", "bad": "[red bold]bad[/]"}


@click.command(epilog="Example: blendctl check-controller mine.py:drive --world PointGoal1")
@click.argument("controller", shell_complete=controllers)
@world_option(
    "--world", default="PointGoal1", show_default=True, help="World whose observations it is tried on, or FILE.py:TASK."
)
@click.option("--observations", "count", type=click.IntRange(1), default=200, show_default=True, help="How many.")
@click.option(
    "--deadline",
    type=click.FloatRange(0, min_open=True),
    default=0.01,
    show_default=True,
    help="Seconds per action.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the trial.")
@json_option("the findings")
def check_controller(
    controller: str, world: str, count: int, deadline: float, seed: int, json_file: Path | None
) -> None:
    """Try CONTROLLER on observations of a world: shapes, determinism, latency, exceptions.

    Exits with 1 if something is bad; a note is worth knowing, and no fault.
    """
    from rich.table import Table

    from blendctl.controllers import controller_check
    from blendctl.controllers.resolve import open_controller

    observations, action_size = controller_check.world_observations(world, count, seed=seed)
    findings = controller_check.check_controller(
        open_controller(controller, world=world),
        observations,
        action_size=action_size,
        deadline=deadline,
        seed=seed,
    )
    table = Table("check", "", "found", title=f"{controller} on {count} observations of {world}")
    for finding in findings:
        table.add_row(finding.check, SIGNS[finding.verdict], finding.message)
    console = table_console(json_file)
    console.print(table)
    write_json(json_file, [asdict(finding) for finding in findings])
    bad = sum(finding.verdict == "bad" for finding in findings)
    console.print(f"{bad} of {len(findings)} checks failed" if bad else "it can drive")
    if bad:
        raise SystemExit(1)
