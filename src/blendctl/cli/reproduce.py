"""`blendctl reproduce`: the paper's experiment, whole, from one command."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import completers
from blendctl.cli.engine_options import engine_options, tell_changes, tell_damaged
from blendctl.cli.invocation import command_as_typed
from blendctl.cli.multi_option import ManyValues
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.cli.world_argument import world_option
from blendctl.errors import BlendctlError, InputError, StateError

if TYPE_CHECKING:
    from blendctl.experiments.protocol import Settings
    from blendctl.experiments.reproduce import Reproduction

__all__ = ["reproduce"]


@click.command(
    cls=ManyValues,
    epilog="Example: blendctl reproduce --worlds PointGoal1 --scale quick --seed 0 --out out/reproduce",
)
@world_option(
    "--worlds", multiple=True, metavar="WORLD...",
    help="Where to drive.  [PointGoal1 PointPush1 CarButton1]",
)  # fmt: skip
@click.option(
    "--controllers", multiple=True, metavar="PERFORMANT SAFE", shell_complete=completers.controllers,
    help="Two other controllers, for a single world.  [the paper's pairs from the zoo]",
)  # fmt: skip
@click.option(
    "--scale", type=click.Choice(["quick", "paper"]), default="quick", show_default=True,
    help="10 data points, or the paper's 110 (3.3 million steps per world).",
)  # fmt: skip
@click.option("--data-points", type=click.IntRange(1), help="Another number of data points.")
@click.option("--episodes", type=click.IntRange(1), default=30, show_default=True, help="Episodes per data point.")
@click.option("--steps", type=click.IntRange(1), help="Shorten the episodes.  [the world's own, 1,000]")
@click.option("--traces", type=click.IntRange(1), default=1, show_default=True, help="Independent learners per world.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of all randomness.")
@click.option(
    "--authors", is_flag=True,
    help="As the authors' code: noise 0.01, delta 0.2, the printed radius, indices of the state before.",
)  # fmt: skip
@click.option("--features", default="predictions", show_default=True, help="predictions, critics or one-hot.")
@click.option(
    "--context", type=click.Choice(["current", "previous"]), help="Decide with psi of which state.  [current]"
)
@click.option("--noise", type=click.FloatRange(0), help="Sigma.  [0.1]")
@click.option("--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Failure probability.  [0.05]")
@click.option("--radius", type=click.Choice(["determinant", "paper"]), help="Tight, or as printed.  [determinant]")
@click.option("--regularization", type=float, help="Lambda.  [1]")
@click.option("--feature-bound", type=float, help="L.  [1]")
@click.option("--theta-bound", type=float, help="S.  [1.5]")
@click.option("--rule", help="Decision rule.  [maximal-loss]")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/reproduce"), show_default=True,
    help="Where tables, figure, verdict and units go; a run that was stopped goes on there.",
)  # fmt: skip
@engine_options
@json_option("the verdict")
def reproduce(
    worlds: tuple[str, ...],
    controllers: tuple[str, ...],
    out: Path,
    engine: str,
    workers: int | None,
    address: str | None,
    json_file: Path | None,
    **options: Any,
) -> None:
    """Run the paper's experiment: performant, safe and blended controller on the same seeds, figure and verdict."""
    from blendctl.experiments.engines import UnitsFailed, make_engine
    from blendctl.experiments.reproduce import Reproduction
    from blendctl.experiments.store import Store

    make_engine(engine, workers=workers, address=address)  # refuses before anything is written
    settings = _settings(worlds, controllers, options)
    command = command_as_typed(click.get_current_context())
    store = Store(out, "reproduce", identity=settings.identity(), parts=settings.parts(), command=command)
    tell_changes(store)
    started = time.perf_counter()
    reproduction = Reproduction(settings, store)
    failure: BlendctlError | None = None
    try:
        _follow(reproduction, {"engine": engine, "workers": workers, "address": address})
    except KeyboardInterrupt:
        _finish(reproduction, started)  # a look at what is there should not have to wait for the rest
        click.echo(
            f"stopped; what is finished is in {out}, and the same command goes on from there:\n  {command}",
            err=True,
        )
        raise
    except (UnitsFailed, StateError) as error:  # units that cannot be run; a cluster that was lost
        failure = error  # what is finished is worth a look
    found = _finish(reproduction, started)
    if failure is not None and not found:
        raise failure
    console = table_console(json_file)
    console.print(_table(found))
    for line in _words(reproduction, found):
        console.print(line, soft_wrap=True)
    tell_damaged(store)
    click.echo(
        f"wrote figure.png, .pdf, .svg, points.parquet, episodes.parquet and verdict.json in {out}",
        err=json_file == Path("-"),
    )
    write_json(json_file, found)
    if failure is not None:
        raise failure


