"""`blendctl explain`: one decision of a recorded run in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from blendctl.cli.output import table_console, write_json
from blendctl.cli.shared_options import json_option

if TYPE_CHECKING:
    from blendctl.blender import Record
    from blendctl.features import StageForesight


@click.command(epilog="Example: blendctl explain out/blend --step 250")
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--step", type=click.IntRange(1), required=True, help="Control step, from 1.")
@json_option("the decision and its feedback")
def explain(run: Path, step: int, json_file: Path | None) -> None:
    """Explain why a controller drove at a step of RUN: the output directory of `blend`, or a record."""
    from blendctl.blender.explain import explain_record, read_record

    record = read_record(run, step=step)
    table_console(json_file).print(explain_record(record), soft_wrap=True)
    write_json(json_file, _facts(record))


def _facts(record: Record) -> dict[str, Any]:
    """Return a decision as JSON data, in the unit that it names."""
    from blendctl.blender.explain import unit_in_words

    info, decision, units = record.run_info, record.decision, record.units
    goals, foresight = info.objectives.names, record.foresight
    arms: dict[str, Any] = {}
    for arm, action in enumerate(record.proposals):
        arms[info.names[arm]] = {"proposed": None if action is None else action.tolist()}
    if decision is not None:
        for row, arm in enumerate(record.asked):
            arms[info.names[arm]] |= {
                "estimate": dict(zip(goals, (decision.estimate[row] * units).tolist(), strict=True)),
                "index": dict(zip(goals, (decision.ucb[row] * units).tolist(), strict=True)),
                "loss": float(decision.loss[row] * record.loss_unit),
            }
            if foresight is not None:
                arms[info.names[arm]]["foreseen"] = dict(zip(goals, foresight.foreseen[arm].tolist(), strict=True))
    # the feedback of a step is in this unit already
    came = None if record.feedback is None else record.feedback * (1.0 if foresight is None else units)
    feedback = None if came is None else dict(zip(goals, came.tolist(), strict=True))
    return {
        **{name: getattr(record, name) for name in ("stage", "step", "steps", "episode")},
        "driver": record.name,
        "reason": record.reason,
        "event": record.event,
        "rule": info.rule,
        "features": info.feature_name,
        "unit": unit_in_words(record),
        "dial": None if foresight is None else _dial(record, foresight),
        "candidates": list(record.candidates),
        "loss_bound": float(record.loss_bound * record.loss_unit) if decision is not None else None,
        "arms": arms,
        "action": record.action.tolist(),
        "feedback": feedback,
        "learned": record.learned,
        "correct": record.correct,
    }


def _dial(record: Record, foresight: StageForesight) -> dict[str, Any]:
    """Return the setting of the dial at a decision as JSON data."""
    setting = record.run_info.lookahead
    assert setting is not None
    budget = setting.cost_budget
    return {
        "cost_weight": foresight.weight,
        "prefer": setting.prefer,
        "cost_budget": budget,
        "spent": foresight.spent,
        "left": None if budget is None else budget - foresight.spent,
        "latched": foresight.latched,
        "discount": setting.discount,
    }
