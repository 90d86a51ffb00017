"""`blendctl doctor`: check the installation."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from blendctl.cli.output import make_table, progress_bar, styled, table_console, write_json
from blendctl.cli.shared_options import json_option

STYLES = {"works": "green", "missing": "yellow", "skipped": "dim", "broken": "red bold"}


@click.command(epilog="Example: blendctl doctor --json out/doctor.json")
@click.option("--quick", is_flag=True, help="Skip the slow checks: Ray, OpenGL, stable-baselines3.")
@json_option("all results")
def doctor(quick: bool, json_file: Path | None) -> None:
    """Check which packages are installed and whether they work; print the commands that install the missing ones.

    The exit code is 1 if something is broken or a required package is missing. A missing extra is not an error.
    """
    from blendctl.cli.diagnostics import describe_installation, find_dependencies, run_checks
    from blendctl.cli.smoke_checks import CHECKS

    machine, dependencies = describe_installation(), find_dependencies()
    console, names = table_console(json_file), list(CHECKS)
    table = make_table("check", "", "result", left=3)
    results = []
    with progress_bar(counted=True) as progress:
        bar = progress.add_task(f"checking {names[0]}", total=len(names))
        for result in run_checks(dependencies, quick=quick):
            results.append(result)
            table.add_row(result.check, styled(result.verdict, STYLES[result.verdict]), result.message)
            upcoming = names[min(len(results), len(names) - 1)]
            progress.update(bar, advance=1, description=f"checking {upcoming}")
    installed = ", ".join(f"{d.package} {d.version}" for d in dependencies if d.version is not None)
    console.print("blendctl {blendctl} on Python {python}, {platform}, {cores} cores".format(**machine), soft_wrap=True)
    console.print(f"installed: {installed}", soft_wrap=True)
    console.print(table)
    unusable = [d for d in dependencies if not d.usable and (d.extra is None or d.version is not None)]
    for dependency in unusable:
        if dependency.version is not None:
            version = f"{dependency.package} {dependency.version} is not {dependency.wanted}"
            console.print(f"{version}:  {dependency.command} --upgrade")
    for command in dict.fromkeys(result.command for result in results if result.command):
        console.print(f"to install what is missing:  {command}", soft_wrap=True)
    faults = [d.package for d in unusable] + [result.check for result in results if result.verdict == "broken"]
    console.print(f"not working: {', '.join(faults)}" if faults else "everything that is installed works")
    packages = [asdict(d) | {"usable": d.usable, "command": d.command} for d in dependencies]
    checks = [asdict(result) for result in results]
    write_json(json_file, {"ok": not faults, "machine": machine, "dependencies": packages, "checks": checks})
    if faults:
        raise SystemExit(1)
