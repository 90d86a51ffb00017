"""`blendctl compare`: compare methods that switch between controllers, on the same episodes."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import shared_options as shared
from blendctl.cli.environment_argument import EITHER, environment_argument
from blendctl.cli.invocation import typed_command
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import echo, make_table, mean_cells, optional, table_console, write_json
from blendctl.cli.unit_runs import say_how_to_resume, unit_progress, warn_changed_versions, warn_damaged_units
from blendctl.errors import BlendctlError, InputError, StateError

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.envs.environment import EnvironmentSpec
    from blendctl.experiments.compare import Comparison
    from blendctl.experiments.engines import FinishedUnit
    from blendctl.experiments.store import Store


def _list_methods(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print every method with its parameters and exit."""
    if not value or ctx.resilient_parsing:
        return
    from blendctl.switches.methods import METHODS

    for method in METHODS.values():
        echo(f"{method.name:<15} {method.help}")
        for name, parameter in method.parameters.items():
            values = ", ".join(f"{v:g}" for v in parameter.values)
            echo(f"    {method.name}.{name} = {values}: {parameter.help}")
    ctx.exit()


@click.command(
    cls=MultiValueCommand,
    epilog="Example: blendctl compare PointGoal1 --methods paper random simplex ceiling --out out/compare.  "
    "All methods with their parameters: blendctl compare --list",
)
@partial(environment_argument, flags=EITHER)
@click.option("--methods", multiple=True, metavar="NAME...", help="Methods to compare.  [all; see --list]")
@shared.controllers_option(
    "Two controllers or more, performant first and safe last: zoo names, files, addresses.  [the paper's pair; methods "
    "that look ahead with networks use all controllers of the world that have some]",
    metavar="PERFORMANT ... SAFE",
)
@click.option(
    "--lookahead", multiple=True, metavar="FILE|DIR|NAME",
    help="Look-ahead networks: files, run directories of train-lookahead, or names in the zoo. With several, as of "
    "several training seeds, means and intervals are over all of them.  [those that ship]",
)  # fmt: skip
@shared.number_option("--episodes", "Episodes per method.", default=30)
@shared.seed_option(1_000_000, per_episode=True)
@click.option(
    "--blend", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False), default=None,
    help="Also judge the saved blend in DIR, as `blend --out` or `fit --out` wrote it.",
)  # fmt: skip
@click.option(
    "--set", "assignments", multiple=True, metavar="METHOD.NAME=VALUE",
    help="Value of a parameter; several values, separated by commas, are swept: ceiling.horizon=30,60",
)  # fmt: skip
@shared.out_option("Directory for table, figure and units; an interrupted run resumes there.", default="out/compare")
@shared.engine_options
@click.option(
    "--judge-every", type=click.IntRange(0), default=10,
    help="Control steps between two choices that are judged correct or not; 0 judges none.",
)  # fmt: skip
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list_methods,
    help="List the methods with their parameters.",
)  # fmt: skip
@shared.json_option("the scores")
@shared.trust_code_option
def compare(
    environment: EnvironmentSpec,
    methods: tuple[str, ...],
    controllers: tuple[str, ...],
    assignments: tuple[str, ...],
    blend: Path | None,
    out: Path,
    engine: dict[str, Any],
    json_file: Path | None,
    **options: Any,
) -> None:
    """Compare methods that switch between controllers in ENV, on the same episodes.

    ENV is a world such as PointGoal1, a Gymnasium id such as HalfCheetah-v5, MODULE:ID, or FILE.py:FUNCTION.

    Each method has a corner score: 0 is random mixing of the first (performant) and the last (safe) controller, 1 is
    the return of the performant one at the cost of the safe one.
    """
    from blendctl.controllers.zoo import shipped_controllers
    from blendctl.experiments.compare import Comparison
    from blendctl.experiments.standings import mark_shown, standings
    from blendctl.experiments.store import Store
    from blendctl.switches.methods import METHODS, find_method

    # Raise for wrong names before anything is written.
    for name in methods:
        find_method(name)
    place, names = _place_and_controllers(environment, controllers, blend)
    default = not controllers and blend is None and not options["lookahead"]
    plan = Comparison(
        controllers=names,
        lookahead_controllers=shipped_controllers(place["world"], lookahead=True) if default else (),
        methods=methods or tuple(METHODS),
        values=_parse_values(assignments),
        blend=None if blend is None else str(blend),
        **place,
        **options,
    )
    plan = _without_unsupported(plan, requested=methods)
    command = typed_command()
    store = Store(out, "compare", identity=plan.identity, parts=plan.parts, command=command)
    click.get_current_context().call_on_close(store.close)
    warn_changed_versions(store)
    started = time.perf_counter()
    done, failure = _run(plan, store, engine)
    store.note(seconds=round(time.perf_counter() - started, 1))
    if isinstance(failure, KeyboardInterrupt):
        say_how_to_resume(out, command)
    finished = plan.finished(done)  # the plan without methods that did not finish
    if finished is None:
        assert failure is not None
        raise failure
    table = finished.rows(finished.units(), done)
    scores = standings(finished.compared(), table)
    _write(store, mark_shown(finished.compared(), table), scores)
    warn_damaged_units(store)
    if isinstance(failure, KeyboardInterrupt):
        raise failure
    console = table_console(json_file)
    console.print(_table(scores))
    console.print(_choices(scores))
    if scores["corner"]["reason"] is not None:
        echo(scores["corner"]["reason"], err=True)
    console.print(f"wrote compare.parquet, .json, .png, .svg and .pdf in {out}", soft_wrap=True)
    console.print(f"page:  blendctl report {out}", soft_wrap=True)
    write_json(json_file, scores)
    if failure is not None:
        raise failure


