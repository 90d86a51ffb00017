"""The objectives: named parts of the feedback, or functions of it, all maximised."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy import array, float64

from blendctl.arrays import FloatArray
from blendctl.errors import InputError, did_you_mean

Feedback = Mapping[str, Any]  # the arguments of `observe`, by name
Objective = str | Callable[[Feedback], float] | tuple[str, Callable[[Feedback], float]]

_NAMED = re.compile(r"reward|-cost(_\w+)?")
_COLUMN = re.compile(r"\W+")


@dataclass(frozen=True)
class _Part:
    name: str  # as the user wrote it: "-cost"
    signal: str | None  # the part of the feedback that it reads, None for a function
    sign: float
    function: Callable[[Feedback], float] | None = None


class Objectives:
    """Turn feedback into the vector that the bandit maximises.

    Objectives are "reward", "-cost", "-cost_NAME" for a cost's component, a function of the feedback
    (a mapping of the arguments of `observe`), or a pair (name, function).

    >>> objectives = Objectives(["reward", "-cost", ("thrift", lambda feedback: -feedback["energy"])])
    >>> objectives({"reward": 0.5, "cost": 1.0, "energy": 3.0})
    array([ 0.5, -1. , -3. ])
    """

    def __init__(self, declared: Sequence[Objective]) -> None:
        if isinstance(declared, str) or not declared:
            raise InputError(
                f'objectives must be a list such as ["reward", "-cost"], not empty, actually: {declared!r}'
            )
        self._parts = [_part(objective, index) for index, objective in enumerate(declared)]
        self.names = tuple(part.name for part in self._parts)
        if len(set(self.names)) < len(self.names):
            raise InputError(f"the names of the objectives must differ, actually: {', '.join(self.names)}")
        self.signals = tuple(dict.fromkeys(part.signal for part in self._parts if part.signal))
        self._plain = [(part.sign, part.signal) for part in self._parts if part.signal]
        self.plain = len(self._plain) == len(self._parts)  # all are parts of the feedback, none is a function

    def __len__(self) -> int:
        return len(self._parts)

    def __call__(self, feedback: Feedback) -> FloatArray:
        """Return (objectives,); raise InputError if a part of the feedback is missing."""
        try:
            if self.plain:
                values = array([sign * feedback[signal] for sign, signal in self._plain], float64)
            else:
                present = _present(feedback)
                values = np.array([_value(part, present) for part in self._parts], np.float64)
            if values.ndim == 1:
                return values
            error: Exception | None = None
        except Exception as raised:  # the user's function may raise anything
            error = raised
        for part in self._parts:
            self._check(part, feedback)
        raise InputError(f"the feedback must be plain numbers, actually: {dict(feedback)}") from error

    def arrays(self, feedback: Mapping[str, FloatArray]) -> FloatArray:
        """Return (..., objectives) for feedback whose parts are arrays (...)."""
        if self.plain and all(signal in feedback for signal in self.signals):
            out = np.empty((*feedback[self.signals[0]].shape, len(self)))
            for k, (sign, signal) in enumerate(self._plain):
                np.multiply(feedback[signal], sign, out=out[..., k])
            return out
        shape = feedback["reward"].shape
        rows = zip(*(part.ravel().tolist() for part in feedback.values()), strict=True)
        values = [self(dict(zip(feedback, row, strict=True))) for row in rows]
        return np.array(values).reshape(*shape, len(self))

    def _check(self, part: _Part, feedback: Feedback) -> None:
        present = _present(feedback)
        if part.signal is not None and part.signal not in present:
            raise InputError(
                f'the objective "{part.name}" needs {part.signal}=... in observe, actually: '
                f"{', '.join(present) or 'nothing'}"
            )
        if part.function is not None:
            try:
                float(part.function(present))
            except Exception as error:
                raise InputError(
                    f'the objective "{part.name}" failed on the feedback {present}: {type(error).__name__}: {error}'
                ) from error

    def columns(self) -> list[str]:
        """Return unique names for columns of a table: "minus_cost"."""
        words = [_COLUMN.sub("_", name.replace("-", "minus_")).strip("_") for name in self.names]
        return [word if words.count(word) == 1 else f"{word}_{i}" for i, word in enumerate(words)]


def check_cost_known(objectives: Objectives, info: Mapping[str, Any], *, remedy: str) -> None:
    """Raise InputError if an objective needs a cost that an environment does not report."""
    if "cost" in objectives.signals and "cost" not in info:
        hint = did_you_mean("cost", [str(name) for name in info]) if info else "it has no entries"
        raise InputError(f'the objective "-cost" needs info["cost"], which this environment lacks ({hint}); {remedy}')


def _present(feedback: Feedback) -> dict[str, Any]:
    return {name: value for name, value in feedback.items() if value is not None}


def _value(part: _Part, feedback: Feedback) -> float:
    if part.function is None:
        return float(part.sign * feedback[part.signal or ""])
    return float(part.function(feedback))


def _part(objective: Objective, index: int) -> _Part:
    if isinstance(objective, str):
        if objective.lstrip("+") in ("cost", "-reward") or re.fullmatch(r"cost_\w+", objective):
            meant = "reward" if objective == "-reward" else f"-{objective}"
            raise InputError(f'objectives are maximised: did you mean "{meant}"? actually: "{objective}"')
        if not _NAMED.fullmatch(objective):
            hint = did_you_mean(objective, ["reward", "-cost", "-cost_NAME"])
            raise InputError(f'there is no objective "{objective}"; {hint}, or a function of the feedback')
        signal = objective.removeprefix("-")
        return _Part(objective, signal, -1.0 if objective.startswith("-") else 1.0)
    if isinstance(objective, tuple) and len(objective) == 2 and isinstance(objective[0], str):
        name, function = objective
    else:
        function = objective
        name = getattr(function, "__name__", "<>")
        name = f"objective_{index}" if name.startswith("<") else name
    if not callable(function) or not name:
        raise InputError(
            f"an objective must be a name, a function of the feedback, or (name, function), actually: {objective!r}"
        )
    return _Part(name, None, 1.0, function)
