"""`blendctl conformance`: check the worlds against recordings of the reference."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from blendctl.cli.output import echo, make_table, progress_bar, styled, table_console, write_json
from blendctl.cli.shared_options import json_option

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.envs.conformance import Report


@click.command(epilog="Example: blendctl conformance recordings --json out/conformance.json")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@json_option("all differences")
def conformance(folder: Path, json_file: Path | None) -> None:
    """Check the worlds against the recordings in DIR, step by step.

    Logic: lidar, reward, costs, goal and timer computed from the recorded state after a step must be equal. Strict and
    loose: one physics step from the recorded state before it is compared; loose steps have contacts that newer
    versions of MuJoCo compute differently. The exit code is 1 if a world exceeds its limits.
    """
    from blendctl.envs import world_id
    from blendctl.envs.conformance import compare_recording
    from blendctl.envs.recordings import find_recordings, load_recording

    paths = find_recordings(folder)
    reports = []
    with progress_bar() as progress:
        task = progress.add_task("compiling", total=len(paths))
        for path in paths:
            progress.update(task, description=path.stem)
            reports.append(compare_recording(load_recording(path)))
            progress.update(task, advance=1)
    table_console(json_file).print(_table(reports))
    write_json(json_file, {"worlds": {world_id(report.name): report.as_json() for report in reports}})
    failures = [f"{report.name}: {failure}" for report in reports for failure in report.failures()]
    for failure in failures:
        echo(failure, err=True)
    if failures:
        sys.exit(1)


def _table(reports: list[Report]) -> Table:
    logic, strict, loose = (sum(getattr(r, part).steps for r in reports) for part in ("logic", "strict", "loose"))
    table = make_table(
        "world", "layouts", "lidar", "reward", "qpos", "qvel", "obs", "loose", "flags", "",
        title="largest differences from the reference, one step at a time",
        caption=f"{logic:,} steps of logic (lidar, reward), {strict:,} strict and {loose:,} loose steps (p99 of qpos)",
    )  # fmt: skip
    for r in reports:
        strictly = (r.strict.qpos_max, r.strict.qvel_max, r.strict.obs_max)
        differences = (r.logic.lidar_max, r.logic.reward_max, *strictly, r.loose.qpos_p99)
        table.add_row(
            r.name,
            f"{r.layouts - r.layout_mismatch}/{r.layouts}",
            *(f"{difference:.0e}" if difference else "0" for difference in differences),
            f"{r.loose.cost_mismatch + r.loose.goal_mismatch}",
            styled("differs", "red") if r.failures() else styled("ok", "green"),
        )
    return table
