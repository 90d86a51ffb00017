"""Quantiles of the latest durations."""

from __future__ import annotations

from collections import deque

KEPT = 2000
QUANTILES = ("0.5", "0.99", "0.999")


class RecentTimes:
    """Keep the latest durations (s).

    >>> times = RecentTimes()
    >>> for duration in range(1, 101):
    ...     times.add(duration)
    >>> times.quantiles()
    {'0.5': 51, '0.99': 100, '0.999': 100}
    """

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=KEPT)
        self.add = self._times.append

    def quantiles(self) -> dict[str, float] | None:
        """Return the quantiles by name; None if nothing was measured."""
        ordered = sorted(self._times)
        if not ordered:
            return None
        return {name: ordered[min(int(float(name) * len(ordered)), len(ordered) - 1)] for name in QUANTILES}
