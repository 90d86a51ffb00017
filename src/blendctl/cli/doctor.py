"""`blendctl doctor`: what is installed, what is missing, which command brings it, and whether it works."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli.output import json_option, progress_bar, table_console, write_json

if TYPE_CHECKING:
    from blendctl.cli.diagnostics import Diagnosis, Part

__all__ = ["doctor"]

SIGNS = {
    "works": "[green]works[/]",
    "missing": "[yellow]missing[/]",
    "skipped": "[dim]skipped[/]",
    "broken": "[red bold]broken[/]",
}


@click.command(epilog="Example: blendctl doctor --json out/doctor.json")
@click.option("--quick", is_flag=True, help="Leave the slow trials out: Ray, OpenGL, stable-baselines3.")
@json_option("everything found")
def doctor(quick: bool, json_file: Path | None) -> None:
    """Say what is installed, what is missing and which command brings it, and try whether it works.

    Exits with 1 if something is broken, or blendctl cannot do without something that is missing; a missing extra is
    no fault.
    """
    from blendctl.cli.diagnostics import installed_parts, machine, try_everything
    from blendctl.cli.smoke_checks import TRIALS

    here = machine()
    parts = installed_parts()
    console = table_console(json_file)
    findings = []
    with progress_bar() as progress:
        bar = progress.add_task(f"trying {next(iter(TRIALS))}", total=len(TRIALS))
        names = list(TRIALS)
        for finding in try_everything(parts, quick=quick):
            findings.append(finding)
            following = names[min(len(findings), len(names) - 1)]
            progress.update(bar, advance=1, description=f"trying {following}")
    console.print(
        f"blendctl {here['blendctl']} on Python {here['python']}, {here['platform']}, {here['cores']} cores",
        soft_wrap=True,
    )
    console.print(_parts_line(parts), soft_wrap=True)
    console.print(_table(findings))
    faults = [p.package for p in parts if not p.fit and (p.extra is None or p.version is not None)]
    for part in parts:
        if part.version is not None and not part.fit:
            console.print(
                f"{part.package} {part.version} is not {part.wanted}:  {part.command} --upgrade", markup=False
            )
    faults += [finding.trial for finding in findings if finding.verdict == "broken"]
    for command in dict.fromkeys(finding.command for finding in findings if finding.command):
        console.print(f"to add what is missing:  {command}", markup=False, soft_wrap=True)
    console.print(f"not well: {', '.join(faults)}" if faults else "all that is installed works")
    found: dict[str, Any] = {
        "ok": not faults,
        "machine": here,
        "parts": [asdict(part) | {"fit": part.fit, "command": part.command} for part in parts],
        "trials": [asdict(finding) for finding in findings],
    }
    write_json(json_file, found)
    if faults:
        raise SystemExit(1)


def _parts_line(parts: list[Part]) -> str:
    there = ", ".join(f"{part.package} {part.version}" for part in parts if part.version is not None)
    return f"installed: {there}"


def _table(findings: list[Diagnosis]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in ("trial", "", "found"):
        table.add_column(column)
    for finding in findings:
        table.add_row(finding.trial, SIGNS[finding.verdict], escape(finding.words))
    return table
