"""From what a user writes to a feature: a name, a feature, several of them, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blendctl.errors import InputError, did_you_mean
from blendctl.features.base import Feature, OneHot, Stack
from blendctl.features.online import OnlineLinear
from blendctl.features.predictions import Critics, Predictions, can_predict

__all__ = ["as_feature", "default_feature", "NAMES"]

NAMES: dict[str, type[Any]] = {
    "predictions": Predictions,
    "critics": Critics,
    "online": OnlineLinear,
    "one-hot": OneHot,
}


def default_feature(controllers: Sequence[object]) -> Feature:
    """Choose the paper's predictions if every controller brings context networks, else the online model."""
    return Predictions() if all(can_predict(c) for c in controllers) else Stack(OneHot(), OnlineLinear())


def as_feature(declared: Any, controllers: Sequence[object]) -> Feature:
    """Give the feature that was declared: None, a name, a feature, or a list of these to stack.

    >>> as_feature("one-hot", [])
    OneHot()
    """
    if declared is None:
        return default_feature(controllers)
    if isinstance(declared, str):
        if declared not in NAMES:
            raise InputError(f'there is no feature "{declared}"; {did_you_mean(declared, NAMES)}')
        made = NAMES[declared]()
        assert isinstance(made, Feature)
        return made
    if isinstance(declared, list | tuple):
        return Stack(*(as_feature(part, controllers) for part in declared))
    if isinstance(declared, Feature):
        return declared
    if callable(declared):
        raise InputError(
            "a function of yours needs its size: features.Custom(function, size=...), where "
            "function(observation, action, arm) gives `size` numbers"
        )
    raise InputError(
        f"features must be a name ({', '.join(NAMES)}), a feature of blendctl.features, or a list of them, "
        f"actually: {declared!r}"
    )
