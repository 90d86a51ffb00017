"""Explain one decision of a record on disk, in plain words with its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit import Decision, memory_layout
from blendctl.blender.objectives import Objectives
from blendctl.blender.record import Record, RunInfo
from blendctl.blender.recorder import FORMAT, VERSION
from blendctl.errors import FileFormatError, InputError
from blendctl.table_parts import list_parts, read_part

__all__ = ["read_record", "explain_record", "restore_record"]


def explain_record(record: Record) -> str:
    """Say everything about a stage, a line per fact."""
    lines = [
        f"stage {record.stage}, step {record.step}, episode {record.episode}: {record.name} drives",
        f"why: {record.reason}",
    ]
    if record.event:
        lines.append(f"event: {record.event}")
    cast, decision = record.cast, record.decision
    if decision is not None:
        told = decision.explain(arms=[cast.names[arm] for arm in record.asked], objectives=cast.objectives.names)
        lines += [f"the rule ({cast.rule}): {part}" for part in told.split("; ")]
        for row, arm in enumerate(record.asked):
            values = zip(cast.objectives.names, decision.estimate[row], decision.ucb[row], strict=True)
            numbers = ", ".join(f"{name} {mean:.4g} (at best {best:.4g})" for name, mean, best in values)
            lines.append(f"  {cast.names[arm]}: expected {numbers}; loss {decision.loss[row]:.4g}")
    for arm, action in enumerate(record.proposals):
        if action is not None:
            lines.append(f"  {cast.names[arm]} proposed {_list(action)}")
    lines.append(f"applied: {_list(record.action)}")
    if record.feedback is None:
        lines.append("its feedback never came")
    else:
        pairs = zip(cast.objectives.names, record.feedback.tolist(), strict=True)
        brought = ", ".join(f"{name} {value + 0.0:.4g}" for name, value in pairs)
        lines.append(f"it brought {brought}; {'learned' if record.learned else 'not learned from'}")
    if record.correct is not None:
        lines.append("in hindsight: " + ("correct" if record.correct else "wrong, another arm was better"))
    return "\n".join(lines)


def _list(values: NDArray[Any]) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in values.ravel().tolist()) + "]"


def read_record(path: str | Path, *, step: int) -> Record:
    """Read the stage that a control step belongs to; of a stage with two rows the later, which is complete."""
    folder = Path(path)
    parts = list_parts(folder) or list_parts(folder / "record")
    if not parts:
        raise FileFormatError(f"{folder} holds no record (part-*.parquet, or record/part-*.parquet)")
    found: Record | None = None
    first, last = None, 0
    for part in parts:
        header, table = read_part(part, format_name=FORMAT, version=VERSION)
        steps, lengths = table["step"].to_numpy(), table["steps"].to_numpy()
        hits = np.flatnonzero((steps <= step) & (step < steps + lengths))
        for hit in hits:
            later = restore_record(table.slice(int(hit), 1).to_pylist()[0], header)
            if later.event is None and found is not None:
                later.event = found.event  # what went wrong is told in the first row
            found = later
        first = int(steps[0]) if first is None else first
        last = max(last, int((steps + lengths).max()) - 1)
    if found is None:
        raise InputError(f"the record in {folder} has steps {first} to {last}, actually asked for: {step}")
    return found


def restore_record(row: dict[str, Any], header: dict[str, Any]) -> Record:
    """Rebuild a record from its row."""
    arms, goals = header["columns"], header["objective_columns"]
    objectives = Objectives([_declared(name) for name in header["objectives"]])
    psi = _grid(row, "psi", [arms, None])
    cast = RunInfo(
        tuple(header["names"]),
        objectives,
        scales=np.array(header["scales"]),
        features=psi.shape[1],
        rule=header["rule"],
        dwell=header["dwell"],
    )
    width, loss = _grid(row, "width", [arms]), _grid(row, "loss", [arms])
    asked = tuple(np.flatnonzero(np.isfinite(width)).tolist())
    decision = None
    if asked and row["radius"] is not None:
        among = list(asked)
        picked = among.index(row["picked"])
        parts = [width, loss, _grid(row, "candidate", [arms])]
        parts += [_grid(row, name, [arms, goals]) for name in ("estimate", "ucb")]
        numbers = np.concatenate([[picked, row["radius"]], *(part[among].ravel() for part in parts)])
        assert numbers.size == memory_layout.decision_size(len(asked), len(goals))
        decision = Decision(numbers, len(asked), len(goals), picked)
    proposals = [_grid(row, f"action_{arm}", [None]) for arm in arms]
    feedback = _grid(row, "feedback", [goals])
    record = Record(
        cast,
        decision=decision,
        asked=asked,
        features=psi,
        proposals=[None if np.isnan(p).any() else p for p in proposals],
        action=_grid(row, "action", [None]),
        observation=None,
        closed=True,
        **{name: row[name] for name in ("stage", "step", "episode", "arm", "picked", "previous", "cause")},
    )
    record.feedback = None if np.isnan(feedback).any() else feedback
    for name in ("steps", "event", "reward", "cost", "learned", "late", "ended", "correct"):
        setattr(record, name, row[name])
    return record


def _declared(name: str) -> Any:
    return name if name == "reward" or name.startswith("-cost") else (name, lambda feedback: 0.0)


def _grid(row: dict[str, Any], name: str, axes: list[list[str] | None]) -> NDArray[np.float64]:
    """Collect columns such as "ucb_fast_reward" into an array with an axis per list of words; None counts."""
    shape = []
    flat = [name]
    for axis in axes:
        if axis is None and flat[0] in row:
            break  # actions that are single numbers
        words = axis if axis is not None else _counted(row, flat[0])
        flat = [f"{label}_{word}" for label in flat for word in words]
        shape.append(len(words))
    return np.array([np.nan if row[label] is None else row[label] for label in flat], np.float64).reshape(shape)


def _counted(row: dict[str, Any], label: str) -> list[str]:
    count = 0
    while f"{label}_{count}" in row:
        count += 1
    return [str(i) for i in range(count)]
