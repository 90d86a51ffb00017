"""Explain one decision of a record on disk, in plain words with its numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit import Decision
from blendctl.blender.objectives import Objectives
from blendctl.blender.reasons import quantity_in_words
from blendctl.blender.record import Record, RunInfo
from blendctl.blender.recorder import FORMAT, VERSION
from blendctl.blender.run_status import stage_in_words
from blendctl.errors import FileFormatError, InputError
from blendctl.features import LookAheadInfo, StageForesight
from blendctl.file_reading import reading
from blendctl.table_parts import list_parts, read_part

# fields of a record that are columns of the same name
PLAIN = (
    "stage", "step", "episode", "arm", "picked", "previous", "cause", "event",
    "steps", "reward", "cost", "learned", "late", "ended", "correct",
)  # fmt: skip


def explain_record(record: Record) -> str:
    """Describe a stage, a line per fact, in units of the environment's reward and cost."""
    lines = [
        f"stage {record.stage}, step {record.step}, episode {record.episode}: {record.name} drives",
        f"why: {record.reason}",
    ]
    if record.event:
        lines.append(f"event: {record.event}")
    info, decision = record.run_info, record.decision
    if decision is not None and record.foresight is not None:
        lines += _explain_lookahead(record, record.foresight, decision)
    elif decision is not None:
        lines += _explain_stage(record, decision)
    for arm, action in enumerate(record.proposals):
        if action is not None:
            lines.append(f"  {info.names[arm]} proposed {_list(action)}")
    lines.append(f"applied: {_list(record.action)}")
    lines.append(_feedback(record))
    if record.correct is not None:
        judged = stage_in_words(record.steps, None)
        lines.append(f"judged by {judged} alone: " + ("correct" if record.correct else "wrong, another arm was better"))
    return "\n".join(lines)


def unit_in_words(record: Record) -> str:
    """Say what the numbers of a decision are measured in."""
    info = record.run_info
    words = [quantity_in_words(info, goal, 0.0)[0] for goal in range(len(info.objectives.names))]
    listed = " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"
    if record.foresight is not None and info.lookahead is not None:
        over = "" if info.lookahead.horizon is None else f" over {info.lookahead.horizon} steps"
        to_go = "return to go" if len(words) == 1 else "return and cost to go"
        return f"{to_go}{over}, discounted by {info.lookahead.discount:g} per control step"
    steps = "one control step" if record.steps == 1 else f"the {record.steps} control steps of the stage"
    unit = f"{listed} of {steps}; a loss is that of the worst objective"
    if len(words) == 1:
        return f"{unit}, in units of {words[0]}"
    values = [f"a {word} of {scale:.3g}" for word, scale in zip(words, info.scales, strict=True)]
    return f"{unit}, in units of {words[0]}: {' counts as much as '.join(values)}"


def _explain_stage(record: Record, decision: Decision) -> list[str]:
    """Describe the estimates of a decision and the choice of the rule."""
    info, units = record.run_info, record.units
    names = [info.names[arm] for arm in record.asked]
    losses = decision.loss * record.loss_unit
    picked, candidates = decision.arm, decision.candidates.tolist()
    others = ", ".join(names[row] for row in candidates if row != picked)
    at_random = f", picked at random among equals ({others})" if others else ""
    lines = [f"unit: {unit_in_words(record)}"]
    for row, name in enumerate(names):
        parts = []
        for goal, pair in enumerate(zip(decision.estimate[row] * units, decision.ucb[row] * units, strict=True)):
            (word, mean), (_, best) = (quantity_in_words(info, goal, float(value)) for value in pair)
            parts.append(f"{word} {mean + 0.0:.4g} (at best {best + 0.0:.4g})")
        lines.append(f"  {name}: expected {', '.join(parts)}; loss {losses[row]:.4g}")
    lines.append(f"the rule ({info.rule}): {names[picked]}: estimated loss {losses[picked]:.3g}{at_random}")
    for row, name in enumerate(names):
        if row in candidates:
            continue
        behind = decision.ucb.max(axis=0) - decision.ucb[row]
        goal = int(behind.argmax())
        rival = int(decision.ucb[:, goal].argmax())
        (word, mine), (_, best) = (
            quantity_in_words(info, goal, float(decision.ucb[one, goal] * units[goal])) for one in (row, rival)
        )
        lines.append(
            f"the rule ({info.rule}): not {name}: {word} {mine:.3g} at best, against {best:.3g} of {names[rival]}"
        )
    bound = decision.loss_bound * record.loss_unit
    lines.append(f"the rule ({info.rule}): the true loss of this choice is at most {bound:.3g}, in this stage")
    return lines


