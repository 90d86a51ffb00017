"""`blendctl train`: train a controller, with progress, checkpoints and a card at the end."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import completers
from blendctl.cli.output import echo, make_console, progress_bar, table_console
from blendctl.cli.world_argument import world_argument
from blendctl.controllers import load, write_controller
from blendctl.controllers.card import make_card
from blendctl.controllers.zoo import write_card
from blendctl.envs.catalog import world_label
from blendctl.errors import InputError, StateError
from blendctl.evaluation import evaluate
from blendctl.file_reading import read_json_object
from blendctl.training.config import TRUST_REGION, TrainConfig, option_help

if TYPE_CHECKING:
    from rich.console import Console

    from blendctl.training import TrainingRun, UpdateRecord

POSITIONAL = ("world", "algo")
Command = Callable[..., None]


def hyper_parameters(config: type[Any], *, notes: dict[str, Any] | None = None) -> Callable[[Command], Command]:
    """Add one option per hyper-parameter of a configuration class, with the help text of its field.

    notes: defaults of trust regions by name, for the help text.
    """

    def add(command: Command) -> Command:
        for entry in reversed(fields(config)):
            if entry.name in POSITIONAL:
                continue
            flag = entry.name.replace("_", "-")
            other = f"; trust regions {notes[entry.name]}" if notes and entry.name in notes else ""
            help_text = f"{_help(entry.name, config)}  [{_shown(entry.default)}{other}]"
            if isinstance(entry.default, bool):
                command = click.option(f"--{flag}/--no-{flag}", entry.name, default=None, help=help_text)(command)
            else:
                kind = "TEXT" if isinstance(entry.default, str | tuple) else "NUMBER"
                command = click.option(f"--{flag}", entry.name, default=None, metavar=kind, help=help_text)(command)
        return command

    return add


def chosen_options(values: dict[str, Any]) -> dict[str, Any]:
    """Return the hyper-parameters that the user typed."""
    return {name: value for name, value in values.items() if value is not None}


def _help(name: str, config: type[Any] = TrainConfig) -> str:
    """Return a hyper-parameter's help as a sentence."""
    text = option_help(name, config)
    return f"{text[0].upper()}{text[1:]}."


def _shown(default: Any) -> str:
    return ",".join(map(str, default)) if isinstance(default, tuple) else f"{default}"


@click.command(epilog="Example: blendctl train PointGoal1 --algo ppo-lagrangian --steps 3e6 --seed 0")
@world_argument
@click.option("--algo", default=None, shell_complete=completers.algorithms, help=_help("algo") + "  [ppo]")
@click.option("--out", type=click.Path(path_type=Path), help="Run directory.  [runs/WORLD-ALGO-sSEED]")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="JSON file of options.")
@click.option("--resume", is_flag=True, help="Continue the run in its directory, bit for bit.")
@click.option(
    "--start-from", metavar="NAME|PATH", shell_complete=completers.zoo_controllers,
    help="Start with the weights of this controller.",
)  # fmt: skip
@click.option("--every", default=45.0, help="Maximum seconds between checkpoints.")
@click.option("--quiet", is_flag=True, help="Print a line per ten updates, as when stderr is not a terminal.")
@hyper_parameters(TrainConfig, notes=TRUST_REGION)
def train(
    world: str,
    algo: str | None,
    out: Path | None,
    config_file: Path | None,
    resume: bool,
    start_from: str | None,
    every: float,
    quiet: bool,
    **hyper_parameter_values: Any,
) -> None:
    """Train a controller in WORLD.

    Writes to the run directory: config.json, progress.jsonl, tensorboard/, checkpoint.safetensors,
    controller.safetensors and, at the end, the controller's card as .json and .md.
    """
    from blendctl.training import TrainingRun

    options = read_json_object(config_file) if config_file else {}
    chosen = chosen_options(hyper_parameter_values)
    options |= {"world": world} | chosen
    if algo is not None:
        options["algo"] = algo
    config = TrainConfig.from_dict(options)
    directory = out or Path("runs") / f"{world_label(config.world)}-{config.algo}-s{config.seed}"
    if not 0 < every <= 60:
        raise InputError(f"--every is {every}; allowed: above 0, at most 60 seconds")
    console = table_console(None)
    if resume:
        only_steps = set(chosen) <= {"steps", "seed"} and config_file is None
        run = TrainingRun(directory, None if only_steps else config, resume=True, every=every)
        if config.steps > run.config.steps and "steps" in chosen:
            run.extend(config.steps)
    else:
        run = TrainingRun(directory, config, every=every, start_from=load(start_from) if start_from else None)
    with run:
        console.print(f"training {run.config.algo} on {run.config.world} in {directory}")
        try:
            finished = _train(run, console, quiet=quiet)
        except StateError as error:
            raise StateError(f"{error}. The last good checkpoint is {run.checkpoint_path}") from error
        if not finished:
            resume_command = (
                f"blendctl train {world} --algo {run.config.algo} --out {shlex.quote(str(directory))} --resume"
            )
            console.print(f"stopped and saved at step {run.trainer.steps:,}; continue with:")
            console.print(f"  {resume_command}", soft_wrap=True)
            raise KeyboardInterrupt
        _finish(run, console, start_from=start_from)


