"""Options that several commands share, each declared once."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from blendctl.cli import completers

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

deterministic_option = click.option("--deterministic", is_flag=True, help="Use mean actions instead of samples.")


def _trust_code(context: click.Context, _: click.Parameter, trusted: bool) -> None:
    """Trust code while the command runs, in its worker processes too."""
    from blendctl.controllers.resolve import TRUST_VARIABLE

    if trusted:
        before = os.environ.get(TRUST_VARIABLE, "")
        os.environ[TRUST_VARIABLE] = "1"
        context.call_on_close(lambda: os.environ.update({TRUST_VARIABLE: before}))


trust_code_option = click.option(
    "--trust-code", is_flag=True, expose_value=False, callback=_trust_code,
    help="Run controllers that are programs: TorchScript files (.pt).",
)  # fmt: skip


def controllers_option(help_text: str, *, metavar: str = "PERFORMANT SAFE") -> Decorator:
    """Add `--controllers`, which takes several values."""
    return click.option(
        "--controllers", multiple=True, metavar=metavar, shell_complete=completers.controllers, help=help_text
    )


def number_option(flag: str | tuple[str, ...], help_text: str, *, default: int | None = None) -> Decorator:
    """Add an option that takes an integer of at least 1; with several flags, the first one names the argument."""
    names = (flag,) if isinstance(flag, str) else (*flag, flag[0].strip("-").replace("-", "_"))
    return click.option(*names, type=click.IntRange(1), default=default, help=help_text)


def seed_option(default: int = 0, *, per_episode: bool = False) -> Decorator:
    """Add `--seed`."""
    help_text = "Random seed; episode i uses seed + i." if per_episode else "Random seed."
    return click.option("--seed", type=click.IntRange(0), default=default, help=help_text)


def context_option(default: str | None) -> Decorator:
    """Add `--context`."""
    return click.option(
        "--context",
        type=click.Choice(["current", "previous"]),
        default=default,
        help="State whose context the decision uses; the paper's Algorithm 1 uses the previous one."
        + ("" if default else "  [current]"),
    )


def out_option(help_text: str, *, default: str | None = None) -> Decorator:
    """Add `--out DIRECTORY`."""
    kind = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=kind, default=None if default is None else Path(default), help=help_text)


def open_option(page: str) -> Decorator:
    """Add `--open`, which shows a page in the browser."""
    return click.option("--open", "open_page", is_flag=True, help=f"Open {page} in the browser.")


def json_option(content: str) -> Decorator:
    """Add `--json [FILE]`; without FILE, or with `-`, the JSON goes to stdout."""
    return click.option(
        "--json",
        "json_file",
        type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
        metavar="[FILE]",
        is_flag=False,
        flag_value=Path("-"),
        help=f"Write {content} as JSON to FILE, or to stdout.",
    )


def engine_options(function: Command) -> Command:
    """Add `--engine`, `--workers` and `--address`; the command receives them as `engine`, arguments of `run_units`."""

    @functools.wraps(function)
    def command(*args: Any, engine: str, workers: int | None, address: str | None, **options: Any) -> Any:
        from blendctl.experiments.engines import make_engine

        make_engine(engine, workers=workers, address=address)  # raise for a wrong engine before anything is written
        return function(*args, engine={"engine": engine, "workers": workers, "address": address}, **options)

    made: Command = command
    for option in (
        click.option("--address", help="Ray cluster address.  [a new Ray on this machine, loopback only]"),
        number_option("--workers", "Number of workers.  [one per core]"),
        click.option("--engine", default="processes", help="Where units run: processes, ray or inline."),
    ):
        made = option(made)
    return made
