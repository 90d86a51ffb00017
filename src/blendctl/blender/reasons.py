"""Explain in one line why a controller drives."""

from __future__ import annotations

from blendctl.blender.record import Record, RunInfo


def reason_of(record: Record) -> str:
    """Return in one line why this controller drives."""
    name, why = record.name, f"({record.event or 'the others were benched before'})"
    match record.cause:
        case "safe action":
            return f"no controller is fit to drive: the declared safe action {why}"
        case "first":
            return f"{name}: the first pull, uniform over all"
        case "fallback":
            return f"{name}: took over {why}"
        case "no context" | "no decision":
            return f"{name}: first in the fallback order, nothing could be decided {why}"
        case "guard":
            return f"{name}: the guard has fallen back to it, the blend was shown to be worse in every objective"
        case "alone":
            return f"{name}: the only one fit to drive {why}"
        case "dwell":
            preferred = record.run_info.names[record.picked]
            return f"{name}: stays for the minimum dwell of {record.run_info.dwell} stages, {preferred} was preferred"
    return _by_rule(record)


def quantity_in_words(info: RunInfo, goal: int, value: float) -> tuple[str, float]:
    """Return a quantity in plain words: an estimate of -0.4 of "-cost" is a cost of 0.4, or a cost to go of 0.4."""
    name = info.quantities[goal]
    return (name[1:], -value) if name.startswith("-") else (name, value)


def _by_rule(record: Record) -> str:
    decision = record.decision
    info, asked = record.run_info, record.asked
    if decision is None or len(asked) == 1:
        return f"{record.name}: the only controller"
    candidates = record.candidates
    if len(candidates) > 1:
        equals = ", ".join(name for name in candidates if name != record.name)
        return f"{record.name}: picked at random among equals ({equals})"
    mine = asked.index(record.arm)
    estimate, ucb = decision.estimate * record.units, decision.ucb * record.units
    others = [row for row in range(len(asked)) if row != mine]
    rival = asked.index(record.previous) if record.switched and record.previous in asked else None
    if rival is None:
        rival = others[int(decision.loss[others].argmin())]
    ahead = decision.ucb[mine] - decision.ucb[rival]  # (objectives,) in scaled units: what decides
    k = int(ahead.argmax())
    against = info.names[asked[rival]]
    if ahead[k] <= 0:
        return f'{record.name}: the rule "{info.rule}" picked it'
    if estimate[mine, k] > estimate[rival, k]:
        quantity, value = quantity_in_words(info, k, estimate[mine, k])
        other = quantity_in_words(info, k, estimate[rival, k])[1]
        if info.lookahead is not None:  # values to go differ by little: state the difference
            relation = "higher" if value > other else "lower"
            return (
                f"{record.name}: predicted {quantity} {value:.4g}, {abs(value - other):.2g} {relation} than {against}"
            )
        return f"{record.name}: predicted {quantity} {value:.3g} against {other:.3g} of {against}"
    quantity, value = quantity_in_words(info, k, ucb[mine, k])
    other = quantity_in_words(info, k, ucb[rival, k])[1]
    extreme = "low" if info.objectives.names[k].startswith("-") else "high"
    return (
        f"{record.name}: less is known of it, {quantity} may be as {extreme} as {value:.3g}, "
        f"against {other:.3g} of {against}"
    )
