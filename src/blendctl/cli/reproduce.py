"""`blendctl reproduce`: run the paper's experiment."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.invocation import typed_command
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import make_table, mean_cells, optional, table_console, write_json
from blendctl.cli.unit_runs import say_how_to_resume, unit_progress, warn_changed_versions, warn_damaged_units
from blendctl.cli.world_argument import world_option
from blendctl.errors import BlendctlError, InputError, StateError

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.experiments.protocol import Settings, UnitLocation
    from blendctl.experiments.reproduce import Reproduction


@click.command(
    cls=MultiValueCommand,
    epilog="Example: blendctl reproduce --worlds PointGoal1 --scale quick --seed 0 --out out/reproduce",
)
@world_option(
    "--worlds", multiple=True, metavar="WORLD...",
    help="Worlds of the experiment.  [PointGoal1 PointPush1 CarButton1]",
)  # fmt: skip
@shared.controllers_option("Two other controllers, for a single world.  [the paper's pairs from the zoo]")
@click.option(
    "--scale", type=click.Choice(["quick", "paper"]), default="quick",
    help="quick: 10 data points; paper: 110 (3.3 million steps per world).",
)  # fmt: skip
@shared.number_option("--data-points", "Number of data points, instead of --scale.")
@shared.number_option("--episodes", "Episodes per data point.", default=30)
@shared.number_option("--steps", "Maximum steps per episode.  [the world's limit, 1,000]")
@shared.number_option("--traces", "Independent learners per world.", default=1)
@shared.seed_option()
@click.option(
    "--authors", is_flag=True,
    help="Use the settings of the authors' code: noise 0.01, delta 0.2, the printed radius, the previous state's "
    "context.",
)  # fmt: skip
@click.option("--features", default="predictions", help="Context: predictions, critics or one-hot.")
@shared.context_option(None)
@click.option("--noise", type=click.FloatRange(0), help="Noise level sigma of the feedback.  [0.1]")
@click.option("--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), help="Failure probability.  [0.05]")
@click.option(
    "--radius", type=click.Choice(["determinant", "paper"]),
    help="Confidence radius: determinant (tight) or paper (as printed).  [determinant]",
)  # fmt: skip
@click.option("--regularization", type=float, help="Regularization lambda.  [1]")
@click.option("--feature-bound", type=float, help="Bound L on the length of a context.  [1]")
@click.option(
    "--theta-bound",
    type=float,
    help="Bound S on the length of theta.  [1.5; 0.1 from the identity if the context networks were trained together]",
)
@click.option("--rule", shell_complete=completers.rules, help="Decision rule.  [maximal-loss]")
@shared.out_option(
    "Directory for tables, figure, verdict and units; an interrupted run resumes there.", default="out/reproduce"
)
@shared.engine_options
@shared.json_option("the verdict")
@shared.trust_code_option
def reproduce(
    worlds: tuple[str, ...],
    controllers: tuple[str, ...],
    out: Path,
    engine: dict[str, Any],
    json_file: Path | None,
    **options: Any,
) -> None:
    """Run the paper's experiment: performant, safe and blended controller on the same episodes, figure and verdict."""
    from blendctl.experiments.engines import UnitsFailed
    from blendctl.experiments.reproduce import Reproduction
    from blendctl.experiments.store import Store

    settings = _settings(worlds, controllers, options)
    command = typed_command()
    store = Store(out, "reproduce", identity=settings.identity(), parts=settings.parts(), command=command)
    click.get_current_context().call_on_close(store.close)
    warn_changed_versions(store)
    started = time.perf_counter()
    reproduction = Reproduction(settings, store)
    failure: BlendctlError | None = None
    try:
        _run(reproduction, engine)
    except KeyboardInterrupt:
        _write_results(reproduction, started)
        say_how_to_resume(out, command)
        raise
    except (UnitsFailed, StateError) as error:
        failure = error  # raised at the end: the results so far are shown first
    verdict = _write_results(reproduction, started)
    if failure is not None and not verdict:
        raise failure
    console = table_console(json_file)
    console.print(_table(verdict))
    for line in _sentences(reproduction, verdict):
        console.print(line, soft_wrap=True)
    warn_damaged_units(store)
    console.print(
        f"wrote figure.png, .pdf, .svg, points.parquet, episodes.parquet and verdict.json in {out}",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    write_json(json_file, verdict)
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
    options_from(2, 2, dict(chosen))  # raises for values that are not allowed
    return Settings(
        worlds=dict(pair_of(name, controllers, features=options["features"]) for name in names),
        data_points=options["data_points"] or SCALES[options["scale"]],
        context=options["context"] or preset["context"],
        options=chosen,
        **{name: options[name] for name in ("seed", "traces", "episodes", "steps", "features")},
    )


def _run(reproduction: Reproduction, engine: dict[str, Any]) -> None:
    """Run the missing units with a progress bar that shows the newest data point."""
    labels = {key: _label(places[0]) for key, places in reproduction.places.items()}
    with unit_progress(labels) as progress, closing(reproduction.run(progress=progress, **engine)) as updates:
        for update in updates:  # closing the generator stops the workers, also after Ctrl-C
            progress.describe(f"{_label(update.places[0])}: {update.return_mean:.1f} / {update.cost_mean:.1f}")


def _label(location: UnitLocation) -> str:
    return f"{location.world} {location.role} {location.data_point + 1}"


def _write_results(reproduction: Reproduction, started: float) -> dict[str, Any]:
    """Write verdict, figure and run time of the finished data points; return the verdict."""
    from blendctl.reports.figure import draw_reproduction
    from blendctl.reports.scatter import figure_bytes

    verdict = reproduction.verdict()
    worlds = reproduction.settings.worlds
    titles = {world: f"{world}\n{' + '.join(_print_name(spec) for spec in pair)}" for world, pair in worlds.items()}
    if verdict:
        figure = draw_reproduction(reproduction.tables.points(), titles=titles)
        for kind in ("png", "pdf", "svg"):
            reproduction.store.write(f"figure.{kind}", figure_bytes(figure, kind))
    seconds = round(time.perf_counter() - started, 1)
    reproduction.store.note(seconds=seconds, milliseconds_per_iteration=reproduction.milliseconds())
    return verdict


def _print_name(spec: str) -> str:
    """Return a controller's name as papers print it: PPO-Lagrangian."""
    from blendctl.controllers.resolve import display_name

    name = display_name(spec)
    first, dash, rest = name.partition("-")
    return f"{first.upper()}{dash}{rest.capitalize()}" if first in ("ppo", "trpo", "cpo") else name


def _table(verdict: dict[str, Any]) -> Table:
    table = make_table(
        "", "", "episodes", "return", "±", "cost", "±", "correct",
        left=2,
        caption="means with 95% intervals; correct: choices that no other controller's next step dominates",
    )  # fmt: skip
    ratios = {"blended": "correct_ratio", "random": "correct_ratio_random"}
    for world, result in verdict.items():
        for role in ("performant", "safe", "random", "blended"):
            if role not in result:
                continue
            row = result[role]
            table.add_row(
                world,
                role,
                str(row["episodes"]),
                *mean_cells(row),
                optional(result.get(ratios.get(role, "")), ".1%"),
                style="bold" if role == "blended" else None,
            )
    return table


def _sentences(reproduction: Reproduction, verdict: dict[str, Any]) -> list[str]:
    """Return the verdict and the time per iteration as sentences."""
    from blendctl.experiments.verdict import in_words

    lines = [line for world, result in verdict.items() for line in in_words(world, result)]
    for world, times in reproduction.milliseconds().items():
        paper = "" if times["paper"] is None else f"; the paper reports {times['paper']:g} ms on its machine"
        lines.append(f"{world}: an iteration took {times['measured']:.2f} ms, counterfactual steps included{paper}.")
    return lines
