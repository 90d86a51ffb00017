"""Handover: how the action changes when another controller takes over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.blender.finite_check import is_positive
from blendctl.errors import InputError

EXPECTED = 'None, "slew:LARGEST" (change per control step), "fade:STEPS", SlewLimit(...) or CrossFade(...)'


@dataclass(frozen=True)
class SlewLimit:
    """After a switch, change each entry of the action by at most `largest` per control step, until it arrives."""

    largest: float | Sequence[float]  # for all entries, or one per entry

    def __post_init__(self) -> None:
        declared = list(self.largest) if isinstance(self.largest, Sequence) else [self.largest]
        if not declared or not all(is_positive(value) for value in declared):
            raise InputError(f"a slew limit must be numbers > 0, one or one per entry, actually: {self.largest!r}")
        if isinstance(self.largest, Sequence):
            object.__setattr__(self, "largest", tuple(self.largest))

    def limits(self, size: int) -> FloatArray:
        """Return the limit of each entry, (size,)."""
        limits = np.asarray(self.largest, np.float64)
        if limits.shape not in ((), (size,)):
            raise InputError(f"the slew limit has {limits.size} entries, the action has {size}")
        return np.broadcast_to(limits, (size,))


@dataclass(frozen=True)
class CrossFade:
    """After a switch, move from the last action to the new controller's in `steps` equal parts."""

    steps: int

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or not 1 <= self.steps <= 1_000_000:
            raise InputError(f"a cross-fade takes a whole number of control steps >= 1, actually: {self.steps!r}")


Handover = SlewLimit | CrossFade


def as_handover(declared: Any) -> Handover | None:
    """Return a handover from an object, its name or its JSON data.

    >>> as_handover("slew:0.1"), as_handover("fade:5"), as_handover(None)
    (SlewLimit(largest=0.1), CrossFade(steps=5), None)
    """
    if declared is None or isinstance(declared, SlewLimit | CrossFade) or declared == "none":
        return None if isinstance(declared, str) else declared
    try:
        if isinstance(declared, str):
            kind, _, value = declared.partition(":")
            if kind == "slew":
                numbers = [float(one) for one in value.split(",")]
                return SlewLimit(numbers[0] if len(numbers) == 1 else tuple(numbers))
            if kind == "fade":
                return CrossFade(int(value))
        if isinstance(declared, Mapping):
            kinds: dict[str, Any] = {"SlewLimit": SlewLimit, "CrossFade": CrossFade}
            arguments = dict(declared)
            made: Handover = kinds[arguments.pop("kind")](**arguments)
            return made
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"handover must be {EXPECTED}, actually: {declared!r} ({error})") from None
    raise InputError(f"handover must be {EXPECTED}, actually: {declared!r}")


class HandoverFilter:
    """Apply a handover to the actions of one robot. The safe action is never delayed; whole numbers are not changed."""

    def __init__(self, handover: Handover | None) -> None:
        self.handover = handover
        self._last: FloatArray | None = None  # as applied
        self._arm = -1
        self._start: FloatArray | None = None  # last action before the switch, while the handover lasts
        self._steps = 0  # control steps of the handover

    def reset(self) -> None:
        """Forget the last action, at the end of an episode."""
        self._last = self._start = None

    def apply(self, action: NDArray[Any], arm: int) -> NDArray[Any]:
        """Return the action to apply when controller `arm` proposes `action`."""
        if self.handover is None or action.dtype.kind != "f":
            return action
        if self._last is not None and arm != self._arm:
            self._start, self._steps = self._last, 0
        self._arm = arm
        applied = action
        if arm < 0 or self._last is None:
            self._start = None
        elif self._start is not None:
            applied = self._moved(action, self._last, self._start)
        self._last = applied.copy()
        return applied

    def _moved(self, action: FloatArray, last: FloatArray, start: FloatArray) -> FloatArray:
        self._steps += 1
        if isinstance(self.handover, CrossFade):
            if self._steps >= self.handover.steps:
                self._start = None
                return action
            return np.asarray(start + self._steps / self.handover.steps * (action - start))
        assert self.handover is not None
        limits = self.handover.limits(action.size).reshape(action.shape)
        change = action - last
        if (np.abs(change) <= limits).all():
            self._start = None
            return action
        return np.asarray(last + np.minimum(np.maximum(change, -limits), limits))


def check_entries(handover: Handover | None, shape: Sequence[int] | None) -> None:
    """Raise InputError if a slew limit does not have one entry per action entry."""
    if isinstance(handover, SlewLimit) and shape is not None:
        handover.limits(int(np.prod(shape)))
