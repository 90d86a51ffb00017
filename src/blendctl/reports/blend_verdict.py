"""Compare the blend in words with each controller alone and with random mixing."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.reports.standing import standing_of
from blendctl.statistics import mean_interval

RELATIONS = {1: "higher than", 0: "not shown to differ from", -1: "lower than"}


def compare(first: dict[str, Any], second: dict[str, Any], quantity: str) -> int:
    """Return 1 if the first mean is higher at 95% confidence, -1 if it is lower, 0 if neither is shown.

    Equally many episodes have equal seeds and are compared in pairs; otherwise the two intervals must not overlap.

    >>> compare({"costs": [1.0, 2.0, 1.0]}, {"costs": [5.0, 6.0, 7.0]}, "cost")
    -1
    >>> compare({"costs": [1.0, 9.0]}, {"costs": [5.0, 6.0]}, "cost")
    0
    """
    ours, theirs = first.get(f"{quantity}s") or [], second.get(f"{quantity}s") or []
    if len(ours) == len(theirs) > 1:
        interval = mean_interval(np.array(ours) - np.array(theirs))
        assert interval is not None
        return int(interval[0] > 0) - int(interval[1] < 0)
    left, right = first.get(f"{quantity}_ci95"), second.get(f"{quantity}_ci95")
    if left is None or right is None:
        return 0
    return int(left[0] > right[1]) - int(left[1] < right[0])


def verdict_sentence(summary: dict[str, Any], names: list[str], *, has_cost: bool = True) -> str:
    """Return in one short sentence whether the blend is better, and its means."""
    episodes, alone = summary["episodes"], summary.get("alone") or {}
    means = f"return {summary['return_mean']:.1f}"
    means += f", cost {summary['cost_mean']:.1f}" if has_cost else ""
    if not episodes:
        return f"Before the first episode ended: {means}."
    over = f"{means}, over {episodes} episode{'s' if episodes != 1 else ''}"
    if len(names) < 2 or any(name not in alone for name in names):
        return f"The blend alone was driven: {over}."
    signs = {name: _signs(summary, alone[name], has_cost=has_cost) for name in names}
    better = [name for name, (low, high) in signs.items() if low >= 0 < high]
    worse = [name for name, (low, high) in signs.items() if low < 0 >= high]
    if len(better) == len(names):
        both = f"{names[0]} and than {names[1]}" if len(names) == 2 else f"each of the {len(names)} controllers"
        return f"The blend is better than {both} alone: {over}."
    if worse:
        return f"The blend is worse than {worse[0]} alone: {over}."
    standing = standing_of(summary, names) if has_cost else None
    if standing is None or standing.score.interval is None:
        return f"No controller alone is shown to be better or worse than the blend: {over}."
    mixing = f"random mixing of {standing.performant} and {standing.safe}"
    low, high = standing.score.interval
    if low > 0:
        return f"The blend is better than {mixing}: {over}."
    if high < 0:
        return f"The blend is worse than {mixing}: {over}."
    return f"The blend is not shown to differ from {mixing}: {over}."


def relations(summary: dict[str, Any], names: list[str], *, has_cost: bool = True) -> list[str]:
    """Compare return and cost with those of each controller alone, and describe the corner score; a sentence each."""
    alone = {name: row for name, row in (summary.get("alone") or {}).items() if name in names}
    if not alone or not summary.get("episodes"):
        return []
    sentences = []
    for quantity in ("return", "cost") if has_cost else ("return",):
        mean = f"{quantity}_mean"
        parts = [
            f"{RELATIONS[compare(summary, row, quantity)]} {name} ({row[mean]:.1f})" for name, row in alone.items()
        ]
        sentences.append(f"{quantity.capitalize()} {summary[mean]:.1f}: {', '.join(parts)}.")
    standing = standing_of(summary, names) if has_cost else None
    if standing is not None and standing.score.value is not None:
        span = standing.score.interval
        words = "no interval" if span is None else f"95% interval {span[0]:+.2f} to {span[1]:+.2f}"
        sentences.append(
            f"Corner score {standing.score.value:+.2f} ({words}): 0 is random mixing, 1 the return of "
            f"{standing.performant} at the cost of {standing.safe}."
        )
    return sentences


def _signs(summary: dict[str, Any], row: dict[str, Any], *, has_cost: bool) -> tuple[int, int]:
    """Return the least and the greatest of: shown better (1) or worse (-1) in return, and in cost."""
    signs = [compare(summary, row, "return"), *([-compare(summary, row, "cost")] if has_cost else [])]
    return min(signs), max(signs)
