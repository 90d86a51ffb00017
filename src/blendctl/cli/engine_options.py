"""The options of every command that runs units: where they run, and on how many workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from blendctl.experiments.store import Store

__all__ = ["engine_options", "tell_changes", "tell_damaged"]


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --engine, --workers and --address."""
    for option in (
        click.option("--address", help="Of a Ray cluster.  [Ray is started here, on loopback]"),
        click.option("--workers", type=click.IntRange(1), help="Workers of the engine.  [every core]"),
        click.option("--engine", default="processes", show_default=True, help="processes, ray or inline."),
    ):
        command = option(command)
    return command


def tell_changes(store: Store) -> None:
    """Say if what is finished in a directory was made with other versions."""
    if store.version_changes:
        click.echo(
            f"versions are not those of an earlier session ({store.version_changes}): what is finished is kept as it "
            "is; for a run of one piece choose a new directory",
            err=True,
        )


def tell_damaged(store: Store) -> None:
    """Name the files that were damaged."""
    for name in store.damaged:
        click.echo(f"units/{name} was damaged and has been run again", err=True)
