"""`blendctl demo`: small worlds with known answers."""

from __future__ import annotations

import io
from pathlib import Path

import click

SHOWN = 5  # arms whose shares fit the table; the JSON has them all


@click.group(epilog="Example: blendctl demo bandit --stages 20000 --out out/demo")
def demo() -> None:
    """Small worlds with known answers: watch the learner work."""


@demo.command(epilog="Example: blendctl demo bandit --stages 20000 --out out/demo")
@click.option("--stages", type=click.IntRange(1), default=5000, show_default=True, help="Decisions per learner.")
@click.option("--learners", type=click.IntRange(1), default=32, show_default=True, help="Learners per rule.")
@click.option("--features", type=click.IntRange(1), default=4, show_default=True, help="Features per arm, d.")
@click.option("--arms", type=click.IntRange(1), default=3, show_default=True, help="Arms (controllers).")
@click.option("--objectives", type=click.IntRange(1), default=2, show_default=True, help="Objectives, m.")
@click.option("--noise", type=click.FloatRange(0), default=0.1, show_default=True, help="Noise, sigma.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of world and learners.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/demo"), show_default=True,
    help="Where bandit.png and bandit.json go.",
)  # fmt: skip
def bandit(
    stages: int, learners: int, features: int, arms: int, objectives: int, noise: float, seed: int, out: Path
) -> None:
    """Run every decision rule in one simulated linear world.

    Prints Pareto regret, average loss and its bound, and arm shares per rule, and draws regret
    against its bound.
    """
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.table import Table

    from blendctl.atomic import write_atomically
    from blendctl.bandit.demo import draw_demo, run_demo
    from blendctl.bandit.rules import RULES
    from blendctl.cli.output import progress_bar, write_json

    out.mkdir(parents=True, exist_ok=True)
    with progress_bar(
        TextColumn("[bold]{task.description:<15}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    ) as progress:
        task = progress.add_task("compiling", total=stages * len(RULES))

        def heard(rule: str, stage: int) -> None:
            if stage % 50 == 0 or stage == stages - 1:
                done = list(RULES).index(rule) * stages + stage + 1
                progress.update(task, completed=done, description=rule)

        results = run_demo(
            stages=stages, learners=learners, features=features, arms=arms, objectives=objectives, noise=noise,
            seed=seed, progress=heard,
        )  # fmt: skip
    table = Table(
        title=f"{stages:,} stages, {learners} learners per rule, {arms} arms, d = {features}, "
        f"m = {objectives}, sigma {noise:g}"
    )
    for column in ("rule", "regret", "bound", "loss", "bound", "arm shares %"):
        table.add_column(column, justify="left" if column == "rule" else "right", no_wrap=True)
    more = f" +{arms - SHOWN} arms" if arms > SHOWN else ""
    for result in results:
        table.add_row(
            result.rule,
            f"{result.regret[-1]:.1f}",
            "none" if result.regret_bound is None else f"{result.regret_bound[-1]:.0f}",
            f"{result.loss[-1]:.4f}",
            f"{result.loss_bound[-1]:.4f}",
            " ".join(f"{100 * share:.0f}" for share in result.shares[:SHOWN]) + more,
        )
    Console().print(table)
    click.echo("regret: cumulative Pareto regret, bounded by Theorem 1; loss: average maximal loss, by Theorem 2")
    picture = io.BytesIO()
    draw_demo(results).savefig(picture, format="png", dpi=150)
    write_atomically(out / "bandit.png", picture.getvalue())
    settings = {
        "stages": stages, "learners": learners, "features": features, "arms": arms, "objectives": objectives,
        "noise": noise, "seed": seed,
    }  # fmt: skip
    data = {"settings": settings, "rules": {result.rule: result.summary() for result in results}}
    write_json(out / "bandit.json", data)
    click.echo(f"wrote {out / 'bandit.png'} and {out / 'bandit.json'}")
