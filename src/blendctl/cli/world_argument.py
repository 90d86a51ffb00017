"""The worlds that commands take: a known name, or a user's task as FILE.py:TASK or MODULE:TASK."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from blendctl.cli.completers import worlds

F = TypeVar("F", bound=Callable[..., Any])

WORLD_FLAGS = ("--world", "--env", "world")  # of every option that names one world or environment


def _open(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Check each world, import the user's own, and return their names for `find_task`."""
    from blendctl.envs.catalog import open_task

    if not value or ctx.resilient_parsing:
        return value
    return tuple(map(open_task, value)) if isinstance(value, tuple) else open_task(value)


def world_argument(function: F) -> F:
    """Add the argument WORLD."""
    return click.argument("world", shell_complete=worlds, callback=_open)(function)


def world_option(*names: str, **options: Any) -> Callable[[F], F]:
    """Add an option that takes a world, or several with `multiple=True`; `--world` or `--env` without `names`."""
    return click.option(*(names or WORLD_FLAGS), shell_complete=worlds, callback=_open, **options)