def _without_unsupported(plan: Comparison, *, requested: tuple[str, ...]) -> Comparison:
    """Drop the methods that the controllers or the environment do not support; raise if one was requested by name."""
    from blendctl.controllers import open_controller
    from blendctl.controllers.zoo import lookahead_files
    from blendctl.experiments.units import file_digests
    from blendctl.switches.base import open_worlds
    from blendctl.switches.requirements import missing_requirement

    world, compared = plan.world if plan.environment is None else None, plan.compared()
    with closing(open_worlds(plan.environment or plan.world, 1)) as worlds:
        capable = worlds
    supported, found = [], ""
    opened: dict[str, Any] = {}
    for name, method in compared.methods.items():
        specs = compared.controllers_of(method)
        opened |= {spec: open_controller(spec, world=world) for spec in specs if spec not in opened}
        needed = [
            missing_requirement(method, [opened[spec] for spec in specs], lookahead=one, worlds=capable)
            for one in plan.lookahead or (None,)
        ]
        requirement = next(filter(None, needed), None)
        if requirement is None:
            supported.append(name)
            if method.needs == "lookahead" and not plan.lookahead:
                [found] = file_digests("", [str(next(lookahead_files([opened[spec] for spec in specs])))])
        elif name in requested or name in plan.values:
            raise InputError(f"the method {name} needs {requirement}; leave it out, or use other controllers")
        else:
            echo(f"left out: {name}, which needs {requirement}", err=True)
    judge_every = plan.judge_every if hasattr(capable, "peek") else 0
    return replace(plan, methods=tuple(supported), found_networks=found, judge_every=judge_every)


