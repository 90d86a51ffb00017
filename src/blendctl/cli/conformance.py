"""`blendctl conformance`: our worlds against recordings of the reference."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.envs.conformance import Report


@click.command(epilog="Example: blendctl conformance recordings --json out/conformance.json")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option(
    "--json", "target", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    help="Write every figure there.",
)  # fmt: skip
def conformance(folder: Path, target: Path | None) -> None:
    """Check our worlds against the recordings in DIR, step by step.

    Logic: from the recorded state after a step, lidar, reward, costs, goal and timer must follow exactly. Strict and
    loose: from the state before it, one step of our physics is compared; loose are the steps whose
    contacts newer versions of MuJoCo compute differently. The exit code is 1 if a world exceeds its limits.
    """
    from rich.console import Console
    from rich.progress import Progress

    from blendctl.envs import world_id
    from blendctl.envs.conformance import compare
    from blendctl.envs.recordings import find_recordings, load_recording

    paths = find_recordings(folder)
    messages = Console(stderr=True)
    reports = []
    with Progress(console=messages, transient=True, disable=not messages.is_terminal) as progress:
        task = progress.add_task("compiling", total=len(paths))
        for path in paths:
            progress.update(task, description=path.stem)
            reports.append(compare(load_recording(path)))
            progress.advance(task)
    Console().print(_table(reports))
    if target is not None:
        target.parent.mkdir(parents=True, exist_ok=True)
        worlds = {world_id(report.name): report.as_json() for report in reports}
        target.write_text(json.dumps({"worlds": worlds}, indent=2) + "\n", encoding="utf-8")
        messages.print(f"written: {target}")
    failures = [f"{report.name}: {failure}" for report in reports for failure in report.failures()]
    for failure in failures:
        messages.print(failure)
    if failures:
        sys.exit(1)


def _table(reports: list[Report]) -> Table:
    from rich.table import Table

    logic, strict, loose = (
        sum(getattr(r, part).steps for r in reports) for part in ("logic", "strict", "loose")
    )
    table = Table(
        title="largest differences from the reference, one step at a time",
        caption=f"{logic:,} steps of logic (lidar, reward), {strict:,} strict and {loose:,} loose steps (p99 of qpos)",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for column in ("world", "layouts", "lidar", "reward", "qpos", "qvel", "obs", "loose", "flags", ""):
        table.add_column(column, justify="left" if column == "world" else "right", no_wrap=True)
    for r in reports:
        table.add_row(
            r.name,
            f"{r.layouts - r.layout_mismatch}/{r.layouts}",
            _short(r.logic.lidar_max),
            _short(r.logic.reward_max),
            _short(r.strict.qpos_max),
            _short(r.strict.qvel_max),
            _short(r.strict.obs_max),
            _short(r.loose.qpos_p99),
            f"{r.loose.cost_mismatch + r.loose.goal_mismatch}",
            "[red]differs[/red]" if r.failures() else "[green]ok[/green]",
        )
    return table


def _short(difference: float) -> str:
    return f"{difference:.0e}" if difference else "0"
