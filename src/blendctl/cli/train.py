"""`blendctl train`: train a controller with live progress, checkpoints, and a card at the end."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from blendctl.cli.completers import algorithms, zoo_controllers
from blendctl.cli.output import progress_bar
from blendctl.cli.world_argument import world_argument
from blendctl.controllers import load, write_controller
from blendctl.controllers.card import make_card
from blendctl.controllers.zoo import write_card
from blendctl.envs.catalog import world_label
from blendctl.errors import InputError, StateError
from blendctl.evaluation import evaluate
from blendctl.training.config import TRUST_REGION, TrainConfig, option_help, read_options

if TYPE_CHECKING:
    from blendctl.training import TrainingRun, UpdateRecord

__all__ = ["train"]

POSITIONAL = ("world", "algo")


def hyper_parameters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option per hyper-parameter, with the help that stands at its field."""
    for entry in reversed(fields(TrainConfig)):
        if entry.name in POSITIONAL:
            continue
        flag = "--" + entry.name.replace("_", "-")
        other = f"; trust regions {TRUST_REGION[entry.name]}" if entry.name in TRUST_REGION else ""
        told = f"{option_help(entry.name)}  [{_shown(entry.default)}{other}]"
        if isinstance(entry.default, bool):
            flag = f"{flag}/--no-{entry.name.replace('_', '-')}"
            command = click.option(flag, entry.name, default=None, help=told)(command)
        else:
            kind = "TEXT" if isinstance(entry.default, str | tuple) else "NUMBER"
            command = click.option(flag, entry.name, default=None, metavar=kind, help=told)(command)
    return command


def _shown(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else f"{default}"


@click.command(epilog="Example: blendctl train PointGoal1 --algo ppo-lagrangian --steps 3e6 --seed 0")
@world_argument
@click.option("--algo", default=None, shell_complete=algorithms, help=option_help("algo") + "  [ppo]")
@click.option("--out", type=click.Path(path_type=Path), help="run directory  [runs/WORLD-ALGO-sSEED]")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="JSON file of options")
@click.option("--resume", is_flag=True, help="continue the run in its directory, bit for bit")
@click.option(
    "--start-from", metavar="NAME|PATH", shell_complete=zoo_controllers,
    help="start with the weights of this controller",
)  # fmt: skip
@click.option("--every", default=45.0, show_default=True, help="seconds between checkpoints, at most")
@click.option("--quiet", is_flag=True, help="a line per ten updates, as when stderr is no terminal")
@hyper_parameters
def train(
    world: str,
    algo: str | None,
    out: Path | None,
    config_file: Path | None,
    resume: bool,
    start_from: str | None,
    every: float,
    quiet: bool,
    **given: Any,
) -> None:
    """Train a controller in WORLD.

    Writes to its run directory: config.json, progress.jsonl, tensorboard/, checkpoint.safetensors,
    controller.safetensors and, at the end, its card as .json and .md.
    """
    from blendctl.training import TrainingRun

    options = read_options(config_file) if config_file else {}
    chosen = {name: _parsed(name, value) for name, value in given.items() if value is not None}
    options |= {"world": world} | chosen
    if algo is not None:
        options["algo"] = algo
    config = TrainConfig.from_dict(options)
    directory = out or Path("runs") / f"{world_label(config.world)}-{config.algo}-s{config.seed}"
    if not 0 < every <= 60:
        raise InputError(f"--every is {every}; allowed: above 0, at most 60 seconds")
    console = Console()
    if resume:
        only_steps = set(chosen) <= {"steps", "seed"} and config_file is None
        run = TrainingRun(directory, None if only_steps else config, resume=True, every=every)
        if config.steps > run.config.steps and "steps" in chosen:
            run.extend(config.steps)
    else:
        beginning = load(start_from) if start_from else None
        run = TrainingRun(directory, config, every=every, start_from=beginning)
    with run:
        console.print(f"training {run.config.algo} on {run.config.world} in {directory}", highlight=False)
        try:
            finished = _follow(run, console, quiet=quiet)
        except StateError as error:
            raise StateError(f"{error}. The last good checkpoint is {run.checkpoint_path}") from error
        if not finished:
            words = [
                "blendctl",
                "train",
                world,
                "--algo",
                run.config.algo,
                "--out",
                str(directory),
                "--resume",
            ]
            console.print(f"stopped and saved at step {run.trainer.steps:,}; continue with:", highlight=False)
            console.print(f"  {shlex.join(words)}", highlight=False, soft_wrap=True)
            raise KeyboardInterrupt
        _finish(run, console, start_from=start_from)


