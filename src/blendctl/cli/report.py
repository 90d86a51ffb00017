"""`blendctl report`: one HTML file about a run, with a replay."""

from __future__ import annotations

from pathlib import Path

import click

from blendctl.cli.multi_option import MultiValueCommand
from blendctl.cli.output import echo, make_console
from blendctl.cli.shared_options import open_option, trust_code_option


@click.command(cls=MultiValueCommand, epilog="Example: blendctl report out/blend -o report.html")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, dir_okay=False),
    help="Output file.  [report.html in RUN; RUN.html beside RUN if RUN is a record]",
)  # fmt: skip
@click.option(
    "--replays", type=click.IntRange(0),
    help="Number of episodes to replay, the costliest of a longer run.  [10; 3 for an experiment, which are rerun]",
)  # fmt: skip
@click.option(
    "--entries", multiple=True, metavar="ENTRY[=LABEL]...",
    help="Entries of the observation to plot under the timeline, by number or name; of a blend in another environment "
    "than blendctl's worlds.  [the three that vary most]",
)  # fmt: skip
@click.option(
    "--picture-mb", "megabytes", type=click.FloatRange(0), default=3.0, show_default=True,
    help="Largest size of all pictures of the environment in MB; 0 for none.",
)  # fmt: skip
@trust_code_option
@open_option("the page")
def report(
    run: Path, out: Path | None, replays: int | None, entries: tuple[str, ...], megabytes: float, open_page: bool
) -> None:
    """Write one self-contained HTML page about RUN: the output of blend, fit, reproduce or compare, or a record."""
    from blendctl.atomic import write_atomically
    from blendctl.reports import build_report

    with make_console().status("building the page (an experiment is rerun for its replay)"):
        chosen = list(entries) or None
        page = build_report(run, replays=replays, entries=chosen, picture_megabytes=megabytes).encode()
    file = _default_file(run) if out is None else out
    write_atomically(file, page)
    echo(f"wrote {file} ({len(page) / 1e6:.1f} MB)")
    if open_page:
        click.launch(file.resolve().as_uri())


def _default_file(run: Path) -> Path:
    """Return where the page goes: into an output directory, but beside a record, which holds only Parquet files."""
    from blendctl.table_parts import list_parts

    if list_parts(run / "record") or not list_parts(run):
        return run / "report.html"
    named = run if run.name not in ("", "..") else run.resolve()
    return named.with_name(f"{named.name}.html")
