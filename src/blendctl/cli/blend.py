"""`blendctl blend`: drive a world with a blend of controllers and with each controller alone."""

from __future__ import annotations

import math
import time
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.certificate_option import open_monitor, status_words
from blendctl.cli.environment_argument import EITHER, environment_argument
from blendctl.cli.invocation import typed_command
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import echo, json_bytes, make_table, optional, table_console, write_json
from blendctl.errors import BlendctlError, InputError

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.envs.environment import EnvironmentSpec

OBJECTIVES = ["reward", "-cost"]  # unless --objectives names others
# Files of an earlier run. They are removed first, so that a crash cannot leave them beside the new record.
OLD_FILES = ("summary.json", "run.json", "bandit.safetensors", "report.html", "certificate.json", "certificate.html")


@click.command(
    cls=MultiValueCommand,
    epilog="Example: blendctl blend PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian --out out/blend",
)
@partial(environment_argument, flags=EITHER)
@shared.controllers_option(
    "Controllers, ordered from performant to safe: zoo names, files (.safetensors, .onnx, .pt, .zip), "
    "addresses (tcp://, unix:), classical ones (pure-pursuit, potential-field, vfh, dwa, push, heading-pid, stop), "
    "module:object.  "
    "[the world's pair in the zoo; with --cost-budget, --prefer or plain --lookahead the set that ships for it]",
    metavar="NAME|FILE|ADDRESS...",
)
@shared.trust_code_option
@click.option("--names", multiple=True, help="Names of the controllers.  [from the controllers]")
@shared.number_option("--episodes", "Number of episodes.", default=5)
@shared.seed_option(per_episode=True)
@shared.out_option("Directory for record, track, learner and summary.")
@click.option("--replace", is_flag=True, help="Replace an earlier run in --out.")
@shared.json_option("the summary")
@click.option("--objectives", multiple=True, help="Objectives, all maximised.  [reward -cost]")
@click.option("--scales", multiple=True, type=float, help="Size of one unit of each objective.  [1 each]")
@click.option(
    "--features", shell_complete=completers.features,
    help="Context: lookahead, predictions (the paper's), critics, online or one-hot.  "
    "[lookahead if there are look-ahead networks for the controllers, else predictions if all have context networks]",
)  # fmt: skip
@click.option(
    "--lookahead", is_flag=False, flag_value="learned", metavar="[learned|simulated|twin|FILE|NAME]",
    help="Look ahead by trained networks (those of the zoo for the controllers, or a file or zoo name of others), by "
    "simulation of the world, or of its twin, which is rebuilt from the observation.",
)  # fmt: skip
@click.option("--cost-budget", type=click.FloatRange(0), help="Cost that an episode may have; sets the dial.")
@click.option("--prefer", type=click.FloatRange(0, 1), help="Dial of look-ahead: 0 safest, 1 most performant.  [0.5]")
@click.option(
    "--rule", shell_complete=completers.rules,
    help="Decision rule.  [maximal-loss; greedy for look-ahead with more than two controllers]",
)  # fmt: skip
@shared.number_option("--hold", "Control steps per decision.  [1; with look-ahead as it was trained]")
@shared.number_option("--dwell", "Minimum stages between two switches.", default=1)
@shared.context_option("current")
@click.option("--noise", type=click.FloatRange(0), default=0.1, help="Noise level sigma of the feedback.")
@click.option("--handover", help="After a switch: slew:LARGEST change per step, or fade:STEPS.  [at once]")
@click.option("--fallback", multiple=True, help="Controllers that take over after a failure.  [the last controller]")
@click.option(
    "--bandit", type=click.Path(path_type=Path, dir_okay=False),
    help="Continue with a saved learner: bandit.safetensors of an earlier --out.",
)  # fmt: skip
@click.option("--frozen", is_flag=True, help="Decide without learning.")
@click.option(
    "--certificate", type=click.Path(path_type=Path, dir_okay=False),
    help="Compare the episodes with certificate.json of certify, and report when they no longer agree.",
)  # fmt: skip
@shared.deterministic_option
@click.option("--alone/--no-alone", default=True, help="Also drive with each controller alone.")
@click.option(
    "--counterfactual/--no-counterfactual", default=None,
    help="Simulate every controller from each state, to measure correct choices and true losses of single stages.  "
    "[on in blendctl's worlds, except with look-ahead, which plans beyond a stage]",
)  # fmt: skip
@click.option(
    "--frames", type=click.IntRange(0),
    help="Pictures per episode for the report, in environments other than blendctl's worlds (they need "
    "render_mode=\"rgb_array\"); 0 for none.  [with --out 200, fewer if drawing is slow]",
)  # fmt: skip
@click.option("--guard", is_flag=True, help="Fall back to a controller that is shown to be better than the blend.")
@click.option("--live", is_flag=True, help="Show the run on a local web page; for blendctl's worlds.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the live page; 0 selects a free one.")
@shared.open_option("the live page")
def blend(
    environment: EnvironmentSpec,
    controllers: tuple[str, ...],
    names: tuple[str, ...],
    episodes: int,
    seed: int,
    out: Path | None,
    replace: bool,
    json_file: Path | None,
    alone: bool,
    counterfactual: bool | None,
    certificate: Path | None,
    frames: int | None,
    guard: bool,
    live: bool,
    port: int,
    open_page: bool,
    **options: Any,
) -> None:
    """Drive ENV with a blend of controllers and with each controller alone, and print the results.

    ENV is a world such as PointGoal1, a Gymnasium id such as HalfCheetah-v5, MODULE:ID, or FILE.py:FUNCTION, a function
    that makes an environment. `blendctl check-env ENV` says what it can do.
    """
    from blendctl.atomic import write_atomically
    from blendctl.bandit.rules import Fixed
    from blendctl.blender import Blender, Guard, Recorder
    from blendctl.blender.bound_check import bound_words
    from blendctl.blender.run_status import stage_in_words
    from blendctl.blender.run_warnings import FEATURE
    from blendctl.cli.blend_drive import DriveSession
    from blendctl.controllers.card import versions
    from blendctl.controllers.lookahead_network import controller_digest
    from blendctl.controllers.resolve import display_name, open_controller
    from blendctl.directory_lock import DirectoryLock
    from blendctl.features import SimulatedLookAhead

    world, steps, own = environment.name, environment.episode_steps, environment.is_plain_world
    if live and not own:
        raise InputError("--live shows the worlds of blendctl; leave it out, and see the page: blendctl report DIR")
    if guard and not alone:
        raise InputError("--guard compares with each controller alone; leave --no-alone out")
    if frames and out is None:
        raise InputError("--frames are for the page of a run; name its directory: --out DIR")
    dialled = options["cost_budget"] is not None or options["prefer"] is not None
    requested = dialled or options["features"] == "lookahead"
    learned = options["lookahead"] == "learned" or (options["lookahead"] is None and requested)
    specs = controllers or _shipped(world, lookahead=learned, known=environment.is_world)
    drivers = [open_controller(spec, world=environment.world) for spec in specs]
    arm_names = list(names) or _unique([display_name(spec) for spec in specs])
    monitor = open_monitor(certificate, world=world, controllers=specs)
    settings = _blender_settings(options, arm_names, environment=environment, seed=seed)
    if guard and settings["objectives"] != OBJECTIVES:
        raise InputError("--guard knows the objectives reward and -cost; leave --objectives out")
    started = time.perf_counter()
    # Check the settings before the files of an earlier run are removed.
    with Blender(drivers, arm_names, seed=seed, **settings) as checked:
        if checked.feature.warning is not None:
            echo(f"warning: {checked.feature.warning}", err=True)
        short_sighted = options["features"] is None and not checked.feature.bootstraps
        lookahead = checked.feature.lookahead
        budget = None if lookahead is None else lookahead.cost_budget
    summary: dict[str, Any] = {"world": world, "controllers": list(specs), "names": arm_names, "seed": seed}
    summary["features"] = checked.feature_name
    if not own:
        summary["environment"] = environment.to_dict()
    provenance = {
        "experiment": "blend",
        "command": typed_command(),
        "versions": versions("numpy", "numba", "mujoco", "gymnasium"),
        "options": {name: _plain(value) for name, value in settings.items()},
    }
    cards = {name: getattr(driver, "card", None) for name, driver in zip(arm_names, drivers, strict=True)}

    def write_run_file() -> None:
        if out is not None:
            digests = [controller_digest(driver) for driver in drivers]
            plan = {"cards": cards, "digests": digests, "planned_episodes": episodes, "steps": steps}
            write_atomically(out / "run.json", json_bytes(summary | provenance | plan))

    judged = own and lookahead is None if counterfactual is None else counterfactual
    session = DriveSession(
        environment=environment, names=arm_names, episodes=episodes, seed=seed, counterfactual=judged, frames=frames
    )
    session.check_pictures()
    if out is not None:
        click.get_current_context().with_resource(DirectoryLock(out))
        _remove_old_run(out, replace=replace)
    write_run_file()
    recorder = None if out is None else Recorder(out / "record", overwrite=True)
    with session:
        if live:
            echo(f"live: {session.open_live_page(port, objectives=list(checked.quantities))}", err=True)
            if open_page:
                click.launch(session.url)
        if alone:
            summary["alone"] = {}
            fixed = {name: value for name, value in settings.items() if name not in ("rule", "bandit")}
            if isinstance(settings["features"], SimulatedLookAhead):  # nothing to simulate for a fixed choice
                fixed |= {"features": "one-hot", "hold": checked.hold}
            for arm, name in enumerate(arm_names):
                driver = Blender(drivers, arm_names, rule=Fixed(arm=arm), seed=seed, **fixed | {"frozen": True})
                summary["alone"][name] = session.drive(driver, title=f"{name} alone", budget=budget)
            if guard:
                settings["guard"] = Guard(_outcomes(summary["alone"])).to_dict()
            summary["control_period"] = session.control_period
            write_run_file()  # keeps these results if the blended run crashes
        blender = Blender(drivers, arm_names, seed=seed, record=recorder, certificate=monitor, **settings)
        if checked.feature.warning is not None:  # it was printed before
            blender.warnings.say(checked.feature.warning, key=FEATURE, logged=True)
        track = None if out is None else out / "track"
        pictures = None if out is None or environment.is_world or frames == 0 else out / "frames"
        summary |= session.drive(blender, title="blended", track=track, pictures=pictures, budget=budget)
    summary |= {
        "loss_bound": blender.loss_bound if math.isfinite(blender.loss_bound) else None,
        **blender.bound_check.status(),
        "events": blender.counts.events,
        "failures": dict(zip(arm_names, blender.drivers.bench.failures, strict=True)),
        "rescaled_features": blender.bandit.rescaled,
        "seconds": round(time.perf_counter() - started, 1),
    }
    if monitor is not None:
        summary["certificate"] = monitor.status()
    status = blender.status()
    summary |= {"warnings": status["warnings"], "budget_warning": checked.feature.warning}
    if guard:
        summary["guard"] = status["guard"]
    summary |= {"control_period": session.control_period, "no_pictures": session.no_pictures}
    if judged:
        summary["judged"] = stage_in_words(blender.hold, session.control_period)
    provenance["options"] = {name: _plain(value) for name, value in settings.items()}
    summary |= provenance
    console = table_console(json_file)
    console.print(_table(summary, arm_names, judged=judged))
    if short_sighted and settings["objectives"] == OBJECTIVES:
        console.print(
            "There are no look-ahead networks for these controllers: the blend compares single stages, and may do "
            "worse than its safe controller alone. To train some: blendctl fit, or in a world of blendctl "
            "train-lookahead",
            soft_wrap=True,
        )
    if judged and (words := bound_words(summary)) is not None:
        console.print(words, soft_wrap=True)
    if monitor is not None:
        console.print(status_words(monitor), soft_wrap=True)
    if out is not None:
        blender.save(out / "bandit.safetensors")
        write_atomically(out / "summary.json", json_bytes(summary))
        for line in (
            f"wrote {out / 'record'}, {out / 'summary.json'} and {out / 'bandit.safetensors'}",
            f"explain a decision:   blendctl explain {out} --step N",
            f"page with a replay:   blendctl report {out}",
        ):
            console.print(line, soft_wrap=True)
    write_json(json_file, summary)
    if guard and status["guard"]["fallen_back_to"] is not None:
        echo(f"the guard fell back to {status['guard']['fallen_back_to']}: use it instead", err=True)
    for name, reason in session.failures.items():
        count = summary["failures"][name]
        echo(f"warning: {name} failed {count} times in the blended run; at first it {reason}", err=True)
    silent = [name for name, acted in zip(arm_names, blender.drivers.acted, strict=True) if not acted]
    if silent:
        raise BlendctlError(
            f"{', '.join(silent)} never returned an action: the results are those of the other controllers; "
            f"test it with: blendctl check-controller"
        )


