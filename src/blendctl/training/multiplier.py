"""The Lagrange multiplier of the cost, adapted by a PID controller until the cost meets its limit."""

from __future__ import annotations

from blendctl.training.config import TrainConfig

EXCESS_CLIP = 2.0  # relative excesses are clipped to this


class Multiplier:
    """A PID controller on the relative excess of the cost over its limit; never negative.

    The integral part alone is gradient ascent on the multiplier, which overshoots and oscillates.
    The proportional part reacts at once; the derivative part reacts to a rising cost only. The
    integral is clipped to [0, multiplier_max] against wind-up.

    >>> rule = Multiplier(TrainConfig(cost_limit=25.0, multiplier=0.0, multiplier_p=0.1, multiplier_i=0.05))
    >>> round(rule.update(50.0), 3)  # twice the limit: excess 1
    0.15
    >>> round(rule.update(0.0), 3)
    0.0
    """

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.integral = self.value = config.multiplier
        self.last: float | None = None  # previous excess

    def update(self, cost: float) -> float:
        """Update from the episode cost of the newest rollout; return the multiplier."""
        config = self.config
        excess = (cost - config.cost_limit) / max(config.cost_limit, 1.0)
        excess = min(max(excess, -EXCESS_CLIP), EXCESS_CLIP)
        rise = 0.0 if self.last is None else max(0.0, excess - self.last)
        self.last = excess
        self.integral = min(max(self.integral + config.multiplier_i * excess, 0.0), config.multiplier_max)
        wanted = self.integral + config.multiplier_p * excess + config.multiplier_d * rise
        self.value = min(max(wanted, 0.0), config.multiplier_max)
        return self.value

    def state(self) -> dict[str, float | None]:
        """Return what a resumed run needs."""
        return {"integral": self.integral, "last": self.last, "value": self.value}

    def restore(self, state: dict[str, float | None]) -> None:
        """Continue from `state`."""
        self.last = state["last"]
        self.integral, self.value = float(state["integral"] or 0.0), float(state["value"] or 0.0)
