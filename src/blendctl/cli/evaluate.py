"""`blendctl evaluate`: measure return and cost of controllers over whole episodes, with intervals."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.atomic import write_atomically
from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.controller_argument import open_named_controller
from blendctl.cli.environment_argument import environment_option
from blendctl.cli.output import make_table, progress_bar, table_console, write_json
from blendctl.controllers import NetworkController
from blendctl.controllers.classical import CLASSICAL
from blendctl.envs.environment import EnvironmentSpec
from blendctl.episodes import SUMS
from blendctl.errors import BlendctlError, InputError, StateError
from blendctl.evaluation import Evaluation
from blendctl.evaluation import evaluate as evaluate_controller

if TYPE_CHECKING:
    from rich.table import Table


@click.command(epilog="Example: blendctl evaluate PointGoal1/ppo --episodes 100 --json out/ppo.json")
@click.argument("controllers", nargs=-1, required=True, metavar="NAME|PATH...", shell_complete=completers.controllers)
@partial(environment_option, default="[the world that the controller was trained in]")
@shared.number_option("--episodes", "Number of episodes.", default=100)
@shared.seed_option(1_000_000, per_episode=True)
@shared.deterministic_option
@shared.number_option("--threads", "Physics threads.  [all cores]")
@shared.json_option("the summary (a list for several controllers)")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write one row per episode as CSV.")
@shared.trust_code_option
def evaluate(
    controllers: tuple[str, ...],
    environment: EnvironmentSpec | None,
    json_file: Path | None,
    csv_file: Path | None,
    **options: Any,
) -> None:
    """Evaluate controllers over whole episodes.

    A controller is a zoo name such as PointGoal1/ppo, a run directory, a file, an address (tcp://host:port), a
    classical controller such as pure-pursuit, or Python code such as mine.py:drive. Use --env for controllers that
    blendctl did not train.
    """
    evaluations: dict[str, Evaluation] = {}
    with progress_bar() as progress:
        for name in controllers:
            task = progress.add_task(name, total=None)
            evaluations[name] = _evaluate_one(name, environment, on_step=partial(progress.advance, task), **options)
    summaries: list[dict[str, Any]] = [{"controller": name} | e.summary() for name, e in evaluations.items()]
    table_console(json_file).print(_table(summaries))
    write_json(json_file, summaries[0] if len(summaries) == 1 else summaries)
    if csv_file:
        write_atomically(csv_file, _csv_rows(evaluations).encode())


def _evaluate_one(name: str, environment: EnvironmentSpec | None, **options: Any) -> Evaluation:
    """Open a controller and evaluate it; an error in a user's own code names the controller."""
    no_world = f'controller "{name}" does not name its world; use --env'
    if environment is None and name in CLASSICAL:
        raise InputError(no_world)
    controller = open_named_controller(name, world=None if environment is None else environment.world)
    world: Any = environment or getattr(controller, "card", {}).get("world")
    if not world:
        raise InputError(no_world)
    try:
        return evaluate_controller(controller, world, **options)
    except (BlendctlError, OSError):
        raise
    except Exception as error:
        if isinstance(controller, NetworkController):
            raise  # an error of blendctl, not of the user's code
        raise StateError(
            f'controller "{name}" raised {type(error).__name__}: {error}; to find its defects: '
            f"blendctl check-controller {name} --world {getattr(world, 'name', world)}"
        ) from error


def _table(summaries: list[dict[str, Any]]) -> Table:
    worlds = ", ".join(dict.fromkeys(str(summary["world"]) for summary in summaries))
    table = make_table(
        "controller", "return", "95%", "cost", "95%", title=f"{worlds}, {summaries[0]['episodes']} episodes"
    )
    for summary in summaries:
        cells = []
        for quantity, spec in (("return", ".2f"), ("cost", ".1f")):
            interval = summary[f"{quantity}_ci95"]
            cells.append(format(summary[f"{quantity}_mean"], spec))
            cells.append("one episode" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}")
        table.add_row(summary["controller"], *cells)
    return table


def _csv_rows(evaluations: dict[str, Evaluation]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, ["controller", "world", "seed", "deterministic", *SUMS])
    writer.writeheader()
    for name, e in evaluations.items():
        about = {"controller": name, "world": e.world, "deterministic": e.deterministic}
        writer.writerows(about | row for row in e.rows())
    return text.getvalue()