def _remove_old_run(out: Path, *, replace: bool) -> None:
    """Remove the files of an earlier run; raise InputError if there is one and it must not be replaced."""
    from blendctl.envs.frame_recorder import list_frames
    from blendctl.table_parts import list_parts

    old = [out / name for name in OLD_FILES if (out / name).exists()]
    if not replace and (old or list_parts(out / "record")):
        raise InputError(f"{out} holds an earlier run; use another --out, or --replace to remove it")
    for file in [*old, *list_frames(out / "frames"), *list_parts(out / "track")]:
        file.unlink()


def _shipped(world: str, *, lookahead: bool, known: bool) -> tuple[str, ...]:
    """Return the zoo's controllers for a world."""
    from blendctl.controllers.zoo import shipped_controllers

    names = shipped_controllers(world, lookahead=lookahead)
    if not names and not known:
        raise InputError(f"blendctl knows no controllers for {world}; name yours: --controllers FILE.py:FUNCTION ...")
    if not names:
        raise InputError(
            f"the zoo has no pair of controllers for {world}; name some, for example: "
            "--controllers pure-pursuit potential-field"
        )
    return names


def _unique(names: list[str]) -> list[str]:
    """Number the names that occur more than once."""
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


def _outcomes(alone: dict[str, Any]) -> dict[str, list[list[float]]]:
    """Return the sums of reward and -cost of every episode, by controller; a single episode twice."""
    rows = {name: [[a, -b] for a, b in zip(one["returns"], one["costs"], strict=True)] for name, one in alone.items()}
    return {name: values if len(values) > 1 else 2 * values for name, values in rows.items()}


