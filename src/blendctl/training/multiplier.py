"""The Lagrange multiplier of the cost, adapted by a PID controller until the cost meets its limit."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Multiplier"]


@dataclass
class Multiplier:
    """A PID controller on the relative excess of the cost over its limit; never negative.

    The integral part alone is gradient ascent on the multiplier, which overshoots and oscillates.
    The proportional part reacts at once; the derivative part reacts to a rising cost only. The
    integral is clipped to [0, largest] against wind-up.

    >>> rule = Multiplier(25.0, integral=0.0, p=0.1, i=0.05, d=0.0, largest=1.0)
    >>> round(rule.update(50.0), 3)  # twice the limit: excess 1
    0.15
    >>> round(rule.update(0.0), 3)
    0.0
    """

    limit: float
    integral: float
    p: float
    i: float
    d: float
    largest: float
    excess_clip: float = 2.0  # relative excesses are clipped to this
    last: float | None = None  # previous excess
    value: float = -1.0

    def __post_init__(self) -> None:
        if self.value < 0:
            self.value = self.integral

    def update(self, cost: float) -> float:
        """Update from the episode cost of the newest rollout; return the multiplier."""
        excess = (cost - self.limit) / max(self.limit, 1.0)
        excess = min(max(excess, -self.excess_clip), self.excess_clip)
        rise = 0.0 if self.last is None else max(0.0, excess - self.last)
        self.last = excess
        self.integral = min(max(self.integral + self.i * excess, 0.0), self.largest)
        wanted = self.integral + self.p * excess + self.d * rise
        self.value = min(max(wanted, 0.0), self.largest)
        return self.value

    def state(self) -> dict[str, float | None]:
        """Return what a resumed run needs."""
        return {"integral": self.integral, "last": self.last, "value": self.value}

    def restore(self, state: dict[str, float | None]) -> None:
        """Continue from `state`."""
        self.last = state["last"]
        self.integral, self.value = float(state["integral"] or 0.0), float(state["value"] or 0.0)
