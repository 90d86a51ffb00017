"""`blendctl blend`: drive a world with a blend of controllers, beside each of them alone."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from blendctl.cli.many import ManyValues
from blendctl.errors import InputError

__all__ = ["blend"]

# The pairs of the paper, for worlds whose controllers ship: the performant one, then the safe one.
PAIRS = {
    "PointGoal1": ("ppo", "ppo-lagrangian"),
    "PointPush1": ("trpo", "cpo"),
    "CarButton1": ("trpo", "trpo-lagrangian"),
}


@click.command(
    cls=ManyValues,
    epilog="Example: blendctl blend PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian --out out/blend",
)
@click.argument("world")
@click.option(
    "--controllers", multiple=True, metavar="NAME|FILE|ADDRESS...",
    help="Who drives, in the order performant to safe: zoo names, files (.safetensors, .onnx, .pt, .zip), addresses "
    "(tcp://, unix:), classical ones (pure-pursuit, potential-field, heading-pid, stop), module:object.  "
    "[the world's pair in the zoo]",
)  # fmt: skip
@click.option("--names", multiple=True, help="What to call them.  [from the controllers]")
@click.option("--episodes", type=click.IntRange(1), default=5, show_default=True, help="Whole episodes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Episode i has seed + i.")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Where record, bandit and summary go."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the summary here too.")
@click.option("--objectives", multiple=True, help="What is maximised.  [reward -cost]")
@click.option(
    "--scales", multiple=True, type=float, help="What counts as one unit of each objective.  [1 each]"
)
@click.option("--features", help="predictions, critics, online or one-hot.  [predictions if all bring them]")
@click.option("--rule", default="maximal-loss", show_default=True, help="Decision rule.")
@click.option(
    "--hold", type=click.IntRange(1), default=1, show_default=True, help="Control steps per decision."
)
@click.option("--dwell", type=click.IntRange(1), default=1, show_default=True, help="Stages before a switch.")
@click.option(
    "--context", type=click.Choice(["current", "previous"]), default="current", show_default=True,
    help="Decide from psi at the current state, or at the one before, as the paper prints.",
)  # fmt: skip
@click.option("--noise", type=click.FloatRange(0), default=0.1, show_default=True, help="Noise, sigma.")
@click.option(
    "--fallback", multiple=True, help="Who takes over when the driver fails.  [the last controller]"
)
@click.option("--bandit", type=click.Path(path_type=Path, dir_okay=False), help="Go on with a saved learner.")
@click.option("--frozen", is_flag=True, help="Decide, but do not learn.")
@click.option("--deterministic", is_flag=True, help="Mean actions instead of draws from the policies.")
@click.option(
    "--alone/--no-alone", default=True, show_default=True, help="Also drive with each controller alone."
)
@click.option(
    "--counterfactual/--no-counterfactual", default=True, show_default=True,
    help="Step every controller from each state, to tell correct choices and true losses.",
)  # fmt: skip
def blend(
    world: str,
    controllers: tuple[str, ...],
    names: tuple[str, ...],
    episodes: int,
    seed: int,
    out: Path | None,
    json_file: Path | None,
    alone: bool,
    counterfactual: bool,
    **options: Any,
) -> None:
    """Drive WORLD with a blend of controllers, and print what it brought beside each controller alone."""
    from rich.console import Console

    from blendctl.atomic import write_atomically
    from blendctl.bandit.rules import Fixed
    from blendctl.blender import Blender, Recorder
    from blendctl.controllers.anywhere import open_controller, short_name
    from blendctl.envs import find_task

    find_task(world)  # says what there is
    team = controllers or _pair(world)
    drivers = [open_controller(spec, world=world) for spec in team]
    called = list(names) or _different([short_name(spec) for spec in team])
    console = Console()
    settings = _settings(options, called)
    summary: dict[str, Any] = {"world": world, "controllers": list(team), "names": called, "seed": seed}
    started = time.perf_counter()
    Blender(drivers, called, seed=seed, **settings).close()  # refuses before an older record makes room
    recorder = None if out is None else Recorder(out / "record", overwrite=True)
    blender = Blender(drivers, called, seed=seed, record=recorder, **settings)
    if alone:
        summary["alone"] = {}
        fixed = {name: value for name, value in settings.items() if name not in ("rule", "bandit")}
        for arm, name in enumerate(called):
            driver = Blender(drivers, called, rule=Fixed(arm=arm), seed=seed, **fixed | {"frozen": True})
            tally = _drive(world, driver, episodes, seed, counterfactual, console, name)
            summary["alone"][name] = tally.summary()
    tally = _drive(world, blender, episodes, seed, counterfactual, console, "blended")
    summary |= tally.summary()
    summary |= {
        "loss_bound": blender.loss_bound if math.isfinite(blender.loss_bound) else None,
        "events": blender.counts.events,
        "rescaled_features": blender.bandit.rescaled,
        "options": {name: _plain(value) for name, value in settings.items()},
        "seconds": round(time.perf_counter() - started, 1),
    }
    console.print(_table(summary, called))
    text = (json.dumps(summary, indent=2) + "\n").encode()
    if out is not None:
        write_atomically(out / "summary.json", text)
        blender.bandit.save(out / "bandit.safetensors")
        click.echo(f"wrote {out / 'record'}, {out / 'summary.json'} and {out / 'bandit.safetensors'}")
        click.echo(f"why a decision was made: blendctl explain {out} --step N")
    if json_file is not None:
        write_atomically(json_file, text)


def _pair(world: str) -> tuple[str, ...]:
    from blendctl.controllers import zoo_names
    from blendctl.envs.catalog import short_name

    place = short_name(world)
    pair = tuple(f"{place}/{algorithm}" for algorithm in PAIRS.get(place, ()))
    shipped = zoo_names()
    if not pair or any(name not in shipped for name in pair):
        raise InputError(
            f"no pair of controllers ships for {place}; name some, for example: "
            "--controllers pure-pursuit potential-field"
        )
    return pair


def _different(names: list[str]) -> list[str]:
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


def _settings(options: dict[str, Any], names: list[str]) -> dict[str, Any]:
    settings = {name: options[name] for name in ("hold", "dwell", "context", "frozen")}
    settings["objectives"] = list(options["objectives"]) or ["reward", "-cost"]
    settings["fallback"] = list(options["fallback"]) or names[-1]
    settings["features"] = options["features"]
    settings["stochastic"] = not options["deterministic"]
    if options["bandit"] is not None:
        asked = click.get_current_context().get_parameter_source
        own = [
            f"--{name}" for name in ("scales", "rule", "noise") if asked(name) is ParameterSource.COMMANDLINE
        ]
        if own:
            raise InputError(
                f"a saved learner brings its own options; do not give {', '.join(own)} beside --bandit"
            )
        return settings | {"bandit": options["bandit"]}
    settings |= {"rule": options["rule"], "noise": options["noise"]}
    return settings | ({"scales": list(options["scales"])} if options["scales"] else {})


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _drive(
    world: str, blender: Any, episodes: int, seed: int, counterfactual: bool, console: Any, title: str
) -> Any:
    from blendctl.blender import run
    from blendctl.blender.tally import Tally
    from blendctl.envs.catalog import find_task, short_name
    from blendctl.envs.registration import world_id

    tally = Tally(blender.names)
    total = episodes * find_task(world).max_episode_steps
    place = world_id(short_name(world))
    with blender, _display(console, title, total) as show:
        for record in run(place, blender, episodes=episodes, seed=seed, counterfactual=counterfactual):
            tally.add(record)
            show(tally, record)
    return tally


@contextmanager
def _display(console: Any, title: str, total: int) -> Iterator[Any]:
    """Show a drive while it goes on, ten times a second, on a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn

    with Progress(
        TextColumn("[bold]{task.description:<15.15}"),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[told]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task(title, total=total, told="")
        shown = 0.0

        def show(tally: Any, record: Any) -> None:
            nonlocal shown
            now = time.perf_counter()
            if now - shown < 0.1:
                return
            shown = now
            shares = "/".join(f"{100 * driven / tally.steps:.0f}" for driven in tally.driven.values())
            told = (
                f"episode {tally.ended + 1}: return {tally.returns[-1]:5.1f} cost {tally.costs[-1]:3.0f} "
                f"share {shares}% {record.name:<15.15}"
            )
            progress.update(task, completed=tally.steps, told=told)

        yield show


def _table(summary: dict[str, Any], names: list[str]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    title = f"{summary['world']}, {summary['episodes']} episodes from seed {summary['seed']}"
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    columns = ("", "return", "cost", "share", "switches", "correct", "loss", "bound")
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=True)
    table.caption = (
        f"means of {summary['episodes']} episodes, 95% intervals in the summary; loss: true maximal loss per stage; "
        "bound: what it cannot exceed, on average"
    )
    rows = summary.get("alone", {}) | {"blended": summary}
    for title, told in rows.items():
        share = "/".join(f"{100 * told['arm_share'][name]:.0f}" for name in names) + "%"
        table.add_row(
            title,
            f"{told['return_mean']:.2f}",
            f"{told['cost_mean']:.1f}",
            share,
            str(told["switches"]),
            "" if told["correct_ratio"] is None else f"{100 * told['correct_ratio']:.1f}%",
            "" if told["average_loss"] is None else f"{told['average_loss']:.5f}",
            "" if told.get("loss_bound") is None else f"{told['loss_bound']:.4f}",
            style="bold" if title == "blended" else None,
        )
    return table
