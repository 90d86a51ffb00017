"""The table and the JSON data of measured figures, for `blendctl selftest` and `make verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from blendctl.cli.output import make_table

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.selftest.checks import Measured


def figures_table(figures: Sequence[Measured]) -> Table:
    """Return the table: name, figure, limit, pass; a failed check has its reason below."""
    from rich.markup import escape

    table = make_table("check", "figure", "value", "limit", "", left=2)
    last = ""
    for one in figures:
        name = "" if one.check == last else f"{one.check}: {one.repetitions:,}"
        value = "none" if one.figure is None else f"{one.figure:.3g}"
        verdict = "[green]pass[/]" if one.passed else "[red bold]FAIL[/]"
        table.add_row(escape(name), escape(one.name), value, f"{one.limit:.3g}", verdict)
        for note in one.notes if one.check != last else ():
            table.add_row("", escape(note), "", "", "")
        if one.message and one.check != last:
            table.add_row("", f"[red]{escape(one.message)}[/]", "", "", "")
        last = one.check
    return table


def results_json(figures: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures, the machine and whether all passed, as JSON data."""
    from blendctl.cli.diagnostics import describe_installation

    passed = all(figure.passed for figure in figures)
    return {"passed": passed, "machine": describe_installation(), "figures": [asdict(figure) for figure in figures]}
