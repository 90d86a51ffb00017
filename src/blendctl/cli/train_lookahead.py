"""`blendctl train-lookahead`: train the look-ahead networks of a set of controllers."""

from __future__ import annotations

import dataclasses
import math
import shlex
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import numpy as np

from blendctl.cli import shared_options as shared
from blendctl.cli.invocation import typed_command
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import make_table, progress_bar, table_console, write_json
from blendctl.cli.train import DelayedInterrupt, chosen_options, hyper_parameters, option_words
from blendctl.cli.world_argument import world_argument
from blendctl.controllers import LookAheadNetwork, open_controller, write_lookahead
from blendctl.controllers.lookahead_file import LOOKAHEAD_FILE
from blendctl.controllers.lookahead_network import controller_label
from blendctl.controllers.zoo import PAIRS, add_to_zoo, check_new, lookahead_path, write_card
from blendctl.directory_lock import DirectoryLock
from blendctl.errors import InputError
from blendctl.training.lookahead_config import LookAheadConfig, require_several


@click.command(
    "train-lookahead",
    cls=MultiValueCommand,
    epilog="Example: blendctl train-lookahead PointGoal1 --controllers PointGoal1/ppo PointGoal1/ppo-lagrangian "
    "--out runs/lookahead --steps 2e6 --seed 0",
)
@world_argument
@shared.controllers_option(
    "Two or more controllers, in the order of the blend.  [the pair of the world in the zoo]",
    metavar="NAME|PATH",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Run directory.")
@click.option("--resume", is_flag=True, help="Continue the run in its directory, in new episodes.")
@click.option("--add", is_flag=True, help="Add the networks to the zoo of this installation at the end.")
@click.option("--replace", is_flag=True, help="Allow --add to overwrite networks of the same controllers.")
@shared.json_option("the card of the networks")
@hyper_parameters(LookAheadConfig)
@shared.trust_code_option
def train_lookahead(
    world: str,
    controllers: tuple[str, ...],
    out: Path,
    resume: bool,
    add: bool,
    replace: bool,
    json_file: Path | None,
    **hyper_parameter_values: Any,
) -> None:
    """Train look-ahead networks: the return and cost that follow in WORLD if each of the controllers drives next.

    First the paths of the controllers are learned. Then all controllers drive a branch from every visited state, and
    the networks learn what follows for any cost weight. Finally the switch is measured on validation seeds at several
    cost weights. Writes to the run directory: lookahead.safetensors with its card as .json and .md, paths.safetensors,
    checkpoint.safetensors and decisions-*.safetensors.
    """
    from blendctl.training import make_worlds
    from blendctl.training import train_lookahead as train
    from blendctl.training.encodings import world_encodings
    from blendctl.training.lookahead_checkpoint import read_checkpoint
    from blendctl.training.lookahead_training import LookAheadProgress

    if replace and not add:
        raise InputError("--replace needs --add")
    names = controllers or PAIRS.get(world, ())
    if not names:
        raise InputError(f"the zoo has no pair of controllers for {world}; name them with --controllers")
    drivers = [open_controller(name, world=world) for name in names]
    require_several(drivers)
    if add:
        check_new(lookahead_path(world, [controller_label(driver) for driver in drivers]), out, replace=replace)
    chosen = chosen_options(hyper_parameter_values)
    saved = read_checkpoint(out).config if resume else LookAheadConfig()
    config = LookAheadConfig.from_dict(saved.to_dict() | chosen)
    console = table_console(json_file)
    encodings = world_encodings(world)
    start = ["blendctl", "train-lookahead", world, "--controllers", *names, "--out", str(out)]
    command = typed_command()
    if resume:  # the first command may have been typed elsewhere; it follows from the options of the run
        command = f"{shlex.join([*start, *option_words(saved, LookAheadConfig())])}\n{command}"
    with (
        DelayedInterrupt() as interrupt,
        DirectoryLock(out),
        progress_bar() as bar,
        closing(make_worlds(world, count=config.worlds, threads=config.threads)) as worlds,
    ):
        task = bar.add_task("simulating", total=1.0)

        def on_progress(progress: LookAheadProgress) -> None:
            line = "learning paths" if progress.steps == 0 else "collecting"
            if not math.isnan(progress.episode_return):  # an episode has ended
                line = f"return {progress.episode_return:6.2f}  cost {progress.episode_cost:6.1f}"
            bar.update(task, completed=progress.share, description=line)

        try:
            network = train(
                drivers,
                worlds,
                encoding=encodings.context,
                declaration=encodings.declaration,
                config=config,
                out=out,
                resume=resume,
                card={"world": world, "command": command},
                on_progress=on_progress,
                should_stop=lambda: interrupt.requested,
            )
        except KeyboardInterrupt:
            console.print(f"stopped and saved; continue with:\n  {shlex.join([*start, '--resume'])}", soft_wrap=True)
            raise
    if config.dial_episodes:
        network = _measured(network, drivers, world=world, config=config)
    path = out / LOOKAHEAD_FILE
    write_lookahead(network, path)
    write_card(network.card, path)
    _print(network, console)
    console.print(f"wrote {path} and its card", soft_wrap=True)
    if add:
        console.print(f"added {add_to_zoo(out, replace=replace)}", soft_wrap=True)
    write_json(json_file, network.card)


def _measured(
    network: LookAheadNetwork, drivers: list[Any], *, world: str, config: LookAheadConfig
) -> LookAheadNetwork:
    """Return the networks with the measured dial and the limit of R² in their card."""
    from blendctl.training.lookahead_evaluation import measure_dial
    from blendctl.training.lookahead_limit import measure_limit

    with progress_bar() as bar:
        task = bar.add_task("measuring the dial", total=1.0)
        rows = measure_dial(
            network,
            drivers,
            world=world,
            weights=[float(weight) for weight in np.geomspace(*network.weight_range, config.dial_points)],
            episodes=config.dial_episodes,
            budget=config.budget,
            threads=config.threads,
            on_progress=lambda share: bar.update(task, completed=share),
        )
        again = bar.add_task("labelling states twice", total=1.0)
        limit = measure_limit(
            network,
            drivers,
            world=world,
            config=config,
            on_progress=lambda share: bar.update(again, completed=share),
        )
    return dataclasses.replace(network, card=network.card | rows | {"limit": limit})


def _print(network: LookAheadNetwork, console: Any) -> None:
    """Print the accuracy and the dial."""
    card = network.card
    if card.get("r2_difference"):
        level, difference = (" and ".join(f"{r2:.3f}" for r2 in card[f"r2_{name}"]) for name in ("level", "difference"))
        console.print(f"R² of return and cost: levels {level}, differences between controllers {difference}")
    if card.get("limit"):
        pairs = zip(card["limit"]["r2_difference"], card["limit"]["limit_difference"], strict=True)
        reached = " and ".join(f"{r2:.3f} of {most:.3f}" for r2, most in pairs)
        console.print(f"differences on validation states: {reached} that the state allows")
    table = make_table("driver", "return", "cost", "over budget", caption="on validation seeds")
    for row in [*card.get("alone", ()), *card.get("dial", ())]:
        name = row.get("name") or f"switch, cost weight {row['weight']:.3g}"
        table.add_row(name, f"{row['return_mean']:.2f}", f"{row['cost_mean']:.1f}", f"{100 * row['over_budget']:.0f}%")
    if table.row_count:
        console.print(table)
