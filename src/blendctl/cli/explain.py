"""`blendctl explain`: one decision of a recorded run in plain words."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["explain"]


@click.command(epilog="Example: blendctl explain out/blend --step 250")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--step", type=click.IntRange(1), required=True, help="Control step, from 1.")
def explain(run: Path, step: int) -> None:
    """Say why a controller drove at a step of RUN, with the numbers of its decision."""
    from blendctl.blender.explain import explain_record, read_record

    click.echo(explain_record(read_record(run, step=step)))
