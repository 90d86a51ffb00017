"""Say in one sentence what the blend was worth, beside each controller alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.statistics import mean_interval

__all__ = ["verdict_of", "compare"]

NEAR = 0.1  # of the larger; means that differ by less, and not clearly, are called about the same


def compare(mine: dict[str, Any], other: dict[str, Any], quantity: str) -> int:
    """Tell whether mine is more (1), less (-1) or not shown to differ (0), at 95%.

    Episodes of equal seeds are compared in pairs if both have as many; otherwise the two intervals must not meet.

    >>> compare({"costs": [1.0, 2.0, 1.0]}, {"costs": [5.0, 6.0, 7.0]}, "cost")
    -1
    >>> compare({"costs": [1.0, 9.0]}, {"costs": [5.0, 6.0]}, "cost")
    0
    """
    plural = f"{quantity}s"
    ours, theirs = mine.get(plural) or [], other.get(plural) or []
    if len(ours) == len(theirs) and len(ours) > 1:
        span = mean_interval(np.array(ours) - np.array(theirs))
        assert span is not None
        return int(span[0] > 0) - int(span[1] < 0)
    left, right = mine.get(f"{quantity}_ci95"), other.get(f"{quantity}_ci95")
    if left is None or right is None:
        return 0
    return int(left[0] > right[1]) - int(left[1] < right[0])


def verdict_of(told: dict[str, Any], names: list[str]) -> str:
    """Say it: against the first controller in return, against the last in cost."""
    episodes = told["episodes"]
    over = f"Over {episodes} episode{'s' if episodes != 1 else ''}"
    if episodes == 0:
        over = "Before its first episode ended"
    alone = told.get("alone") or {}
    sums = f"{told['return_mean']:.1f} return at a cost of {told['cost_mean']:.1f} per episode"
    if len(names) < 2 or any(name not in alone for name in (names[0], names[-1])) or episodes == 0:
        return f"{over} the blend brought {sums}."
    fast, safe = names[0], names[-1]
    mine, theirs = told["return_mean"], alone[fast]["return_mean"]
    returned = {
        1: f"more return than {fast}",
        0: f"about as much return as {fast}" if _near(mine, theirs) else f"a return not shown to differ from {fast}’s",
        -1: f"less return than {fast}",
    }[compare(told, alone[fast], "return")]
    paid, least, most = (part["cost_mean"] for part in (told, alone[safe], alone[fast]))
    cost = {
        1: f"at a higher cost than {safe}",
        0: f"at about the cost of {safe}" if _near(paid, least) else f"at a cost not shown to differ from {safe}’s",
        -1: f"at a lower cost than {safe}",
    }[compare(told, alone[safe], "cost")]
    saved = {
        -1: "less than",
        0: "nor from" if "not shown" in cost else "not shown to differ from",
        1: "more than",
    }
    return (
        f"{over} the blend brought {returned} ({mine:.1f} against {theirs:.1f}) "
        f"{cost} ({paid:.1f} against {least:.1f}), {saved[compare(told, alone[fast], 'cost')]} {fast}’s {most:.1f}."
    )


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), abs(other))