def _explain_lookahead(record: Record, foresight: StageForesight, decision: Decision) -> list[str]:
    """Describe the dial and the estimates of a look-ahead decision, in units of return and cost."""
    info = record.run_info
    setting = info.lookahead
    assert setting is not None
    low, high = setting.weight_range
    foreseer = "simulation" if info.feature_name.startswith("simulated") else "the networks"
    lines = [
        f"features: {info.feature_name}",
        f"dial: a cost of 1 is worth a return of {foresight.weight:.3g}, of {low:.3g} (most performant) to {high:.3g}",
    ]
    if setting.cost_budget is not None:
        left = setting.cost_budget - foresight.spent
        lines.append(
            f"budget: {foresight.spent:.4g} of {setting.cost_budget:g} spent in this episode, "
            + (f"{left:.4g} left" if left >= 0 else f"{-left:.4g} over it")
            + ("; the safest setting drives" if foresight.latched else "")
        )
    lines.append(f"unit: {unit_in_words(record)}; predicted by {foreseer}, then calibrated by the learner")
    for row, arm in enumerate(record.asked):
        parts = []
        estimate, ucb = decision.estimate[row] * record.units, decision.ucb[row] * record.units
        for goal, numbers in enumerate(zip(foresight.foreseen[arm], estimate, ucb, strict=True)):
            (word, seen), (_, mean), (_, best) = (quantity_in_words(info, goal, float(value)) for value in numbers)
            limit = "" if info.rule == "greedy" else f" (at best {best:.4g})"  # which greedy does not look at
            parts.append(f"{word} predicted {seen:.4g}, calibrated {mean:.4g}{limit}")
        loss = decision.loss[row] * record.loss_unit
        lines.append(f"  {info.names[arm]}: {'; '.join(parts)}; loss {loss:.3g} in units of return")
    bound = record.loss_bound * record.loss_unit
    lines.append(
        f"the rule ({info.rule}): the look-ahead loss of this choice is at most {bound:.3g} in units of return"
    )
    return lines


def _feedback(record: Record) -> str:
    """Describe what was observed and whether the learner used it."""
    learned = "learned" if record.learned else "not learned from"
    info = record.run_info
    if record.foresight is not None:
        seen = f"observed in its {record.steps} steps: reward {record.reward:.4g}, cost {record.cost:.4g}"
        if record.feedback is None:
            return f"{seen}; {learned}"
        values = (record.feedback * record.units).tolist()
        words = [quantity_in_words(info, goal, value) for goal, value in enumerate(values)]
        return f"{seen}; with the value of the final state: {', '.join(f'{w} {v:.4g}' for w, v in words)}; {learned}"
    if record.feedback is None:
        return "no feedback was observed"
    words = [quantity_in_words(info, goal, value) for goal, value in enumerate(record.feedback.tolist())]
    return f"feedback: {', '.join(f'{word} {value + 0.0:.4g}' for word, value in words)}; {learned}"


def _list(values: NDArray[Any]) -> str:
    return "[" + ", ".join(f"{value:.4g}" for value in values.ravel().tolist()) + "]"


