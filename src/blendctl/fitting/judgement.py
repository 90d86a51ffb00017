"""The verdict: is the blend better than its controllers, or is one of them enough?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blendctl import pareto
from blendctl.arrays import FloatArray
from blendctl.experiments.corner import Corner, Score, score_episodes
from blendctl.experiments.scales import Scales
from blendctl.fitting.outcomes import Outcomes
from blendctl.statistics import LEVEL, mean_columns, mean_interval

BLEND, NO_DIFFERENCE = "blend", "no difference"
METHODS = (BLEND, "coin per step", "coin per episode", "threshold", "shared")  # besides the controllers
BOOTSTRAP_SEED = 20


@dataclass(frozen=True)
class Judgement:
    """Result of the test episodes."""

    verdict: str  # "blend", the name of a controller, or "no difference"
    words: str
    score: Score  # of the blend
    performant: str  # the controller with the highest return on other episodes
    safe: str  # the controller with the lowest cost
    rows: dict[str, dict[str, Any]]  # method -> means and intervals
    front: list[str]  # methods whose mean return and costs no other method dominates


def judge(
    methods: Mapping[str, Outcomes], names: Sequence[str], *, performant: str, safe: str, scales: Scales
) -> Judgement:
    """Judge the outcomes of methods on the same episodes; `methods` has the blend and every controller."""
    corner = (methods[performant].points, methods[safe].points)
    rows = {name: _row(one, corner) for name, one in methods.items()}
    score = _score(methods[BLEND], corner)

    def above(name: str, other: str) -> bool:
        return _shown_above(scales.utility(methods[name].points) - scales.utility(methods[other].points))

    lifted = score.interval is None or score.interval[0] > 0
    best = next((name for name in names if _dominates(name, names, methods)), None)
    if all(above(BLEND, name) for name in names) and lifted:
        verdict, why = (
            BLEND,
            "Use the blend: it is shown to be better than every controller and than mixing them by episode.",
        )
        others = [name for name in methods if name not in (BLEND, *names) and not above(BLEND, name)]
        better = [name for name in others if above(name, BLEND)]
        close = [name for name in others if name not in better]
        if better:
            why = (
                f"Use the blend rather than a controller alone; but a simpler method is shown to be better still: "
                f"{', '.join(better)}."
            )
        why += f" Not shown to be worse than the blend: {', '.join(close)}." if close else ""
    elif best is not None:
        verdict = best
        why = (
            f"Use {best}: it is shown to be better than the other controllers, and the blend is not shown to be better."
        )
    else:
        verdict = NO_DIFFERENCE
        why = "No difference shown: neither the blend nor one of the controllers is shown to be better than the rest."
    return Judgement(verdict, why, score, performant, safe, rows, _front(methods))


def _front(methods: Mapping[str, Outcomes]) -> list[str]:
    """Return the methods that no other one dominates in the means of return and every component of the cost."""
    parts = sorted({name for one in methods.values() for name in one.components})
    means = []
    for one in methods.values():
        costs = [one.components[name] for name in parts if name in one.components] if parts else [one.costs]
        means.append([one.returns.mean(), *(-cost.mean() for cost in costs)])
    return [name for name, undominated in zip(methods, pareto.front(means), strict=True) if undominated]


def _dominates(name: str, names: Sequence[str], methods: Mapping[str, Outcomes]) -> bool:
    """Return whether a controller is shown to be better than all others in an objective, and worse in none."""
    level = 1.0 - (1.0 - LEVEL) / (2 * max(len(names) - 1, 1))
    for other in names:
        if other == name:
            continue
        difference = (methods[name].points - methods[other].points) * [1.0, -1.0]
        intervals = [mean_interval(column, level=level) for column in difference.T]
        if any(span is None or span[1] < 0 for span in intervals):
            return False
        if not any(span is not None and span[0] > 0 for span in intervals):
            return False
    return True


def _shown_above(difference: FloatArray) -> bool:
    span = mean_interval(difference)
    return span is not None and span[0] > 0


def _score(one: Outcomes, corner: tuple[FloatArray, FloatArray]) -> Score:
    if corner[0] is corner[1] or np.array_equal(*corner):
        return Score(None, None, "no corner: one controller has the highest return and the lowest cost")
    return score_episodes(one.points, *corner, rng=np.random.default_rng(BOOTSTRAP_SEED))


def _row(one: Outcomes, corner: tuple[FloatArray, FloatArray]) -> dict[str, Any]:
    score = _score(one, corner)
    return {
        "episodes": len(one.returns),
        **mean_columns({"return": one.returns, "cost": one.costs}),
        "length_mean": float(one.lengths.mean()),
        "corner_score": score.value,
        "corner_score_ci95": score.interval,
        **mean_columns(one.components),
    }


def mixing_line(alone: Mapping[str, Outcomes], *, performant: str, safe: str) -> list[list[float]]:
    """Return return and cost of the two controllers that span the line of random mixtures."""
    return [alone[name].points.mean(axis=0).tolist() for name in (performant, safe)]


def corner_point(line: list[list[float]]) -> dict[str, Any]:
    """Return the corner of a mixing line, or why there is none."""
    performant, safe = line
    reason = Corner((performant[0], performant[1]), (safe[0], safe[1])).reason()
    return {"return": performant[0], "cost": safe[1], "reason": reason}
