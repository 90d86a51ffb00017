"""`blendctl explain`: one decision of a recorded run in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli.output import table_console, write_json
from blendctl.cli.shared_options import json_option

if TYPE_CHECKING:
    from blendctl.blender import Record


@click.command(epilog="Example: blendctl explain out/blend --step 250")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--step", type=click.IntRange(1), required=True, help="Control step, from 1.")
@json_option("the decision and its feedback")
def explain(run: Path, step: int, json_file: Path | None) -> None:
    """Explain why a controller drove at a step of RUN: the output directory of `blend`, or a record."""
    from blendctl.blender.explain import explain_record, read_record

    record = read_record(run, step=step)
    table_console(json_file).print(explain_record(record), markup=False, soft_wrap=True)
    write_json(json_file, _facts(record))


def _facts(record: Record) -> dict[str, Any]:
    """Return a decision as JSON data."""
    info, decision = record.run_info, record.decision
    goals = info.objectives.names
    arms: dict[str, Any] = {}
    for arm, action in enumerate(record.proposals):
        arms[info.names[arm]] = {"proposed": None if action is None else action.tolist()}
    if decision is not None:
        for row, arm in enumerate(record.asked):
            arms[info.names[arm]] |= {
                "estimate": dict(zip(goals, decision.estimate[row].tolist(), strict=True)),
                "index": dict(zip(goals, decision.ucb[row].tolist(), strict=True)),
                "loss": float(decision.loss[row]),
            }
    feedback = None if record.feedback is None else dict(zip(goals, record.feedback.tolist(), strict=True))
    return {
        **{name: getattr(record, name) for name in ("stage", "step", "steps", "episode")},
        "driver": record.name,
        "reason": record.reason,
        "event": record.event,
        "rule": info.rule,
        "candidates": list(record.candidates),
        "loss_bound": record.loss_bound if decision is not None else None,
        "arms": arms,
        "action": record.action.tolist(),
        "feedback": feedback,
        "learned": record.learned,
        "correct": record.correct,
    }
