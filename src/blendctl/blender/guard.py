"""Guard a blend: fall back to a controller once the blend is shown to be worse in every objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.certificates.monitor import ChangeMartingale
from blendctl.errors import InputError

FALSE_ALARM = 0.05  # largest probability of a fallback in a whole run, if the blend is not worse in every objective


class Guard:
    """Test the blend's episodes against known episodes of its controllers, for as long as it runs.

    outcomes: by controller, the sums of each objective over whole episodes, (episodes, objectives), all maximised: a
    cost counts negative. For every controller and objective a test martingale bets that an episode of the blend is,
    on average, worse than more than half of the controller's known ones. If all objectives of one controller are
    decided, the blend falls back to it for good. If the blend is not worse in every objective, the probability that
    this ever happens is at most `false_alarm`, given the known episodes.

    >>> guard = Guard({"fast": [[10.0, -5.0], [11.0, -6.0]], "safe": [[4.0, -1.0], [5.0, -2.0]]})
    >>> guard.bind(["fast", "safe"], ["reward", "-cost"])
    >>> while guard.arm is None:
    ...     words = guard.add([2.0, -8.0])
    >>> words
    'the guard falls back to fast: after 7 episodes the blend is shown to be worse than it in every objective'
    """

    def __init__(self, outcomes: Mapping[str, ArrayLike], *, false_alarm: float = FALSE_ALARM) -> None:
        if not isinstance(outcomes, Mapping) or not outcomes:
            raise InputError(
                "a guard needs known episodes of the controllers, Guard({name: array (episodes, objectives)}), "
                f"actually: {outcomes!r}"
            )
        if not 0.0 < false_alarm < 1.0:
            raise InputError(f"false_alarm must be a probability between 0 and 1, actually: {false_alarm!r}")
        self.outcomes = {name: np.atleast_2d(np.asarray(rows, np.float64)) for name, rows in outcomes.items()}
        self.false_alarm = false_alarm
        self.episodes = 0
        self.arm: int | None = None  # the controller that it has fallen back to
        self._names: list[str] = []
        self._total: FloatArray | None = None  # of the present episode, (objectives,)
        self._tests: dict[str, list[ChangeMartingale]] = {}  # by controller, one per objective

    def bind(self, names: Sequence[str], objectives: Sequence[str]) -> None:
        """Prepare for the controllers and objectives of a blender; raise InputError if the outcomes do not fit."""
        for name, rows in self.outcomes.items():
            if name not in names:
                raise InputError(f'the guard knows episodes of "{name}", which is not a controller: {", ".join(names)}')
            if rows.ndim != 2 or rows.shape[1] != len(objectives) or len(rows) < 2 or not np.isfinite(rows).all():
                raise InputError(
                    f"the guard needs two episodes or more of {name}, finite sums of {', '.join(objectives)}, "
                    f"actually: shape {rows.shape}"
                )
        self._names, self._total = list(names), None
        self._tests = {name: [ChangeMartingale(0.5, 0.0) for _ in objectives] for name in self.outcomes}

    def observe(self, feedback: FloatArray) -> None:
        """Add the feedback (objectives,) of a control step to the present episode; NaN and infinity count as 0."""
        known = np.where(np.isfinite(feedback), feedback, 0.0)
        self._total = known if self._total is None else self._total + known

    def end_episode(self) -> list[str]:
        """End the present episode; return an event if the blend falls back."""
        total, self._total = self._total, None
        words = None if total is None else self.add(total)
        return [] if words is None else [words]

    def add(self, total: ArrayLike) -> str | None:
        """Add the sums (objectives,) of a whole episode of the blend; return an event if it falls back."""
        if self.arm is not None:
            return None  # a controller drives now, not the blend
        self.episodes += 1
        sums = np.asarray(total, np.float64)
        for name, rows in self.outcomes.items():
            worse = 0.5 * (1.0 + (rows > sums).mean(axis=0) - (rows < sums).mean(axis=0))  # in [0, 1]; 0.5 is equal
            for test, value in zip(self._tests[name], worse, strict=True):
                test.add(float(value))
        evidence = self._evidence()
        name = max(evidence, key=lambda one: evidence[one])
        if evidence[name] < math.log(len(evidence) / self.false_alarm):
            return None
        self.arm = self._names.index(name)
        return (
            f"the guard falls back to {name}: after {self.episodes} episodes the blend is shown to be worse than it in "
            "every objective"
        )

    def _evidence(self) -> dict[str, float]:
        """Return by controller the evidence (logarithm) that the blend is worse, for the objective with the least."""
        return {name: min(test.log_wealth for test in tests) for name, tests in self._tests.items()}

    def status(self) -> dict[str, Any]:
        """Return episodes, the fallback, and the evidence that each controller is better (1: none)."""
        return {
            "episodes": self.episodes,
            "fallen_back_to": None if self.arm is None else self._names[self.arm],
            "evidence": {name: math.exp(min(value, 700.0)) for name, value in self._evidence().items()},
            "falls_back_at": len(self.outcomes) / self.false_alarm,
            "false_alarm": self.false_alarm,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return its arguments as JSON data."""
        return {
            "outcomes": {name: rows.tolist() for name, rows in self.outcomes.items()},
            "false_alarm": self.false_alarm,
        }


def as_guard(declared: Any, names: Sequence[str], objectives: Sequence[str]) -> Guard | None:
    """Return a guard, or one from its JSON data, prepared for a blender; None for None and False."""
    if declared is None or declared is False:
        return None
    if declared is True:
        raise InputError(
            "guard=True needs known episodes of the controllers: a blend that `blendctl fit` wrote has them; otherwise "
            "pass guard=Guard({name: array (episodes, objectives)})"
        )
    guard = Guard(**declared) if isinstance(declared, dict) else declared
    if not isinstance(guard, Guard):
        raise InputError(f"guard must be a Guard, actually: {declared!r}")
    guard.bind(names, objectives)
    return guard
