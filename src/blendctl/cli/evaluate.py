"""`blendctl evaluate`: how good a controller is, over whole episodes, with intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from blendctl.atomic import write_atomically
from blendctl.cli import completers
from blendctl.cli.output import json_option, progress_bar, table_console, write_json
from blendctl.cli.world_argument import world_option
from blendctl.controllers import NetworkController, RemoteController
from blendctl.controllers.classical import CLASSICAL
from blendctl.controllers.resolve import open_controller
from blendctl.errors import BlendctlError, InputError, StateError
from blendctl.evaluation import Evaluation
from blendctl.evaluation import evaluate as run_episodes

__all__ = ["evaluate"]

PATIENCE = 5.0  # s for an answer from an address: no robot is waiting for it


@click.command(epilog="Example: blendctl evaluate PointGoal1/ppo --episodes 100 --json out/ppo.json")
@click.argument("controllers", nargs=-1, required=True, metavar="NAME|PATH...", shell_complete=completers.controllers)
@world_option("--env", "world", help="World to evaluate in, or FILE.py:TASK.  [the one it was trained in]")
@click.option("--episodes", type=click.IntRange(1), default=100, show_default=True, help="Whole episodes to run.")
@click.option("--seed", type=click.IntRange(0), default=1_000_000, show_default=True, help="Episode i gets seed + i.")
@click.option("--deterministic", is_flag=True, help="Mean actions instead of draws from the policy.")
@click.option("--threads", type=click.IntRange(1), help="Threads of the physics.  [all cores]")
@json_option("the summary (of several controllers a list of summaries)")
@click.option("--csv", "csv_file", type=click.Path(path_type=Path), help="Write a row per episode as CSV.")
def evaluate(
    controllers: tuple[str, ...],
    world: str | None,
    episodes: int,
    seed: int,
    deterministic: bool,
    threads: int | None,
    json_file: Path | None,
    csv_file: Path | None,
) -> None:
    """Evaluate controllers over whole episodes.

    A controller is a zoo name such as PointGoal1/ppo, a run directory, a file, an address (tcp://host:port), a
    classical one such as pure-pursuit, or Python of yours such as mine.py:drive. One that was not trained by blendctl
    does not know its world: name it with --env.
    """
    found: dict[str, Evaluation] = {}
    with progress_bar() as progress:
        for name in controllers:
            task = progress.add_task(name, total=None)
            found[name] = _evaluated(
                name,
                world,
                episodes=episodes,
                seed=seed,
                deterministic=deterministic,
                threads=threads,
                on_step=lambda count, task=task: progress.advance(task, count),  # type: ignore[misc]  # default binds now
            )
    table_console(json_file).print(_table(found))
    summaries: list[dict[str, Any]] = [{"controller": name} | e.summary() for name, e in found.items()]
    write_json(json_file, summaries[0] if len(summaries) == 1 else summaries)
    if csv_file:
        write_atomically(csv_file, _rows(found).encode())


def _evaluated(name: str, world: str | None, *, on_step: Callable[[int], None], **options: Any) -> Evaluation:
    """Open a controller and evaluate it; an error in a user's own code names the controller that made it."""
    with ExitStack() as stack:
        unknown = f'controller "{name}" does not say its world; name one with --env'
        if world is None and name in CLASSICAL:
            raise InputError(unknown)
        controller = open_controller(name, world=world)
        if isinstance(controller, RemoteController):
            controller.deadline = PATIENCE
            stack.enter_context(controller)
        place = world or getattr(controller, "card", {}).get("world")
        if not place:
            raise InputError(unknown)
        try:
            return run_episodes(controller, place, on_step=on_step, **options)
        except (BlendctlError, OSError):
            raise
        except Exception as error:
            if isinstance(controller, NetworkController):
                raise  # no code of the user's was run
            raise StateError(
                f'controller "{name}" raised {type(error).__name__}: {error}; what is wrong with it says '
                f"blendctl check-controller {name} --world {place}"
            ) from error


def _table(found: dict[str, Evaluation]) -> Table:
    told = [evaluation.summary() for evaluation in found.values()]
    places = ", ".join(dict.fromkeys(str(s["world"]) for s in told))
    table = Table(box=None, padding=(0, 2, 0, 0), title=f"{places}, {told[0]['episodes']} episodes")
    for column in ("controller", "return", "95%", "cost", "95%"):
        table.add_column(column, justify="left" if column == "controller" else "right", no_wrap=True)
    for name, evaluation in found.items():
        s = evaluation.summary()
        table.add_row(
            name,
            f"{s['return_mean']:.2f}",
            _span(s["return_ci95"]),
            f"{s['cost_mean']:.1f}",
            _span(s["cost_ci95"]),
        )
    return table


def _span(interval: list[float] | None) -> str:
    return "one episode" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"


def _rows(found: dict[str, Evaluation]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["controller", "world", "seed", "deterministic", "return", "cost", "length"])
    for name, e in found.items():
        for episode in range(len(e.returns)):
            row = (e.returns[episode], e.costs[episode], int(e.lengths[episode]))
            writer.writerow([name, e.world, e.seed + episode, e.deterministic, *row])
    return text.getvalue()
