"""Compare the blend with each controller alone, in one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.statistics import mean_interval

NEAR = 0.1  # relative difference; means that differ by less, and not significantly, are called about the same


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


def verdict_sentence(summary: dict[str, Any], names: list[str]) -> str:
    """Compare the return with the first controller's, the cost with the first and the last controller's."""
    episodes, alone = summary["episodes"], summary.get("alone") or {}
    over = f"Over {episodes} episode{'s' if episodes != 1 else ''}" if episodes else "Before the first episode ended"
    mean, paid = summary["return_mean"], summary["cost_mean"]
    if len(names) < 2 or any(name not in alone for name in (names[0], names[-1])) or episodes == 0:
        return f"{over}, the blend had a mean return of {mean:.1f} and a mean cost of {paid:.1f}."
    fast, safe = names[0], names[-1]
    returned = _relation(summary, alone[fast], "return")
    above, below = _relation(summary, alone[fast], "cost"), _relation(summary, alone[safe], "cost")
    joined = f"and {below} " if below != above else "or " if below.startswith("not") else "and "
    return (
        f"{over}, the blend’s return of {mean:.1f} was {returned} {fast}’s ({alone[fast]['return_mean']:.1f}); "
        f"its cost of {paid:.1f} was {above} {fast}’s ({alone[fast]['cost_mean']:.1f}) "
        f"{joined}{safe}’s ({alone[safe]['cost_mean']:.1f})."
    )


def _relation(first: dict[str, Any], second: dict[str, Any], quantity: str) -> str:
    one, other = first[f"{quantity}_mean"], second[f"{quantity}_mean"]
    near = abs(one - other) <= NEAR * max(abs(one), abs(other))
    unclear = "about the same as" if near else "not significantly different from"
    return {1: "higher than", 0: unclear, -1: "lower than"}[compare(first, second, quantity)]