def _blender_settings(
    options: dict[str, Any], names: list[str], *, environment: EnvironmentSpec, seed: int
) -> dict[str, Any]:
    """Turn the command's options into keyword arguments of `Blender`."""
    settings = {name: options[name] for name in ("hold", "dwell", "context", "frozen", "features", "handover")}
    settings |= _lookahead_settings(options, environment=environment, seed=seed)
    settings["objectives"] = list(options["objectives"]) or list(OBJECTIVES)
    settings["fallback"] = list(options["fallback"]) or names[-1]
    settings["stochastic"] = not options["deterministic"]
    if options["bandit"] is not None:
        source = click.get_current_context().get_parameter_source
        typed = [f"--{name}" for name in ("scales", "rule", "noise") if source(name) is ParameterSource.COMMANDLINE]
        if typed:
            raise InputError(f"a saved learner has its own options; do not use {', '.join(typed)} with --bandit")
        return settings | {"bandit": options["bandit"]}
    settings |= {"noise": options["noise"]} | ({} if options["rule"] is None else {"rule": options["rule"]})
    return settings | ({"scales": list(options["scales"])} if options["scales"] else {})


def _plain(value: Any) -> Any:
    """Return an option as JSON data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {
            field.name: _plain(getattr(value, field.name)) for field in fields(value)
        }
    return str(value) if isinstance(value, Path) else value


def _lookahead_settings(options: dict[str, Any], *, environment: EnvironmentSpec, seed: int) -> dict[str, Any]:
    """Return the features and the dial of a look-ahead blend, if one was requested."""
    from blendctl.features import LookAhead, SimulatedLookAhead, Twin

    lookahead, dial = options["lookahead"], {name: options[name] for name in ("cost_budget", "prefer")}
    if lookahead is None and all(value is None for value in dial.values()):
        return {}
    if options["features"] not in (None, "lookahead"):
        raise InputError(f"--lookahead, --cost-budget and --prefer do not go with --features {options['features']}")
    # Where episodes may end before the limit, the card of the networks knows better how long they are.
    measured = lookahead not in ("simulated", "twin") and not environment.is_world and environment.episode_steps is None
    limit = None if measured else environment.episode_limit()
    episode: dict[str, Any] = {} if limit is None else {"episode_steps": limit}
    if lookahead in ("simulated", "twin"):
        if lookahead == "twin" and not environment.is_world:
            raise InputError("--lookahead twin rebuilds a world of blendctl; use --lookahead simulated")
        simulator = Twin(environment.name, environment.episode_steps) if lookahead == "twin" else None
        if options["hold"] is not None:
            episode["hold"] = options["hold"]
        return {"features": SimulatedLookAhead(simulator, **dial, **episode, seed=seed)}
    network = None if lookahead in (None, "learned") else lookahead
    return {"features": LookAhead(network, **dial, **episode)}


def _episodes(summary: dict[str, Any]) -> str:
    return f"{summary['episodes']} episode{'' if summary['episodes'] == 1 else 's'}"


def _table(summary: dict[str, Any], names: list[str], *, judged: bool) -> Table:
    budget = summary.get("cost_budget")
    caption = f"features: {summary['features']}; share: of the steps, by {'/'.join(names)}"
    caption += f"; means of {_episodes(summary)}, 95% intervals in the summary"
    if budget is not None:
        caption += f"; over: share of episodes whose cost exceeds the budget of {budget:g}, with its 95% interval"
    if judged:
        caption += (
            f"; correct, loss and bound cover {summary['judged']} after a decision, not the episode: share of "
            "choices that no other controller's feedback dominates, true maximal loss, upper bound on its mean"
        )
    table = make_table(
        "", "return", "cost", *(["over"] if budget is not None else []), "share", "switches",
        *(["correct", "loss", "bound"] if judged else []),
        title=f"{summary['world']}, {_episodes(summary)} from seed {summary['seed']}",
        caption=caption,
    )  # fmt: skip
    for title, row in (summary.get("alone", {}) | {"blended": summary}).items():
        cells = [title, f"{row['return_mean']:.2f}", f"{row['cost_mean']:.1f}"]
        if budget is not None:
            low, high = row["over_budget_ci95"]
            cells.append(f"{row['over_budget']:.0%} ({low:.0%} to {high:.0%})")
        cells.append("/".join(f"{100 * row['arm_share'][name]:.0f}" for name in names) + "%")
        cells.append(str(row["switches"]))
        if judged:
            values = (row["correct_ratio"], ".1%"), (row["average_loss"], ".5f"), (row.get("loss_bound"), ".4f")
            cells += [optional(value, spec) for value, spec in values]
        table.add_row(*cells, style="bold" if title == "blended" else None)
    return table