def _parsed(name: str, value: Any) -> Any:
    if name == "hidden":
        return [part for part in str(value).split(",") if part]
    return value


def _follow(run: TrainingRun, console: Console, *, quiet: bool) -> bool:
    """Train, showing how it goes; True at the end, False if Ctrl-C stopped it (the state is saved)."""
    columns = (
        TextColumn("{task.fields[line]}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with (
        _Interrupt() as interrupt,
        progress_bar(*columns, quiet=quiet) as progress,
    ):
        task = progress.add_task("train", total=run.config.steps, completed=run.trainer.steps, line="simulating")
        for record in run.records():
            line = _line(record, run.config)
            progress.update(task, completed=min(record.steps, run.config.steps), line=line)
            if progress.disable and record.update % 10 == 0:
                console.print(f"{record.steps:>10,} steps  {line}", highlight=False)
            if interrupt.asked:
                run.checkpoint()
                return run.trainer.steps >= run.config.steps
    return True


class _Interrupt:
    """Let the first Ctrl-C wait for the end of an update, where the state can be saved whole."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> _Interrupt:
        self.before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)

    def _heard(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        click.echo("\nCtrl-C: saving after this update; once more stops at once", err=True)


def _line(record: UpdateRecord, config: TrainConfig) -> str:
    seconds = record.simulate_seconds + record.learn_seconds
    return (
        f"return {record.episode_return:6.2f}  cost {record.episode_cost:6.1f}  "
        f"{config.batch / max(seconds, 1e-9):6,.0f} steps/s"
    )


def _finish(run: TrainingRun, console: Console, *, start_from: str | None) -> None:
    """Evaluate the controller and write its card, beside it and into it."""
    config = run.config
    controller = run.controller()
    summary = None
    if config.eval_episodes:
        console.print(f"evaluating {config.eval_episodes} episodes", highlight=False)
        found = evaluate(controller, config.world, episodes=config.eval_episodes, threads=config.threads)
        summary = found.summary()
        console.print(
            f"return {summary['return_mean']:.2f}, cost {summary['cost_mean']:.1f} over {summary['episodes']} episodes",
            highlight=False,
        )
    card = make_card(
        controller.name,
        config=json.loads(config.to_json()),
        command=commands_of(run, start_from),
        history=run.history,
        evaluation=summary,
    )
    write_controller(replace(controller, card=card), run.controller_path)
    write_card(card, run.controller_path)
    console.print(f"wrote {run.controller_path} and its card", highlight=False)


def commands_of(run: TrainingRun, start_from: str | None) -> str:
    """Give the command that makes a run again, and those that extended it, a line each."""
    first, *later = [*run.planned, run.config.steps]
    lines = [command_of(replace(run.config, steps=first), start_from)]
    begin = f"blendctl train {run.config.world} --algo {run.config.algo} --seed {run.config.seed}"
    return "\n".join(lines + [f"{begin} --resume --steps {steps}" for steps in later])


def command_of(config: TrainConfig, start_from: str | None) -> str:
    """Give the command that makes this run again: every option that differs from its default."""
    usual = TrainConfig.from_dict({"algo": config.algo})
    words = ["blendctl", "train", config.world, "--algo", config.algo]
    for entry in fields(TrainConfig):
        value = getattr(config, entry.name)
        wanted = value != getattr(usual, entry.name) or entry.name in ("steps", "seed")
        if entry.name in POSITIONAL or not wanted:
            continue
        flag = entry.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", _shown(value)]
    if start_from:
        words += ["--start-from", start_from]
    return shlex.join(words)
