"""Reconstruct the command line that is running."""

from __future__ import annotations

import shlex

import click
from click.core import ParameterSource


def typed_command() -> str:
    """Return the running command with the arguments and options that the user typed, in declaration order.

    >>> @click.command("fly")
    ... @click.argument("target")
    ... @click.option("--high/--low", default=True)
    ... @click.option("--speed", type=float, default=1.0)
    ... def fly(target, high, speed):
    ...     print(typed_command())
    >>> fly.main(["to the moon", "--low"], prog_name="fly", standalone_mode=False)
    fly 'to the moon' --low
    """
    ctx = click.get_current_context()
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
        words += [str(part) for part in value] if isinstance(value, tuple | list) else [str(value)]
    return shlex.join(words)
