"""`blendctl certify`: prove a cost bound for a blend or controller, on fresh episodes."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import completers
from blendctl.cli import shared_options as shared
from blendctl.cli.environment_argument import EITHER, environment_option
from blendctl.cli.invocation import typed_command
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import echo, make_table, table_console, write_json
from blendctl.cli.unit_runs import say_how_to_resume, unit_progress
from blendctl.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.certificates import Certificate, Claim
    from blendctl.experiments.certification import Certification
    from blendctl.experiments.store import Store

SEED = 50_000_000  # far from the layouts of training, evaluation and comparison


def _parse_range(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """Return the two numbers of FROM..TO, the smaller one first."""
    if value is None or ctx.resilient_parsing:
        return None
    low, _, high = value.partition("..")
    try:
        ends = float(low), float(high)
    except ValueError:
        ends = 0.0, 0.0
    if not ends[0] < ends[1]:
        raise click.BadParameter(f"expected a smaller and a larger number such as 0..0.8, actually: {value!r}")
    return ends


@click.command(
    cls=MultiValueCommand,
    epilog="Example: blendctl certify out/blend --budget 25 --episodes 1000",
)
@click.argument("driver", metavar="DIRECTORY|CONTROLLER", shell_complete=completers.controllers)
@click.option("--budget", type=float, required=True, help="Claimed upper bound of the mean cost of an episode.")
@click.option(
    "--share", type=float, help="Also claim that at most this share of the episodes costs more than the budget."
)
@shared.number_option("--episodes", "Number of episodes; with --sequential the largest number.", default=500)
@click.option("--confidence", type=float, default=0.95, help="Confidence of the claim and of each bound.")
@shared.seed_option(SEED, per_episode=True)
@click.option(
    "--dial", callback=_parse_range, metavar="FROM..TO", help="Find the boldest setting of the dial that passes."
)
@shared.number_option("--settings", "Settings of the dial that are tested, from FROM to TO.", default=5)
@click.option("--sequential", is_flag=True, help="Stop as soon as the claim is proven or hopeless.")
@partial(environment_option, default="[as the blend or controller was made for]", flags=EITHER, apart=True)
@shared.controllers_option(
    "The blend's controllers again, in their order; needed if they are Python code or remote.", metavar="NAME|FILE..."
)
@shared.trust_code_option
@shared.deterministic_option
@click.option("--cost-ceiling", type=float, help="Cost that no episode exceeds.  [the steps of a blendctl world]")
@click.option(
    "--return-range", callback=_parse_range, metavar="LOW..HIGH",
    help="Returns outside count as the nearest end.  [-0.1 to 0.1 per step, 10 more above, in blendctl's worlds]",
)  # fmt: skip
@shared.out_option("Directory for certificate.json and certificate.html.  [the blend's; out/certify for a controller]")
@shared.engine_options
@shared.json_option("the certificate")
def certify(
    driver: str,
    budget: float,
    share: float | None,
    confidence: float,
    dial: tuple[float, float] | None,
    settings: int,
    sequential: bool,
    cost_ceiling: float | None,
    return_range: tuple[float, float] | None,
    out: Path | None,
    engine: dict[str, Any],
    json_file: Path | None,
    **options: Any,
) -> None:
    """Prove a cost bound for a blend or controller: run fresh episodes and write a certificate.

    The claim is that the mean cost of an episode is at most the budget. DIRECTORY is what `blendctl blend --out` wrote;
    its blend drives frozen. CONTROLLER is a zoo name, a file, an address, or Python code. The exit code is 0 if the
    claim is proven, else 1.
    """
    from blendctl.atomic import write_atomically
    from blendctl.certificates import Claim
    from blendctl.directory_lock import DirectoryLock
    from blendctl.experiments.certification import certify_dial, certify_driver
    from blendctl.reports.certificate_page import certificate_html, verdict_words

    plan = _plan(driver, **options)
    claim = Claim(
        budget=budget,
        cost_ceiling=_cost_ceiling(plan, cost_ceiling),
        share=share,
        return_range=return_range or (plan.return_range if plan.world else None),
        confidence=confidence,
    )
    _check_episodes(plan, claim, sequential=sequential)
    prefers = [] if dial is None else _dial_settings(dial, settings)
    with (plan.at(prefers[0]) if prefers else plan).make_blender() as checked:
        if checked.feature.warning is not None:
            echo(f"warning: {checked.feature.warning}", err=True)
    about = _about(plan)
    if plan.blend is not None and not prefers:
        about["arguments"]["features"] = checked.feature_name  # in words, with its dial

    target = out or (Path("out/certify") if plan.blend is None else Path(plan.blend))
    store = _open_store(target, about)
    click.get_current_context().call_on_close(store.close)

    def judge(one: Certification) -> Certificate:
        label = f"prefer {one.changes['prefer']:g}" if prefers else "episodes"
        with unit_progress({u.key: label for u in one.units()}) as progress:
            try:
                return certify_driver(
                    one, claim, sequential=sequential, settings=max(len(prefers), 1), store=store, progress=progress,
                    **engine,
                )  # fmt: skip
            except KeyboardInterrupt:
                say_how_to_resume(store.directory, typed_command())
                raise

    if prefers:
        chosen, tests = certify_dial(plan, prefers, judge)
        certificate = tests[chosen or 0].certificate
        about["dial"] = {
            "chosen": None if chosen is None else prefers[chosen],
            "settings": [test.row() for test in tests],
        }
    else:
        certificate = judge(plan)
    if sequential:
        about["outcome"] = claim.outcome(certificate.costs, planned=plan.episodes)
    certificate = replace(certificate, about=about)
    with DirectoryLock(target):
        certificate.write(target / "certificate.json")
        write_atomically(target / "certificate.html", certificate_html(certificate).encode())
    store.close()
    shutil.rmtree(store.directory)  # the certificate has every episode
    console = table_console(json_file)
    console.print(_table(certificate))
    console.print(verdict_words(certificate), soft_wrap=True)
    console.print(f"wrote certificate.json and certificate.html in {target}", soft_wrap=True)
    write_json(json_file, certificate.to_dict())
    if not certificate.passed:
        sys.exit(1)


def _plan(
    driver: str,
    *,
    world: str | None,
    choices: dict[str, Any],
    controllers: tuple[str, ...],
    episodes: int,
    seed: int,
    deterministic: bool,
) -> Certification:
    """Plan the certification of a blend in its directory, or of a single controller."""
    from blendctl.blender.blend_dir import BLEND_FILES, read_blend_dir
    from blendctl.cli.controller_argument import open_named_controller
    from blendctl.controllers.resolve import display_name
    from blendctl.experiments.certification import Certification
    from blendctl.user_code import names_code

    changes = {"stochastic": False} if deterministic else {}
    path = Path(driver)
    folder = path.parent if path.name in BLEND_FILES else path
    common: dict[str, Any] = {"changes": changes, "episodes": episodes, "seed": seed}
    if (folder / "run.json").is_file() and not (folder / "controller.safetensors").is_file():
        blend = read_blend_dir(folder)
        if world is None and names_code(blend.world):
            raise InputError(f"the world of {folder} is Python code; name it again: --world {blend.world}")
        if world is None:  # as the blend was run, unless the user chose otherwise
            cost = blend.environment.get("cost")
            if names_code(cost) and not choices["cost"]:
                raise InputError(f"the cost of {folder} is Python code; name it again: --cost {cost}")
            known = {"episode_steps": blend.steps} | blend.environment
            choices = known | {name: value for name, value in choices.items() if value}
        place = _open_world(world or blend.world, choices)
        blend.open_controllers(controllers or None)  # raises if they cannot be opened, or are not those of the blend
        return Certification(
            controllers=controllers or blend.specs,
            names=blend.names,
            blend=str(folder),
            **place,
            **common,
        )
    if controllers:
        raise InputError(f"--controllers belongs to the directory of a blend, and {driver} is not one")
    opened_world = None if world is None else _open_world(world, choices)
    controller = open_named_controller(driver, world=(opened_world or {}).get("world") or None)
    named = getattr(controller, "card", {}).get("world")
    if opened_world is None and (not named or names_code(named)):
        raise InputError(f'controller "{driver}" does not name its world, or one in Python; use --world')
    place = opened_world or _open_world(str(named), choices)
    return Certification(controllers=(driver,), names=(display_name(driver),), **place, **common)


def _open_world(name: str, choices: dict[str, Any]) -> dict[str, Any]:
    """Return the world or other environment of a name; Python code runs only if the user typed it."""
    from blendctl.envs.environment import EnvironmentSpec

    spec = EnvironmentSpec(name, **choices)
    return {"steps": spec.episode_steps} | ({"world": spec.name} if spec.is_plain_world else {"environment": spec})


def _cost_ceiling(plan: Certification, declared: float | None) -> float:
    if declared is not None:
        return declared
    if plan.environment is not None:
        raise InputError(
            f"declare the cost that no episode of {plan.environment.name} exceeds: --cost-ceiling; for a cost of 0 or "
            "1 per step it is the number of steps"
        )
    return float(plan.length)


def _check_episodes(plan: Certification, claim: Claim, *, sequential: bool) -> None:
    """Warn before the run if the episodes cannot prove the claim; raise InputError if the run would stop at once."""
    from blendctl.certificates.certificate import MOST_EPISODES

    if plan.episodes > MOST_EPISODES:
        raise InputError(f"a certificate has {MOST_EPISODES} episodes at most, actually: {plan.episodes}")
    needed = claim.episodes_needed(sequential=sequential)
    if plan.episodes >= needed:
        return
    words = (
        f"{plan.episodes} episodes are too few to prove the claim: {needed} are needed even if none of them costs "
        f"anything (an episode can cost {claim.cost_ceiling:g}); use --episodes {needed} or more"
    )
    if sequential:
        raise InputError(words)
    echo(f"warning: {words}", err=True)


def _dial_settings(dial: tuple[float, float], count: int) -> list[float]:
    import numpy as np

    if count < 2 or not 0.0 <= dial[0] <= 1.0 or not 0.0 <= dial[1] <= 1.0:
        raise InputError(
            f"--dial takes settings from 0 (safest) to 1 (boldest), two --settings or more, actually: {dial[0]:g} to "
            f"{dial[1]:g} in {count} settings"
        )
    return [round(float(prefer), 6) for prefer in np.linspace(*dial, count)]


def _about(plan: Certification) -> dict[str, Any]:
    """Describe the driver, the environment and the software."""
    from blendctl.blender.blend_dir import read_blend_dir
    from blendctl.controllers.card import versions

    arguments = {} if plan.blend is None else read_blend_dir(plan.blend).settings
    return {
        "driver": f"blend of {', '.join(plan.names)}" if plan.blend is not None else plan.names[0],
        "world": plan.world if plan.environment is None else plan.environment.name,
        "controllers": list(plan.controllers),
        "names": list(plan.names),
        "arguments": {name: _plain(value) for name, value in (arguments | plan.changes | {"frozen": True}).items()},
        "steps": plan.steps,
        "seed": plan.seed,
        "digests": plan.digests(),
        "versions": versions("numpy", "scipy", "numba", "mujoco", "gymnasium"),
        "command": typed_command(),
        "date": time.strftime("%Y-%m-%d"),
    }


def _open_store(target: Path, about: dict[str, Any]) -> Store:
    """Open the finished episodes of this driver in the target directory, or start with none."""
    from blendctl.experiments.store import Store

    identity = {name: about[name] for name in ("controllers", "arguments", "world", "steps", "digests")}
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    return Store(target / f"certify-{key}", "certify", identity=identity, command=about["command"])


def _plain(value: Any) -> Any:
    """Return an argument as JSON data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value if isinstance(value, str | int | float | list | None) else str(value)


def _table(certificate: Certificate) -> Table:
    shown, about = certificate.bounds, certificate.about
    table = make_table(
        "", "in the sample", f"{100 * certificate.claim.confidence:.4g}% bound",
        title=f"{about['driver']} in {about['world']}, {shown.episodes} episodes from seed {about['seed']}",
    )  # fmt: skip
    table.add_row("mean cost", f"{shown.cost_mean:.2f}", f"<= {shown.cost_mean_upper:.2f}")
    table.add_row(
        f"episodes over {certificate.claim.budget:g}", f"{shown.share_over:.1%}", f"<= {shown.share_over_upper:.1%}"
    )
    lower = shown.return_mean_lower
    table.add_row("mean return", f"{shown.return_mean:.2f}", "" if lower is None else f">= {lower:.2f}")
    for row in about.get("dial", {}).get("settings", ()):
        result = "passed" if row["passed"] else "not passed"
        table.add_row(
            f"prefer {row['prefer']:g}: {result}", f"{row['cost_mean']:.2f}", f"<= {row['cost_mean_upper']:.2f}"
        )
    return table
