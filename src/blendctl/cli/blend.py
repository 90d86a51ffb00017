"""`blendctl blend`: drive a world with a blend of controllers, beside each of them alone."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from blendctl.cli.completers import controllers as controller_names
from blendctl.cli.completers import features, rules
from blendctl.cli.invocation import command_as_typed
from blendctl.cli.multi_option import ManyValues
from blendctl.cli.output import STDOUT, json_option, table_console, write_json
from blendctl.cli.world_argument import world_argument
from blendctl.errors import InputError

__all__ = ["blend"]


@click.command(
    cls=ManyValues,
    epilog="Example: blendctl blend PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian --out out/blend",
)
@world_argument
@click.option(
    "--controllers", multiple=True, metavar="NAME|FILE|ADDRESS...", shell_complete=controller_names,
    help="Who drives, in the order performant to safe: zoo names, files (.safetensors, .onnx, .pt, .zip), addresses "
    "(tcp://, unix:), classical ones (pure-pursuit, potential-field, heading-pid, stop), module:object.  "
    "[the world's pair in the zoo]",
)  # fmt: skip
@click.option("--names", multiple=True, help="What to call them.  [from the controllers]")
@click.option("--episodes", type=click.IntRange(1), default=5, show_default=True, help="Whole episodes.")
@click.option("--steps", type=click.IntRange(1), help="Longest episode.  [the world's own]")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Episode i has seed + i.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where record, track, bandit and summary go.",
)
@json_option("the summary")
@click.option("--objectives", multiple=True, help="What is maximised.  [reward -cost]")
@click.option("--scales", multiple=True, type=float, help="What counts as one unit of each objective.  [1 each]")
@click.option(
    "--features", shell_complete=features,
    help="predictions, critics, online or one-hot.  [predictions if all bring them]",
)  # fmt: skip
@click.option("--rule", default="maximal-loss", show_default=True, shell_complete=rules, help="Decision rule.")
@click.option("--hold", type=click.IntRange(1), default=1, show_default=True, help="Control steps per decision.")
@click.option("--dwell", type=click.IntRange(1), default=1, show_default=True, help="Stages before a switch.")
@click.option(
    "--context", type=click.Choice(["current", "previous"]), default="current", show_default=True,
    help="Decide from psi at the current state, or at the one before, as the paper prints.",
)  # fmt: skip
@click.option("--noise", type=click.FloatRange(0), default=0.1, show_default=True, help="Noise, sigma.")
@click.option("--fallback", multiple=True, help="Who takes over when the driver fails.  [the last controller]")
@click.option(
    "--bandit",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Go on with a blend that was saved: bandit.safetensors of an earlier --out.",
)
@click.option("--frozen", is_flag=True, help="Decide, but do not learn.")
@click.option("--deterministic", is_flag=True, help="Mean actions instead of draws from the policies.")
@click.option("--alone/--no-alone", default=True, show_default=True, help="Also drive with each controller alone.")
@click.option(
    "--counterfactual/--no-counterfactual", default=True, show_default=True,
    help="Step every controller from each state, to tell correct choices and true losses.",
)  # fmt: skip
@click.option("--live", is_flag=True, help="Show the drive on a local web page while it goes on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Of that page; 0 takes a free one.",
)
@click.option("--open", "open_page", is_flag=True, help="Open that page in the browser.")
def blend(
    world: str,
    controllers: tuple[str, ...],
    names: tuple[str, ...],
    episodes: int,
    steps: int | None,
    seed: int,
    out: Path | None,
    json_file: Path | None,
    alone: bool,
    counterfactual: bool,
    live: bool,
    port: int,
    open_page: bool,
    **options: Any,
) -> None:
    """Drive WORLD with a blend of controllers, and print what it brought beside each controller alone."""
    from blendctl.atomic import write_atomically
    from blendctl.bandit.rules import Fixed
    from blendctl.blender import Blender, Recorder
    from blendctl.cli.blend_drive import DriveSession, drive
    from blendctl.cli.blend_table import blend_table
    from blendctl.controllers.card import versions
    from blendctl.controllers.resolve import display_name, open_controller

    team = controllers or _pair(world)
    drivers = [open_controller(spec, world=world) for spec in team]
    called = list(names) or _different([display_name(spec) for spec in team])
    settings = _settings(options, called)
    started = time.perf_counter()
    Blender(drivers, called, seed=seed, **settings).close()  # refuses before an older record makes room
    summary: dict[str, Any] = {"world": world, "controllers": list(team), "names": called, "seed": seed}
    about = {
        "experiment": "blend",
        "command": command_as_typed(click.get_current_context()),
        "versions": versions("numpy", "numba", "mujoco", "gymnasium"),
        "options": {name: _plain(value) for name, value in settings.items()},
        "cards": {name: getattr(driver, "card", None) for name, driver in zip(called, drivers, strict=True)},
    }
    plan = {"planned_episodes": episodes}
    if out is not None:
        _make_room(out)
        write_atomically(out / "run.json", _json_bytes(summary | about | plan))
    recorder = None if out is None else Recorder(out / "record", overwrite=True)
    blender = Blender(drivers, called, seed=seed, record=recorder, **settings)
    with DriveSession(world, called, episodes=episodes, steps=steps, seed=seed, counterfactual=counterfactual) as stand:
        if live:
            click.echo(f"live: {stand.go_live(port, objectives=list(blender.objectives.names))}", err=True)
            if open_page:
                click.launch(stand.url)
        if alone:
            summary["alone"] = {}
            fixed = {name: value for name, value in settings.items() if name not in ("rule", "bandit")}
            for arm, name in enumerate(called):
                driver = Blender(drivers, called, rule=Fixed(arm=arm), seed=seed, **fixed | {"frozen": True})
                summary["alone"][name] = drive(stand, driver, title=f"{name} alone")
            if out is not None:  # so that it is not lost if the blend does not end
                write_atomically(out / "run.json", _json_bytes(summary | about | plan))
        summary |= drive(stand, blender, title="blended", track=None if out is None else out / "track")
    bench = blender.drivers.bench
    summary |= {
        "loss_bound": blender.loss_bound if math.isfinite(blender.loss_bound) else None,
        "events": blender.counts.events,
        "failures": dict(zip(called, bench.failures, strict=True)),
        "rescaled_features": blender.bandit.rescaled,
        "seconds": round(time.perf_counter() - started, 1),
    }
    summary |= {name: value for name, value in about.items() if name != "cards"}
    table_console(json_file).print(blend_table(summary, called))
    if out is not None:
        blender.save(out / "bandit.safetensors")
        write_atomically(out / "summary.json", _json_bytes(summary))
        told = json_file != STDOUT
        click.echo(f"wrote {out / 'record'}, {out / 'summary.json'} and {out / 'bandit.safetensors'}", err=not told)
        click.echo(f"why a decision was made: blendctl explain {out} --step N", err=not told)
        click.echo(f"a page with a replay:    blendctl report {out}", err=not told)
    write_json(json_file, summary)


def _make_room(out: Path) -> None:
    """Take away what an older run said of itself: a crash must not leave it beside this run's record."""
    for name in ("summary.json", "run.json", "bandit.safetensors", "report.html"):
        (out / name).unlink(missing_ok=True)


def _json_bytes(data: dict[str, Any]) -> bytes:
    return (json.dumps(data, indent=2) + "\n").encode()


def _pair(world: str) -> tuple[str, ...]:
    from blendctl.controllers import zoo_names
    from blendctl.controllers.zoo import PAIRS

    pair = PAIRS.get(world, ())
    shipped = zoo_names()
    if not pair or any(name not in shipped for name in pair):
        raise InputError(
            f"no pair of controllers ships for {world}; name some, for example: "
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
        own = [f"--{name}" for name in ("scales", "rule", "noise") if asked(name) is ParameterSource.COMMANDLINE]
        if own:
            raise InputError(f"a saved learner brings its own options; do not give {', '.join(own)} beside --bandit")
        return settings | {"bandit": options["bandit"]}
    settings |= {"rule": options["rule"], "noise": options["noise"]}
    return settings | ({"scales": list(options["scales"])} if options["scales"] else {})


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
