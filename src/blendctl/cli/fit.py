"""`blendctl fit`: from an environment and its controllers to a blend and a verdict."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import shared_options as shared
from blendctl.cli.environment_argument import environment_argument
from blendctl.cli.invocation import typed_command
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import make_table, mean_cells, optional, progress_bar, table_console, write_json
from blendctl.cli.unit_runs import say_how_to_resume

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.envs.environment import EnvironmentSpec


@click.command(
    cls=MultiValueCommand,
    epilog="Example: blendctl fit Pendulum-v1 --controllers mine.py:energy mine.py:regulator --cost mine.py:speeding "
    "--out out/fit --seed 0",
)
@environment_argument
@shared.controllers_option(
    "Two controllers or more: FILE.py:FUNCTION, MODULE:OBJECT, files, zoo names, addresses.",
    metavar="A B [C ...]",
)
@click.option("--names", multiple=True, help="Names of the controllers.  [from the controllers]")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Directory of the blend.")
@shared.seed_option()
@shared.number_option("--steps", "Control steps of data; other stages get about twice as many.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Approximate total time.  [10]")
@shared.number_option("--hold", "Control steps per decision.  [chosen on validation episodes]")
@click.option("--episodes", type=click.IntRange(2), help="Test episodes.  [60; fewer with few --steps]")
@click.option("--replace", is_flag=True, help="Replace an earlier fit in --out.")
@shared.engine_options
@shared.json_option("the card")
@shared.trust_code_option
def fit(
    environment: EnvironmentSpec,
    controllers: tuple[str, ...],
    names: tuple[str, ...],
    out: Path,
    engine: dict[str, Any],
    json_file: Path | None,
    **options: Any,
) -> None:
    """Fit a blend of controllers in ENV, judge it on unseen episodes, and recommend whether to use it.

    ENV is a world, an id of Gymnasium, MODULE:ID or FILE.py:FUNCTION. Look-ahead contexts are learned from data of the
    environment, or simulated if it can be copied. Context, hold, dwell, rule and dial are chosen on validation
    episodes. The verdict compares the blend with every controller, random switching, a swept threshold on each entry of
    the observation, and shared control. Writes blend.safetensors, card.json and report.html. The same command continues
    an interrupted fit.
    """
    from blendctl.fitting import fit as fit_blend

    command = typed_command()
    with progress_bar() as bar:
        task = bar.add_task("starting", total=1.0)
        try:
            result = fit_blend(
                environment,
                controllers,
                out=out,
                names=names or None,
                command=command,
                on_progress=lambda text, share: bar.update(task, description=text, completed=share),
                **engine,
                **options,
            )
        except KeyboardInterrupt:
            say_how_to_resume(out, command)
            raise
    console = table_console(json_file)
    console.print(_table(result.card))
    console.print(f"verdict: {result.verdict}. {result.card['words']}", soft_wrap=True)
    console.print(f"wrote {out / 'blend.safetensors'}, card.json and report.html", soft_wrap=True)
    write_json(json_file, result.card)


def _table(card: dict[str, Any]) -> Table:
    table = make_table(
        "", "return", "±", "cost", "±", "score", "95%",
        title=f"{card['environment']}, {card['episodes']} unseen episodes",
        caption="means with 95% intervals; score: 0 on the mixing line of two controllers, 1 at the return of one and "
        "the cost of the other",
    )  # fmt: skip
    for name, row in card["methods"].items():
        span = row["corner_score_ci95"]
        table.add_row(
            name,
            *mean_cells(row),
            optional(row["corner_score"], "+.2f"),
            "" if span is None else f"{span[0]:+.2f} {span[1]:+.2f}",
            style="bold" if name == "blend" else None,
        )
    return table
