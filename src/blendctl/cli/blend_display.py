"""Terminal display of a running blend: progress, the active controller, and a sparkline of the costs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blendctl.blender import Record
    from blendctl.blender.episode_stats import EpisodeStats

BLOCK = 25  # steps per bar of the sparkline
BARS = 24
COLORS = ("dark_orange3", "dodger_blue2", "medium_purple2", "green4")
HEIGHTS = " ▁▂▃▄▅▆▇█"


def sparkline(values: list[float], *, highest: float) -> str:
    """Draw numbers from 0 to `highest` as a row of bars; positive values never look like 0.

    >>> sparkline([0, 1, 12, 25], highest=25)
    ' ▁▄█'
    """
    tallest = len(HEIGHTS) - 1
    bars = [min(max(round(tallest * value / highest), int(value > 0)), tallest) for value in values]
    return "".join(HEIGHTS[bar] for bar in bars)


@contextmanager
def live_display(
    title: str, *, names: list[str], total: int, hint: str = ""
) -> Iterator[Callable[[EpisodeStats, Record], None]]:
    """Show a run ten times a second, on stderr if that is a terminal; erase it at the end.

    Yields a function to call with the statistics so far and each new record.
    """
    from rich.console import Group, RenderableType
    from rich.live import Live
    from rich.text import Text

    from blendctl.cli.output import make_console, progress_bar

    console = make_console()
    progress = progress_bar()
    task = progress.add_task(title, total=total)
    if not console.is_terminal:

        def log(stats: EpisodeStats, record: Record) -> None:
            progress.update(task, completed=stats.steps)

        yield log
        return
    blocks: deque[float] = deque([0.0], maxlen=BARS)
    full_blocks, last_refresh = 0, 0.0

    with Live(progress, console=console, transient=True, auto_refresh=False) as live:

        def show(stats: EpisodeStats, record: Record) -> None:
            nonlocal full_blocks, last_refresh
            if stats.steps // BLOCK > full_blocks:
                full_blocks = stats.steps // BLOCK
                blocks.append(0.0)
            blocks[-1] += record.cost
            now = time.perf_counter()
            if now - last_refresh < 0.1:
                return
            last_refresh = now
            progress.update(task, completed=stats.steps)
            drivers = Text("drives   ")
            for arm, name in enumerate(names):
                active = arm == record.arm
                drivers.append(("● " if active else "○ ") + name, COLORS[arm % len(COLORS)] if active else "dim")
                drivers.append(f" {100 * stats.driven[name] / max(stats.steps, 1):.0f}%   ", "dim")
            sums = f"episode {stats.ended + 1}   return {stats.returns[-1]:.1f}   cost {stats.costs[-1]:.0f}   costs "
            costs = Text(sums).append(sparkline(list(blocks), highest=BLOCK), "red3")
            lines: list[RenderableType] = [progress, drivers, costs, *([Text(hint, "dim")] if hint else [])]
            live.update(Group(*lines), refresh=True)

        yield show
