"""The table and the JSON data of measured figures, for `blendctl selftest` and `make verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from blendctl.cli.output import make_table, styled

if TYPE_CHECKING:
    from rich.table import Table

    from blendctl.selftest.checks import Measured


def figures_table(figures: Sequence[Measured]) -> Table:
    """Return the table: name, figure, limit, pass; a failed check has its reason below."""
    table = make_table("check", "figure", "value", "limit", "", left=2)
    last = ""
    for one in figures:
        name = "" if one.check == last else f"{one.check}: {one.repetitions:,}"
        value = "none" if one.figure is None else f"{one.figure:.3g}"
        verdict = styled("pass", "green") if one.passed else styled("FAIL", "red bold")
        table.add_row(name, one.name, value, f"{one.limit:.3g}", verdict)
        for note in one.notes if one.check != last else ():
            table.add_row("", note, "", "", "")
        if one.message and one.check != last:
            table.add_row("", styled(one.message, "red"), "", "", "")
        last = one.check
    return table


def results_json(figures: Sequence[Measured]) -> dict[str, Any]:
    """Return the figures, the machine and whether all passed, as JSON data."""
    from blendctl.cli.diagnostics import describe_installation

    passed = all(figure.passed for figure in figures)
    return {"passed": passed, "machine": describe_installation(), "figures": [asdict(figure) for figure in figures]}
