"""Output of the commands: tables on stdout, JSON where `--json` asks for it, progress on stderr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

STDOUT = Path("-")


def make_table(*columns: str, left: int = 1, title: str | None = None, caption: str | None = None) -> Table:
    """Make a table whose first `left` columns are text and whose other columns are numbers.

    In a narrow terminal the widest columns wrap; nothing is cut.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < left else "right", overflow="fold")
    return table


def optional(value: float | None, spec: str) -> str:
    """Format a number, or return an empty cell for None.

    >>> optional(0.5, "+.2f"), optional(None, "+.2f")
    ('+0.50', '')
    """
    return "" if value is None else format(value, spec)


def mean_cells(row: dict[str, Any]) -> list[str]:
    """Format mean and half the width of the 95% interval, of return and cost."""
    cells = []
    for quantity, spec in (("return", ".2f"), ("cost", ".1f")):
        low, high = row[f"{quantity}_ci95"] or (None, None)
        cells += [format(row[f"{quantity}_mean"], spec), optional(None if low is None else (high - low) / 2, spec)]
    return cells


def table_console(json_file: Path | None) -> Console:
    """Return the console for tables: stdout, or stderr if the JSON goes to stdout."""
    from rich.console import Console

    return Console(stderr=json_file == STDOUT, highlight=False)


def write_json(json_file: Path | None, data: Any) -> None:
    """Write data to the file that `--json` names, atomically; do nothing without `--json`."""
    if json_file is None:
        return
    if json_file == STDOUT:
        click.echo(json_bytes(data), nl=False)
        return
    from blendctl.atomic import write_atomically

    write_atomically(json_file, json_bytes(data))


def json_bytes(data: Any) -> bytes:
    """Encode data as indented JSON."""
    return (json.dumps(data, indent=2) + "\n").encode()


def progress_bar(*, counted: bool = False, quiet: bool = False) -> Progress:
    """Make a progress bar on stderr, shown only on a terminal and erased at the end.

    With `counted` it shows "3/10" instead of a percentage.
    """
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=20),
        progress.MofNCompleteColumn() if counted else progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
