"""The environments that commands take: a world, a Gymnasium id, or a function in Python; with arguments and cost."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from blendctl.cli.completers import worlds
from blendctl.cli.shared_options import number_option

F = TypeVar("F", bound=Callable[..., Any])

FORMS = "a world such as PointGoal1, a Gymnasium id such as HalfCheetah-v5, MODULE:ID, or FILE.py:FUNCTION"


def environment_options(function: F) -> F:
    """Add `--env-arg`, `--cost` and `--episode-steps`; the command receives `environment`, made of them and `world`."""

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

        environment = None
        if world is not None:
            environment = EnvironmentSpec(world, parse_arguments(env_arg), cost=cost, episode_steps=episode_steps)
        return function(*args, environment=environment, **options)

    made: Any = number_option("--episode-steps", "Limit of an episode in control steps.  [the environment's]")(command)
    made = click.option(
        "--cost", metavar="KEY|FILE.py:FUNCTION",
        help="Cost of a step: an entry of info, or a function of (observation, action, info).  [info[\"cost\"]]",
    )(made)  # fmt: skip
    return click.option(  # type: ignore[no-any-return]  # click's decorators are untyped for a TypeVar
        "--env-arg", "env_arg", multiple=True, metavar="NAME=VALUE", help="Argument of the environment; repeatable."
    )(made)


def environment_argument(function: F) -> F:
    """Add the argument ENV and its options."""
    return click.argument("world", metavar="ENV", shell_complete=worlds)(environment_options(function))
