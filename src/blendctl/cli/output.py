"""Output of the commands: tables on stdout, JSON where `--json` asks for it, progress on stderr.

Text from files and peers is printed as plain text: no markup, and no control characters.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.user_errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

STDOUT = Path("-")
LINE_SECONDS = 60.0  # between lines of progress in a log


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


def styled(text: str, style: str) -> Text:
    """Return text with a style, for a cell or a line."""
    from rich.text import Text

    return Text(text, style)


def make_console(*, stderr: bool = True) -> Console:
    """Return a console that prints text as it is, without its control characters."""
    from rich import console, segment

    class PlainConsole(console.Console):
        def render(
            self, renderable: console.RenderableType, options: console.ConsoleOptions | None = None
        ) -> Iterable[segment.Segment]:
            for part in super().render(renderable, options):
                # They are dropped, because they have no width in a column.
                yield part if part.control else segment.Segment(printable(part.text, ""), part.style)

    return PlainConsole(stderr=stderr, highlight=False, markup=False)


def table_console(json_file: Path | None) -> Console:
    """Return the console for tables: stdout, or stderr if the JSON goes to stdout."""
    return make_console(stderr=json_file == STDOUT)


def echo(text: object, *, err: bool = False) -> None:
    """Print a line without its control characters."""
    click.echo(printable(str(text)), err=err)


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
    """Make a progress bar on stderr, erased at the end; without a terminal it prints a line a minute.

    With `counted` it shows "3/10" instead of a percentage.
    """
    from rich import progress

    console = make_console()

    class LoggedProgress(progress.Progress):
        logged = time.monotonic()

        def update(self, task_id: progress.TaskID, **changes: Any) -> None:
            super().update(task_id, **changes)
            if console.is_terminal or quiet or time.monotonic() < self.logged + LINE_SECONDS:
                return
            self.logged = time.monotonic()
            task = next(task for task in self.tasks if task.id == task_id)
            console.print(f"{task.description}  {task.percentage:.0f}% after {(task.elapsed or 0.0) / 60:.0f} min")

    return LoggedProgress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(bar_width=20),
        progress.MofNCompleteColumn() if counted else progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
