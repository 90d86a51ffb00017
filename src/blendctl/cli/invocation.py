"""Write down the command that is running, so that it can be given again."""

from __future__ import annotations

import shlex
from typing import Any

import click
from click.core import ParameterSource

__all__ = ["command_as_typed"]


def command_as_typed(ctx: click.Context) -> str:
    """Give the command with every argument and option that was given, in the order in which they are declared.

    >>> @click.command("fly")
    ... @click.argument("where")
    ... @click.option("--high/--low", default=True)
    ... @click.option("--speed", type=float, default=1.0)
    ... @click.pass_context
    ... def fly(ctx, where, high, speed):
    ...     print(command_as_typed(ctx))
    >>> fly.main(["to the moon", "--low"], prog_name="fly", standalone_mode=False)
    fly 'to the moon' --low
    """
    words = ctx.command_path.split()
    for param in ctx.command.params:
        name = param.name or ""
        if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params[name]
        if isinstance(param, click.Option):
            if param.is_flag:
                words.append(param.opts[0] if value or not param.secondary_opts else param.secondary_opts[0])
                continue
            words.append(max(param.opts, key=len))
        words += _words(value)
    return shlex.join(words)


def _words(value: Any) -> list[str]:
    return [str(part) for part in value] if isinstance(value, tuple | list) else [str(value)]
