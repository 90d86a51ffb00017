"""Tables in a narrow terminal: columns wrap, and nothing is cut."""

import io

import pytest
from rich.console import Console

from blendctl.cli.output import make_table
from blendctl.cli.selftest_table import figures_table
from blendctl.selftest import CHECKS
from blendctl.selftest.checks import Measured

LONG = "a_controller_whose_name_somebody_chose_with_great_care-2026-final-v12"


def printed(table, width=80):
    out = io.StringIO()
    Console(file=out, width=width).print(table)
    return out.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_long_names_are_whole_in_a_narrow_terminal(width):
    table = make_table("", "return", "cost", "share", "switches", "correct", "loss", "bound")
    table.add_row(LONG, "-762.38", "60.7", "100/0%", "1200", "93.2%", "0.01667", "0.6227")
    text = printed(table, width)
    assert "…" not in text
    folded = "".join(line.split()[0] for line in text.rpartition("─")[2].splitlines() if line[1:2].strip())
    assert folded == LONG
    if width >= 80:
        assert all(number in text for number in ("-762.38", "0.01667", "93.2%"))
    assert max(map(len, text.splitlines())) <= width


def test_the_table_of_the_selftest_has_whole_words():
    rows = [
        Measured(check.name, check.quick or 1, name, 0.00123, limit, True, 1.0)
        for check in CHECKS
        for name, limit in check.limits.items()
    ]
    words = printed(figures_table(rows)).split()
    for row in rows:
        assert set(row.check.split()[:-1]) | set(row.name.split()) <= set(words)
