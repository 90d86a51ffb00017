"""What the terminal shows while a blend drives: progress, who drives, and a sparkline of the costs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

__all__ = ["Show", "watch", "sparkline"]

BLOCK = 25  # steps per bar of the sparkline
BARS = 24
COLORS = ("dark_orange3", "dodger_blue2", "medium_purple2", "green4")
_HEIGHTS = " ▁▂▃▄▅▆▇█"


class Show(Protocol):
    """Called with every record and the sums so far."""

    def __call__(self, tally: Any, record: Any) -> None: ...


def sparkline(values: list[float], *, highest: float) -> str:
    """Draw numbers from 0 to `highest` as a row of bars; what is more than 0 never looks like 0.

    >>> sparkline([0, 1, 12, 25], highest=25)
    ' ▁▄█'
    """
    tallest = len(_HEIGHTS) - 1
    bars = [min(max(round(tallest * value / highest), int(value > 0)), tallest) for value in values]
    return "".join(_HEIGHTS[bar] for bar in bars)


@contextmanager
def watch(title: str, *, names: list[str], total: int, hint: str = "") -> Iterator[Show]:
    """Show a drive ten times a second, on stderr if that is a terminal; nothing of it stays."""
    from rich.console import Console, Group, RenderableType
    from rich.live import Live
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda tally, record: None
        return
    columns = (
        TextColumn("[bold]{task.description:<15.15}"),
        BarColumn(24),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    progress = Progress(*columns, console=console)
    task = progress.add_task(title, total=total)
    blocks: deque[float] = deque([0.0], maxlen=BARS)
    begun, shown = 0, 0.0

    with Live(progress, console=console, transient=True, auto_refresh=False) as live:

        def show(tally: Any, record: Any) -> None:
            nonlocal begun, shown
            if tally.steps // BLOCK > begun:
                begun = tally.steps // BLOCK
                blocks.append(0.0)
            blocks[-1] += record.cost
            now = time.perf_counter()
            if now - shown < 0.1:
                return
            shown = now
            progress.update(task, completed=tally.steps)
            who = Text("drives   ")
            for arm, name in enumerate(names):
                share = f" {100 * tally.driven[name] / max(tally.steps, 1):.0f}%   "
                color = COLORS[arm % len(COLORS)]
                who.append(("● " if arm == record.arm else "○ ") + name[:20], color if arm == record.arm else "dim")
                who.append(share, "dim")
            sums = f"episode {tally.ended + 1}   return {tally.returns[-1]:.1f}   cost {tally.costs[-1]:.0f}   costs "
            costs = Text(sums).append(sparkline(list(blocks), highest=BLOCK), "red3")
            lines: list[RenderableType] = [progress, who, costs, *([Text(hint, "dim")] if hint else [])]
            live.update(Group(*lines), refresh=True)

        yield show
