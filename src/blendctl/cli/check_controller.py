"""`blendctl check-controller`: test a controller and list its defects."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.output import make_table, styled, table_console, write_json
from blendctl.cli.world_argument import world_option

STYLES = {"good": "green", "note": "yellow", "bad": "red bold"}


@click.command(epilog="Example: blendctl check-controller mine.py:drive --world PointGoal1")
@click.argument("controller", shell_complete=completers.controllers)
@world_option(default="PointGoal1", help="World that supplies the observations, or FILE.py:TASK.")
@shared.trust_code_option
@shared.number_option("--observations", "Number of observations.", default=200)
@click.option("--deadline", type=click.FloatRange(0, min_open=True), default=0.01, help="Seconds per action.")
@shared.seed_option()
@shared.json_option("the results")
def check_controller(
    controller: str, world: str, observations: int, deadline: float, seed: int, json_file: Path | None
) -> None:
    """Test CONTROLLER on observations of a world: shapes, determinism, latency, exceptions.

    The exit code is 1 if a check is bad. A note is information, not a failure.
    """
    from blendctl.controllers import controller_check
    from blendctl.controllers.resolve import open_controller

    inputs, action_size = controller_check.world_observations(world, observations, seed=seed)
    results = controller_check.check_controller(
        open_controller(controller, world=world), inputs, action_size=action_size, deadline=deadline, seed=seed
    )
    table = make_table("check", "", "result", left=3, title=f"{controller} on {observations} observations of {world}")
    for result in results:
        table.add_row(result.check, styled(result.verdict, STYLES[result.verdict]), result.message)
    console = table_console(json_file)
    console.print(table)
    write_json(json_file, [asdict(result) for result in results])
    bad = sum(result.verdict == "bad" for result in results)
    console.print(f"{bad} of {len(results)} checks failed" if bad else "no check failed: it can drive")
    if bad:
        raise SystemExit(1)
