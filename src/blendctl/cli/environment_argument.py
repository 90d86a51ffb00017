"""The environments that commands take: a world, a Gymnasium id, or a function in Python; with arguments and cost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from blendctl.cli.completers import worlds
from blendctl.cli.shared_options import number_option
from blendctl.cli.world_argument import WORLD_FLAGS
from blendctl.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

EITHER = ("--episode-steps", "--steps")  # for commands in which `--steps` has no other meaning


def environment_options(
    function: F, *, flags: tuple[str, ...] = ("--episode-steps",), steps: int | None = None, apart: bool = False
) -> F:
    """Add `--env-arg`, `--cost` and `--episode-steps`; the command receives `environment`, made of them and `world`.

    flags: names of the limit of an episode, whose default is `steps`. apart: the command receives `world` and `choices`
    instead, the other arguments of `EnvironmentSpec`, because it may find the environment in a file.
    """

    @functools.wraps(function)
    def command(
        *args: Any,
        world: str | None,
        env_arg: tuple[str, ...],
        cost: str | None,
        episode_steps: int | None,
        **options: Any,
    ) -> Any:
        from blendctl.envs.environment import EnvironmentSpec, parse_arguments

        choices: dict[str, Any] = {"arguments": parse_arguments(env_arg), "cost": cost, "episode_steps": episode_steps}
        if apart:
            return function(*args, world=world, choices=choices, **options)
        if world is None and any(choices.values()):
            raise InputError("--env-arg, --cost and --episode-steps belong to an environment that you name")
        environment = None if world is None else EnvironmentSpec(world, **choices)
        return function(*args, environment=environment, **options)

    default = "" if steps else "  [the environment's]"
    made: Any = number_option(flags, f"Limit of an episode in control steps.{default}", default=steps)(command)
    made = click.option(
        "--cost", metavar="KEY|FILE.py:FUNCTION",
        help="Cost of a step: an entry of info, or a function of (observation, action, info).  [info[\"cost\"]]",
    )(made)  # fmt: skip
    return click.option(  # type: ignore[no-any-return]  # click's decorators are untyped for a TypeVar
        "--env-arg", "env_arg", multiple=True, metavar="NAME=VALUE", help="Argument of the environment; repeatable."
    )(made)


def environment_option(function: F, *, default: str, **options: Any) -> F:
    """Add `--world` or `--env`, and the environment's options, see `environment_options`; None without it."""
    return click.option(
        *WORLD_FLAGS, metavar="ENV", shell_complete=worlds,
        help=f"Environment: a world, a Gymnasium id, MODULE:ID or FILE.py:FUNCTION.  {default}",
    )(environment_options(function, **options))  # fmt: skip


def environment_argument(function: F, **options: Any) -> F:
    """Add the argument ENV and its options, see `environment_options`."""
    return click.argument("world", metavar="ENV", shell_complete=worlds)(environment_options(function, **options))