def read_record(path: str | Path, *, step: int) -> Record:
    """Read the stage of a control step; of two rows take the later one, which is complete."""
    folder = Path(path)
    parts = list_parts(folder) or list_parts(folder / "record")
    if not parts:
        raise FileFormatError(f"{folder} holds no record (part-*.parquet, or record/part-*.parquet)")
    with reading(folder, "a record"):
        record, first, last = _find_step(parts, step)
    if record is None:
        raise InputError(f"the record in {folder} has steps {first} to {last}, actually asked for: {step}")
    return record


def _find_step(parts: list[Path], step: int) -> tuple[Record | None, int | None, int]:
    """Return the stage of a control step, if it is there, and the first and the last step of the record."""
    record: Record | None = None
    first, last = None, 0
    for part in parts:
        header, table = read_part(part, format_name=FORMAT, version=VERSION)
        steps, lengths = table["step"].to_numpy(), table["steps"].to_numpy()
        for row in np.flatnonzero((steps <= step) & (step < steps + lengths)):
            later = restore_record(table.slice(int(row), 1).to_pylist()[0], header)
            if later.event is None and record is not None:
                later = later._replace(event=record.event)  # only the first row has it
            record = later
        first = int(steps[0]) if first is None else first
        last = max(last, int((steps + lengths).max()) - 1)
    return record, first, last


def restore_record(row: dict[str, Any], header: dict[str, Any]) -> Record:
    """Rebuild a record from its row."""
    arms, goals = header["columns"], header["objective_columns"]
    objectives = Objectives([_declared(name) for name in header["objectives"]])
    psi = _grid(row, "psi", [arms, None])
    info = RunInfo(
        tuple(header["names"]),
        objectives,
        scales=np.array(header["scales"]),
        features=psi.shape[1],
        rule=header["rule"],
        dwell=header["dwell"],
        feature_name=header.get("features", ""),
        lookahead=_lookahead_info(header.get("lookahead")),
    )
    numbers = {name: _grid(row, name, [arms]) for name in ("width", "loss", "candidate")}
    numbers |= {name: _grid(row, name, [arms, goals]) for name in ("estimate", "ucb")}
    asked = np.flatnonzero(np.isfinite(numbers["width"])).tolist()
    decision = None
    if asked and row["radius"] is not None:
        picked = asked.index(row["picked"])
        decision = Decision.from_parts(picked, row["radius"], **{name: part[asked] for name, part in numbers.items()})
    proposals = [_grid(row, f"action_{arm}", [None]) for arm in arms]
    feedback = _grid(row, "feedback", [goals])
    return Record(
        run_info=info,
        decision=decision,
        asked=tuple(asked),
        features=psi,
        proposals=tuple(None if np.isnan(action).any() else action for action in proposals),
        action=_grid(row, "action", [None]),
        foresight=_foresight(row, arms, goals),
        feedback=None if np.isnan(feedback).any() else feedback,
        truth=None,
        **{name: row[name] for name in PLAIN},
    )


def _lookahead_info(header: dict[str, Any] | None) -> LookAheadInfo | None:
    if header is None:
        return None
    low, high = header["weight_range"]
    return LookAheadInfo(**header | {"weight_range": (low, high)})


def _foresight(row: dict[str, Any], arms: list[str], goals: list[str]) -> StageForesight | None:
    if row.get("cost_weight") is None:
        return None
    return StageForesight(
        _grid(row, "foreseen", [arms, goals]),
        _grid(row, "unit", [goals]),
        row["cost_weight"],
        row["spent"],
        row["latched"],
    )


def _declared(name: str) -> Any:
    return name if name == "reward" or name.startswith("-cost") else (name, lambda feedback: 0.0)


def _grid(row: dict[str, Any], name: str, axes: list[list[str] | None]) -> NDArray[np.float64]:
    """Collect columns such as "ucb_fast_reward" into an array, an axis per list of words; None: numbered columns."""
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