def _settings(worlds: tuple[str, ...], controllers: tuple[str, ...], options: dict[str, Any]) -> Settings:
    from blendctl.bandit.options import options_from
    from blendctl.controllers.zoo import PAIRS
    from blendctl.experiments.protocol import AUTHORS, SCALES, Settings, pair_of

    names = worlds or tuple(PAIRS)
    if controllers and len(names) != 1:
        raise InputError(f"--controllers are for a single world, actually: {', '.join(names)}; name it with --worlds")
    preset: dict[str, Any] = AUTHORS if options["authors"] else {"context": "current", "options": {}}
    bandit = ("noise", "delta", "radius", "regularization", "feature_bound", "theta_bound", "rule")
    chosen = preset["options"] | {name: options[name] for name in bandit if options[name] is not None}
    options_from(2, 2, dict(chosen))  # refuses what is not allowed before anything runs
    return Settings(
        worlds=dict(pair_of(name, controllers, features=options["features"]) for name in names),
        seed=options["seed"],
        traces=options["traces"],
        data_points=options["data_points"] or SCALES[options["scale"]],
        episodes=options["episodes"],
        steps=options["steps"],
        features=options["features"],
        context=options["context"] or preset["context"],
        options=chosen,
    )


def _follow(reproduction: Reproduction, where: dict[str, Any]) -> None:
    """Run with a bar of all units on the terminal, and a line with the newest data point."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(bar_width=16), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"))
    with progress_bar(*columns, TimeRemainingColumn(), TextColumn("{task.description}")) as progress:
        bar = progress.add_task("starting", total=reproduction.total)

        def hear(event: Any) -> None:
            progress.update(bar, completed=event.done)
            if event.state in ("lost", "failed"):
                progress.console.print(f"a unit was {event.state}: {event.message}", highlight=False, soft_wrap=True)

        with closing(reproduction.run(progress=hear, **where)) as running:  # Ctrl-C anywhere ends the workers
            for update in running:
                place = update.places[0]
                brought = f"{update.return_mean:.1f} / {update.cost_mean:.1f}"
                progress.update(bar, description=f"{place.world} {place.role} {place.data_point + 1}: {brought}")


def _finish(reproduction: Reproduction, started: float) -> dict[str, Any]:
    """Write verdict and figure of what is finished, and how long it took since `started`; give the verdict."""
    from blendctl.reports.figure import draw_reproduction
    from blendctl.reports.scatter import figure_bytes

    found = reproduction.verdict()
    worlds = reproduction.settings.worlds
    titles = {world: f"{world}\n{' + '.join(_called(spec) for spec in pair)}" for world, pair in worlds.items()}
    if found:
        figure = draw_reproduction(reproduction.tables.points(), titles=titles)
        for kind in ("png", "pdf", "svg"):
            reproduction.store.write(f"figure.{kind}", figure_bytes(figure, kind))
    reproduction.store.note(
        seconds=round(time.perf_counter() - started, 1),
        milliseconds_per_iteration=reproduction.milliseconds(),
    )
    return found


def _called(spec: str) -> str:
    """Give what a controller is called in print."""
    from blendctl.controllers.resolve import display_name

    name = display_name(spec)
    first, dash, rest = name.partition("-")
    return f"{first.upper()}{dash}{rest.capitalize()}" if first in ("ppo", "trpo", "cpo") else name


def _table(found: dict[str, Any]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("", "", "episodes", "return", "±", "cost", "±", "correct"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    table.caption = "means with 95% intervals; correct: choices that no other controller's next step dominates"
    correct = {"blended": "correct_ratio", "random": "correct_ratio_random"}
    for world, told in found.items():
        for role in ("performant", "safe", "random", "blended"):
            if role not in told:
                continue
            row, ratio = told[role], told.get(correct.get(role, ""))
            table.add_row(
                world,
                role,
                str(row["episodes"]),
                f"{row['return_mean']:.2f}",
                _half(row["return_ci95"], 2),
                f"{row['cost_mean']:.1f}",
                _half(row["cost_ci95"], 1),
                "" if ratio is None else f"{100 * ratio:.1f}%",
                style="bold" if role == "blended" else None,
            )
    return table


def _half(span: list[float] | None, digits: int) -> str:
    return "" if span is None else f"{(span[1] - span[0]) / 2:.{digits}f}"


def _words(reproduction: Reproduction, found: dict[str, Any]) -> list[str]:
    from blendctl.experiments.verdict import in_words

    lines = [line for world, told in found.items() for line in in_words(world, told)]
    for world, times in reproduction.milliseconds().items():
        beside = "" if times["paper"] is None else f"; the paper's took {times['paper']:g} ms on its machine"
        lines.append(f"{world}: an iteration took {times['measured']:.2f} ms, counterfactual steps included{beside}.")
    return lines
