"""`blendctl compare`: every way to drive with two controllers, on the same episodes, in one scatter and one table."""

from __future__ import annotations

import io
import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import completers
from blendctl.cli.engine_options import engine_options, tell_changes, tell_damaged
from blendctl.cli.invocation import command_as_typed
from blendctl.cli.multi_option import ManyValues
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.cli.world_argument import world_argument
from blendctl.errors import BlendctlError, InputError, StateError

if TYPE_CHECKING:
    from blendctl.experiments.compare import Comparison
    from blendctl.experiments.engines import FinishedUnit
    from blendctl.experiments.store import Store

__all__ = ["compare"]


def _list_methods(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print every method with its parameters, and stop."""
    if not value or ctx.resilient_parsing:
        return
    from blendctl.switches.methods import METHODS

    for method in METHODS.values():
        click.echo(f"{method.name:<15} {method.help}")
        for name, parameter in method.parameters.items():
            values = ", ".join(f"{v:g}" for v in parameter.values)
            click.echo(f"    {method.name}.{name} = {values}: {parameter.help}")
    ctx.exit()


@click.command(
    cls=ManyValues,
    epilog="Example: blendctl compare PointGoal1 --methods paper random simplex ceiling --out out/compare.  "
    "All methods with their parameters: blendctl compare --list",
)
@world_argument
@click.option("--methods", multiple=True, metavar="NAME...", help="What to compare.  [all; see --list]")
@click.option(
    "--controllers", multiple=True, metavar="PERFORMANT SAFE", shell_complete=completers.controllers,
    help="The two controllers: zoo names, files, addresses.  [the paper's pair]",
)  # fmt: skip
@click.option("--episodes", type=click.IntRange(1), default=30, show_default=True, help="Episodes per method.")
@click.option("--seed", type=click.IntRange(0), default=1_000_000, show_default=True, help="Episode i has seed + i.")
@click.option("--steps", type=click.IntRange(1), help="Shorten the episodes.  [the world's own]")
@click.option(
    "--set", "values", multiple=True, metavar="METHOD.NAME=VALUE",
    help="Another value of a parameter; several, with commas, are swept: ceiling.horizon=30,60",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/compare"), show_default=True,
    help="Where table, figure and units go; a run that was stopped goes on there.",
)  # fmt: skip
@engine_options
@click.option(
    "--judge-every", type=click.IntRange(0), default=10, show_default=True,
    help="Control steps between two choices that are judged correct or not; 0 judges none.",
)  # fmt: skip
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_methods,
    help="List the methods with their parameters.",
)  # fmt: skip
@json_option("the standings")
def compare(
    world: str,
    methods: tuple[str, ...],
    controllers: tuple[str, ...],
    values: tuple[str, ...],
    out: Path,
    engine: str,
    workers: int | None,
    address: str | None,
    json_file: Path | None,
    **options: Any,
) -> None:
    """Compare ways to drive WORLD with a performant and a safe controller, on the same episodes.

    Each method gets a corner score: 0 is what mixing the two controllers by chance brings, 1 would be the return of the
    performant with the cost of the safe one.
    """
    from blendctl.experiments.compare import Comparison
    from blendctl.experiments.engines import make_engine
    from blendctl.experiments.protocol import pair_of
    from blendctl.experiments.standings import mark_shown, standings
    from blendctl.experiments.store import Store
    from blendctl.switches.methods import METHODS, find_method

    make_engine(engine, workers=workers, address=address)  # refuses before anything is written
    for name in methods:
        find_method(name)
    place, pair = pair_of(world, controllers)
    plan = Comparison(place, pair, methods or tuple(METHODS), values=_values(values), **options)
    plan = _served(plan, asked=methods)
    command = command_as_typed(click.get_current_context())
    store = Store(out, "compare", identity=plan.identity, command=command)
    tell_changes(store)
    started = time.perf_counter()
    done, failure = _run(plan, store, engine=engine, workers=workers, address=address)
    store.note(seconds=round(time.perf_counter() - started, 1))
    whole = plan.finished(done)  # all of it, unless something failed
    if isinstance(failure, KeyboardInterrupt):
        click.echo(
            f"stopped; what is finished is in {out}, and the same command goes on from there:\n  {command}",
            err=True,
        )
    if whole is None:
        assert failure is not None
        raise failure
    table = whole.rows(whole.pieces(), done)
    told = standings(whole, table)
    _write(store, mark_shown(whole, table), told)
    tell_damaged(store)
    if isinstance(failure, KeyboardInterrupt):
        raise failure
    table_console(json_file).print(_table(told))
    if told["corner"]["reason"] is not None:
        click.echo(told["corner"]["reason"], err=True)
    click.echo(f"wrote compare.parquet, .json, .png, .svg and .pdf in {out}", err=json_file == Path("-"))
    write_json(json_file, told)
    if failure is not None:
        raise failure


def _served(plan: Comparison, *, asked: tuple[str, ...]) -> Comparison:
    """Leave out the methods that the controllers cannot serve, with a note; refuse if they were asked for by name."""
    from blendctl.controllers import open_controller
    from blendctl.switches.requirements import missing_requirement

    team = [open_controller(spec, world=plan.world) for spec in plan.controllers]
    kept = []
    for name, method in plan.table_of_methods().items():
        words = missing_requirement(method, team)
        if words is None:
            kept.append(name)
        elif name in asked or name in plan.values:
            raise InputError(f"the method {name} needs {words}; leave it out, or use other controllers")
        else:
            click.echo(f"left out: {name}, which needs {words}", err=True)
    return replace(plan, methods=tuple(kept))


def _values(assignments: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Read METHOD.NAME=VALUE."""
    found: dict[str, dict[str, str]] = {}
    for text in assignments:
        where, equals, value = text.partition("=")
        method, dot, name = where.partition(".")
        if not (equals and dot and method and name and value):
            raise InputError(f"--set takes METHOD.NAME=VALUE, such as ceiling.samples=5, actually: {text!r}")
        found.setdefault(method, {})[name] = value
    return found


def _run(
    plan: Comparison, store: Store, **where: Any
) -> tuple[list[FinishedUnit], BlendctlError | KeyboardInterrupt | None]:
    """Run what is not done yet, with a bar on the terminal; give what is finished, and what stopped the rest."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

    from blendctl.experiments.engines import UnitsFailed, run_units

    pieces = plan.pieces()
    names = {piece.unit.key: piece.method for piece in pieces}
    running: dict[str, None] = {}
    columns = (TextColumn("{task.description:<40.40}"), BarColumn(bar_width=16))
    with progress_bar(*columns, MofNCompleteColumn(), TimeElapsedColumn()) as progress:
        bar = progress.add_task("starting", total=len(names))

        def hear(event: Any) -> None:
            key = event.unit.key
            if event.state == "started":
                running[key] = None
            else:
                running.pop(key, None)
            if event.state in ("lost", "failed"):
                told = f"a unit of {names[key]} was {event.state}: {event.message}"
                progress.console.print(told, highlight=False, soft_wrap=True)
            words = ", ".join(dict.fromkeys(names[k] for k in running)) or "done"
            progress.update(bar, completed=event.done, total=event.total, description=words)

        units = [piece.unit for piece in pieces]
        done: list[FinishedUnit] = []
        try:
            with closing(run_units(units, store=store, progress=hear, **where)) as stream:
                for one in stream:
                    done.append(one)  # noqa: PERF402  # those that came before an error stay
        except (UnitsFailed, StateError, KeyboardInterrupt) as error:
            return done, error
    return done, None


def _write(store: Store, table: Any, told: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    from blendctl.reports.scatter import draw_scatter, figure_bytes

    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    store.write("compare.parquet", sink.getvalue())
    store.write("compare.json", (json.dumps(told, indent=2) + "\n").encode())
    figure = draw_scatter(told)
    for kind in ("png", "svg", "pdf"):
        store.write(f"compare.{kind}", figure_bytes(figure, kind))


def _table(told: dict[str, Any]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"{told['world']}, {told['episodes']} episodes from seed {told['seed']}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("", "return", "±", "cost", "±", "share", "correct", "score", "95%"):
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    table.caption = (
        "means with 95% intervals; share: of the performant controller; correct: choices that no other "
        "controller's next step dominates; score: 0 on the mixing line, 1 at the corner; *: best setting of a sweep, "
        f"chosen {'on other episodes' if told['episodes'] > 1 else 'on the same episode'}"
    )
    for name, row in told["methods"].items():
        table.add_row(
            name + ("" if row["choice"] == "fixed" else "*"),
            f"{row['return_mean']:.2f}",
            _half(row["return_ci95"], 2),
            f"{row['cost_mean']:.1f}",
            _half(row["cost_ci95"], 1),
            f"{100 * row['share_mean']:.0f}%",
            "" if row["correct_ratio"] is None else f"{100 * row['correct_ratio']:.1f}%",
            "" if row["corner_score"] is None else f"{row['corner_score']:+.2f}",
            _span(row["corner_score_ci95"]),
            style="bold" if name in ("paper", "ceiling") else None,
        )
    return table


def _half(span: list[float] | None, digits: int) -> str:
    return "" if span is None else f"{(span[1] - span[0]) / 2:.{digits}f}"


def _span(span: list[float] | None) -> str:
    return "" if span is None else f"{span[0]:+.2f} {span[1]:+.2f}"
