"""`blendctl check-env`: check an environment before using it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli import shared_options as shared
from blendctl.cli.environment_argument import environment_argument
from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import make_console, make_table, styled, table_console, write_json

if TYPE_CHECKING:
    from rich.text import Text

    from blendctl.envs.environment import EnvironmentSpec
    from blendctl.envs.environment_check import EnvironmentCheck

YES, NO = ("yes", "green"), ("no", "yellow")


@click.command(
    "check-env", cls=MultiValueCommand,
    epilog="Example: blendctl check-env HalfCheetah-v5 --cost x_velocity --env-arg frame_skip=5",
)  # fmt: skip
@environment_argument
@shared.seed_option()
@shared.json_option("the results")
def check_env(environment: EnvironmentSpec, seed: int, json_file: Path | None) -> None:
    """Check ENV and list what blendctl can do with it: cost, exact copies, determinism, lock-step, pictures.

    ENV is a world such as PointGoal1, a Gymnasium id such as HalfCheetah-v5, MODULE:ID, or FILE.py:FUNCTION, a function
    that makes an environment. The exit code is 1 if a blend cannot drive it.
    """
    from blendctl.envs.environment_check import check_environment

    with make_console().status("checking"):
        found = check_environment(environment, seed=seed)
    console = table_console(json_file)
    table = make_table("", "", "", left=3, title=found.name)
    for row in _rows(found):
        table.add_row(*row)
    console.print(table)
    for problem in (*found.problems, *found.notes):
        console.print(f"- {problem}", soft_wrap=True)
    console.print("usable: a blend can drive it" if found.usable else "not usable")
    write_json(json_file, asdict(found))
    if not found.usable:
        raise SystemExit(1)


def _rows(found: EnvironmentCheck) -> list[tuple[str, Text, str]]:
    def row(name: str, good: bool, words: Any) -> tuple[str, Text, str]:
        return name, styled(*(YES if good else NO)), str(words)

    limit = "no limit known" if found.episode_steps is None else f"{found.episode_steps} steps"
    copies = f"for {found.copy_microseconds:.0f} µs each" if found.copy_exact else "no simulated look-ahead"
    if found.copy_parts_at is not None:
        copies += f"; a copy differs from step {found.copy_parts_at} on"
    steps = "" if found.step_microseconds is None else f"a step takes {found.step_microseconds:.0f} µs"
    size = "" if found.render_size is None else f"{found.render_size[1]} x {found.render_size[0]} pixels"
    return [
        row("spaces", found.spaces_supported, f"{found.observation_space}; {found.action_space}"),
        row("episodes", found.episode_steps is not None, limit),
        row("cost", found.cost_found, found.cost_key or ", ".join(found.cost_candidates) or "none found"),
        row("deterministic", found.deterministic, "with a seed"),
        row("exact copies", found.copy_exact, copies),
        row("several at once", found.vector, steps),
        row("pictures", found.render, size),
    ]
