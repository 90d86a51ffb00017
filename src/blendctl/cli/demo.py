"""`blendctl demo`: run the learner in small simulated worlds with known solutions."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import click

from blendctl.cli import shared_options as shared
from blendctl.cli.output import echo, make_table, progress_bar, table_console, write_json

SHOWN_ARMS = 5  # arms whose shares fit the table; the JSON has all


@click.group(epilog="Example: blendctl demo bandit --stages 20000 --out out/demo")
def demo() -> None:
    """Run the learner in small simulated worlds with known solutions."""


@demo.command(epilog="Example: blendctl demo bandit --stages 20000 --out out/demo")
@shared.number_option("--stages", "Decisions per learner.", default=5000)
@shared.number_option("--learners", "Learners per rule.", default=32)
@shared.number_option("--features", "Features per arm, d.", default=4)
@shared.number_option("--arms", "Number of arms (controllers).", default=3)
@shared.number_option("--objectives", "Number of objectives, m.", default=2)
@click.option("--noise", type=click.FloatRange(0), default=0.1, help="Noise level sigma of the feedback.")
@shared.seed_option()
@shared.out_option("Directory for bandit.png and bandit.json.", default="out/demo")
def bandit(out: Path, **settings: Any) -> None:
    """Run every decision rule in one simulated linear world.

    Prints Pareto regret, average loss with its bound, and arm shares per rule, and draws the regret with its bound.
    """
    from blendctl.atomic import write_atomically
    from blendctl.bandit.demo import draw_demo, run_demo
    from blendctl.bandit.rules import RULES

    stages, arms = settings["stages"], settings["arms"]
    out.mkdir(parents=True, exist_ok=True)
    with progress_bar() as progress:
        task = progress.add_task("compiling", total=stages * len(RULES))

        def show(rule: str, stage: int) -> None:
            if stage % 50 == 0 or stage == stages - 1:
                done = list(RULES).index(rule) * stages + stage + 1
                progress.update(task, completed=done, description=rule)

        results = run_demo(**settings, progress=show)
    table = make_table(
        "rule", "regret", "bound", "loss", "bound", "arm shares %",
        title=f"{stages:,} stages, {settings['learners']} learners per rule, {arms} arms, d = {settings['features']}, "
        f"m = {settings['objectives']}, sigma {settings['noise']:g}",
    )  # fmt: skip
    more = f" +{arms - SHOWN_ARMS} arms" if arms > SHOWN_ARMS else ""
    for result in results:
        table.add_row(
            result.rule,
            f"{result.regret[-1]:.1f}",
            "none" if result.regret_bound is None else f"{result.regret_bound[-1]:.0f}",
            f"{result.loss[-1]:.4f}",
            f"{result.loss_bound[-1]:.4f}",
            " ".join(f"{100 * share:.0f}" for share in result.shares[:SHOWN_ARMS]) + more,
        )
    table_console(None).print(table)
    echo("regret: cumulative Pareto regret, bounded by Theorem 1; loss: average maximal loss, by Theorem 2")
    picture = io.BytesIO()
    draw_demo(results).savefig(picture, format="png", dpi=150)
    write_atomically(out / "bandit.png", picture.getvalue())
    write_json(
        out / "bandit.json", {"settings": settings, "rules": {result.rule: result.summary() for result in results}}
    )
    echo(f"wrote {out / 'bandit.png'} and {out / 'bandit.json'}")