def _place_and_controllers(
    environment: EnvironmentSpec, controllers: tuple[str, ...], blend: Path | None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments of `Comparison` that name the environment, and the controllers; check that they fit."""
    from blendctl.blender.blend_dir import read_blend_dir
    from blendctl.controllers.resolve import needs_naming
    from blendctl.envs.environment import expect_cost
    from blendctl.experiments.protocol import controllers_of

    if blend is not None and not controllers:
        controllers = read_blend_dir(blend).specs
        if any(map(needs_naming, controllers)):
            raise InputError(
                f"{blend} has controllers that run code or are remote; name them again: --controllers "
                f"{' '.join(controllers)}"
            )
    if environment.is_plain_world:
        name, names = controllers_of(environment.name, controllers)
        return {"world": name, "steps": environment.episode_steps}, names
    if len(controllers) < 2:
        raise InputError("name two controllers or more, performant first and safe last: --controllers PERFORMANT SAFE")
    with closing(environment.make()) as env:
        expect_cost(env)
        expect_actions(controllers, env)
    return {"world": environment.name, "environment": environment}, controllers


def expect_actions(controllers: tuple[str, ...], env: Any) -> None:
    """Raise InputError if a controller's first action does not belong to an environment's actions."""
    import numpy as np

    from blendctl.controllers import open_controller
    from blendctl.envs.copies import as_env_action

    observation, _ = env.reset(seed=0)
    for spec in controllers:
        try:
            action: Any = open_controller(spec).act(observation, np.random.default_rng(0))
            as_env_action(env.action_space, action)
        except (ValueError, TypeError, IndexError, AttributeError, KeyError) as error:
            raise InputError(
                f'controller "{spec}" does not fit {env.action_space} at the first observation: '
                f"{type(error).__name__}: {error}"
            ) from error


def _parse_values(assignments: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Parse METHOD.NAME=VALUE."""
    values: dict[str, dict[str, str]] = {}
    for text in assignments:
        target, equals, value = text.partition("=")
        method, dot, name = target.partition(".")
        if not (equals and dot and method and name and value):
            raise InputError(f"--set takes METHOD.NAME=VALUE, such as ceiling.samples=5, actually: {text!r}")
        values.setdefault(method, {})[name] = value
    return values


def _run(
    plan: Comparison, store: Store, engine: dict[str, Any]
) -> tuple[list[FinishedUnit], BlendctlError | KeyboardInterrupt | None]:
    """Run the missing units with a progress bar; return the finished ones and the error that stopped the rest."""
    from blendctl.experiments.engines import UnitsFailed, run_units

    units = plan.units()
    done: list[FinishedUnit] = []
    with unit_progress({entry.unit.key: entry.method for entry in units}) as progress:
        try:
            with closing(
                run_units([entry.unit for entry in units], store=store, progress=progress, **engine)
            ) as stream:
                for finished in stream:
                    done.append(finished)  # noqa: PERF402  # units that finish before an error are kept
        except (UnitsFailed, StateError, KeyboardInterrupt) as error:
            return done, error
    return done, None


def _write(store: Store, table: Any, scores: dict[str, Any]) -> None:
    from blendctl.experiments.tables import as_parquet
    from blendctl.reports.scatter import draw_scatter, figure_bytes

    store.write("compare.parquet", as_parquet(table))
    store.write_json("compare.json", scores)
    figure = draw_scatter(scores)
    for kind in ("png", "svg", "pdf"):
        store.write(f"compare.{kind}", figure_bytes(figure, kind))


def _table(scores: dict[str, Any]) -> Table:
    from blendctl.controllers.resolve import display_name
    from blendctl.experiments.standings import COST_BUDGET

    several = max(len(row.get("networks", ())) for row in scores["methods"].values())
    names = enumerate(scores["controllers"], 1)
    between = [f"controller-{number}: {display_name(name)}" for number, name in names][1:-1]
    wider = {len(row["controllers"]) for row in scores["methods"].values()} - {len(scores["controllers"])}
    table = make_table(
        "", "return", "±", "cost", "±", f"over {COST_BUDGET:g}", "score", "95%",
        title=f"{scores['world']}, {scores['episodes']} episodes from seed {scores['seed']}",
        caption=f"means with 95% intervals; over {COST_BUDGET:g}: share of the episodes that cost more; score: 0 on "
        "the mixing line, 1 at the corner; *: best setting of a sweep, "
        f"chosen {'on other episodes' if scores['episodes'] > 1 else 'on the same episode'}"
        + (f"; look-ahead: means and intervals over {several} networks and the episodes" if several else "")
        + (f"; look-ahead: with {max(wider)} controllers, the other methods with two" if wider else "")
        + "".join(f"; {label}" for label in between),
    )  # fmt: skip
    for name, row in scores["methods"].items():
        interval = row["corner_score_ci95"]
        table.add_row(
            name + ("" if row["choice"] == "fixed" else "*"),
            *mean_cells(row),
            optional(row["over_budget"], ".0%"),
            optional(row["corner_score"], "+.2f"),
            "" if interval is None else f"{interval[0]:+.2f} {interval[1]:+.2f}",
            style="bold" if name in ("paper", "ceiling", "blend") else None,
        )
    return table


def _choices(scores: dict[str, Any]) -> Table:
    table = make_table(
        "", "share", "correct", "switches", "per second", "jerk",
        caption="means per episode; share: of the performant controller; correct: choices that no other controller's "
        "next step dominates; jerk: mean change of the action between two control steps",
    )  # fmt: skip
    for name, row in scores["methods"].items():
        table.add_row(
            name,
            optional(row["share_mean"], ".0%"),
            optional(row["correct_ratio"], ".1%"),
            optional(row["switches_mean"], ".1f"),
            optional(row["switches_per_second"], ".2f"),
            optional(row["jerk_mean"], ".3f"),
        )
    return table
