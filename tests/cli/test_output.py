"""Tables in a narrow terminal: columns wrap, and nothing is cut. Names from files cannot steer the terminal."""

import io
import re

import pytest
from rich.console import Console

from blendctl.cli import main
from blendctl.cli.output import echo, make_table, progress_bar, styled, table_console
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


HOSTILE = "swift\x1b]0;title\x07\x1b[2J\x9b31m[link=http://evil.example]x[/link]"
STYLES = re.compile(r"\x1b\[[0-9;]*m")  # of the table itself


def test_names_from_files_are_printed_as_text(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    table = make_table("name", HOSTILE, title=HOSTILE, caption=HOSTILE)
    table.add_row(HOSTILE, styled(HOSTILE, "red"))
    console = table_console(None)
    console.width = 400
    console.print(table)
    console.print(HOSTILE)
    echo(HOSTILE)
    out = capsys.readouterr().out
    assert STYLES.search(out)  # styled for a terminal
    assert not set(STYLES.sub("", out)) & set(map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
    assert out.count("[link=http://evil.example]x[/link]") == 7


def test_progress_shows_names_as_text(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar() as progress:
        progress.add_task(HOSTILE, total=1)
        progress.refresh()
    assert "\x1b]0;" not in capsys.readouterr().err


def test_without_a_terminal_progress_is_a_line_a_minute(monkeypatch, capsys):
    def progress(steps):
        with progress_bar(counted=True) as bar:
            task = bar.add_task("simulating", total=4)
            for _ in range(steps):
                bar.update(task, advance=1)
        return capsys.readouterr().err

    assert progress(4) == ""
    monkeypatch.setattr("blendctl.cli.output.LINE_SECONDS", 0.0)
    assert progress(2).splitlines() == ["simulating  25% after 0 min", "simulating  50% after 0 min"]


def test_errors_hold_no_control_characters(capsys, tmp_path):
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / HOSTILE.replace("/", ""))])
    err = capsys.readouterr().err
    assert "swift?]0;title" in err
    assert "\x1b" not in err
