"""Where a command's words go: tables to stdout, JSON to the file a script names, progress to stderr on a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

__all__ = ["json_option", "table_console", "write_json", "progress_bar"]

F = TypeVar("F", bound=Callable[..., Any])
STDOUT = Path("-")


def json_option(what: str) -> Callable[[F], F]:
    """Give a command `--json FILE`, in which `-` is stdout."""
    kind = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
    return click.option("--json", "json_file", type=kind, metavar="FILE", help=f"Write {what} as JSON; - is stdout.")


def table_console(json_file: Path | None) -> Console:
    """Give the console for tables: stdout, or stderr while the JSON takes stdout."""
    from rich.console import Console

    return Console(stderr=json_file == STDOUT, highlight=False)


def write_json(json_file: Path | None, data: Any) -> None:
    """Write data where `--json` asked for it, whole or not at all; nowhere if it did not ask."""
    if json_file is None:
        return
    text = json.dumps(data, indent=2) + "\n"
    if json_file == STDOUT:
        click.echo(text, nl=False)
        return
    from blendctl.atomic import write_atomically

    write_atomically(json_file, text.encode())


def progress_bar(*columns: str | ProgressColumn, quiet: bool = False) -> Progress:
    """Make a bar that shows on a terminal only, on stderr, and leaves nothing behind."""
    from rich.console import Console
    from rich.progress import Progress

    messages = Console(stderr=True)
    return Progress(*columns, console=messages, transient=True, disable=quiet or not messages.is_terminal)