def _train(run: TrainingRun, console: Console, *, quiet: bool) -> bool:
    """Train with a progress bar; return False if Ctrl-C stopped the run (the state is saved)."""
    lines = quiet or not make_console().is_terminal  # a line per ten updates instead of a bar
    with DelayedInterrupt() as interrupt, progress_bar(quiet=lines) as progress:
        task = progress.add_task("simulating", total=run.config.steps, completed=run.trainer.steps)
        for record in run.records():
            line = _line(record, run.config)
            progress.update(task, completed=min(record.steps, run.config.steps), description=line)
            if lines and record.update % 10 == 0:
                console.print(f"{record.steps:>10,} steps  {line}")
            if interrupt.requested:
                run.checkpoint()
                return run.trainer.steps >= run.config.steps
    return True


class DelayedInterrupt:
    """Delay the first Ctrl-C to the end of an update, when the state can be saved."""

    def __init__(self) -> None:
        self.requested = False

    def __enter__(self) -> DelayedInterrupt:
        self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._previous)

    def _on_signal(self, number: int, frame: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        echo("\nCtrl-C: saving after this update; press again to stop immediately", err=True)


def _line(record: UpdateRecord, config: TrainConfig) -> str:
    seconds = record.simulate_seconds + record.learn_seconds
    return (
        f"return {record.episode_return:6.2f}  cost {record.episode_cost:6.1f}  "
        f"{config.batch / max(seconds, 1e-9):6,.0f} steps/s"
    )


def _finish(run: TrainingRun, console: Console, *, start_from: str | None) -> None:
    """Evaluate the controller and write its card, into its file and beside it."""
    config = run.config
    controller = run.controller()
    summary = None
    if config.eval_episodes:
        console.print(f"evaluating {config.eval_episodes} episodes")
        evaluation = evaluate(controller, config.world, episodes=config.eval_episodes, threads=config.threads)
        summary = evaluation.summary()
        console.print(
            f"return {summary['return_mean']:.2f}, cost {summary['cost_mean']:.1f} over {summary['episodes']} episodes"
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
    console.print(f"wrote {run.controller_path} and its card")


def commands_of(run: TrainingRun, start_from: str | None) -> str:
    """Return the command that repeats a run and those that extended it, one per line."""
    first, *later = [*run.planned, run.config.steps]
    lines = [command_of(replace(run.config, steps=first), start_from)]
    start = f"blendctl train {run.config.world} --algo {run.config.algo} --seed {run.config.seed}"
    return "\n".join(lines + [f"{start} --resume --steps {steps}" for steps in later])


def command_of(config: TrainConfig, start_from: str | None) -> str:
    """Return the command that repeats a run, with every option that differs from its default."""
    defaults = TrainConfig.from_dict({"algo": config.algo})
    words = ["blendctl", "train", config.world, "--algo", config.algo, *option_words(config, defaults)]
    if start_from:
        words += ["--start-from", start_from]
    return shlex.join(words)


def option_words(config: Any, defaults: Any) -> list[str]:
    """Return the words of a command line for the options that differ from defaults, and for steps and seed."""
    words: list[str] = []
    for entry in fields(config):
        value = getattr(config, entry.name)
        written = value != getattr(defaults, entry.name) or entry.name in ("steps", "seed")
        if entry.name in POSITIONAL or not written:
            continue
        flag = entry.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", _shown(value)]
    return words
