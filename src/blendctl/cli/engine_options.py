"""The options of every command that runs units: where they run, and on how many workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["engine_options"]


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --engine, --workers and --address."""
    for option in (
        click.option("--address", help="Of a Ray cluster.  [Ray is started here, on loopback]"),
        click.option("--workers", type=click.IntRange(1), help="Workers of the engine.  [every core]"),
        click.option("--engine", default="processes", show_default=True, help="processes, ray or inline."),
    ):
        command = option(command)
    return command
