"""`blendctl selftest`: measure blendctl's guarantees on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from blendctl.cli.output import progress_bar, table_console, write_json
from blendctl.cli.selftest_table import figures_table, results_json
from blendctl.cli.shared_options import json_option


@click.command(epilog="Example: blendctl selftest --json out/selftest.json")
@json_option("all figures")
def selftest(json_file: Path | None) -> None:
    """Measure blendctl's guarantees on this machine: each figure with its limit. It takes at most two minutes.

    Accuracy and bounds of the learner, an action despite all failures, damaged files, killed runs. `make verify`
    measures the same and more, for up to an hour. The exit code is 1 if a figure exceeds its limit.
    """
    from importlib.util import find_spec

    from blendctl.selftest import CHECKS
    from blendctl.selftest.checks import run_checks

    checks = [check for check in CHECKS if check.quick and (check.package is None or find_spec(check.package))]
    figures = []
    with progress_bar(counted=True) as progress:
        bar = progress.add_task(checks[0].name, total=len(checks))
        for number, results in enumerate(run_checks(checks)):
            figures += results
            upcoming = checks[min(number + 1, len(checks) - 1)].name
            progress.update(bar, advance=1, description=upcoming)
    table_console(json_file).print(figures_table(figures))
    write_json(json_file, results_json(figures))
    if not all(figure.passed for figure in figures):
        raise SystemExit(1)
