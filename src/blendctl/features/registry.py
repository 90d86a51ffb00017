"""The features by name, and how a declaration becomes a feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blendctl.controllers.base import Controller
from blendctl.errors import InputError, did_you_mean
from blendctl.features.base import BoundFeature, Feature, OneHot, Stack
from blendctl.features.lookahead import LookAhead
from blendctl.features.online import OnlineLinear
from blendctl.features.predictions import Critics, Predictions, can_predict

FEATURES: dict[str, type[Any]] = {
    "lookahead": LookAhead,
    "predictions": Predictions,
    "critics": Critics,
    "online": OnlineLinear,
    "one-hot": OneHot,
}


def default_feature(controllers: Sequence[object]) -> Feature:
    """Return the paper's predictions if every controller has context networks, else the online model."""
    return Predictions() if all(can_predict(c) for c in controllers) else Stack(OneHot(), OnlineLinear())


def as_feature(declared: Any, controllers: Sequence[object]) -> Feature:
    """Return the declared feature: None (the default), a name, a feature, or a list of these to stack.

    >>> as_feature("one-hot", [])
    OneHot()
    """
    if declared is None:
        return default_feature(controllers)
    if isinstance(declared, str):
        if declared not in FEATURES:
            raise InputError(f'there is no feature "{declared}"; {did_you_mean(declared, FEATURES)}')
        made = FEATURES[declared]()
        assert isinstance(made, Feature)
        return made
    if isinstance(declared, list | tuple):
        return Stack(*(as_feature(part, controllers) for part in declared))
    if isinstance(declared, Feature):
        return declared
    if callable(declared):
        raise InputError(
            "a function needs its size: features.Custom(function, size=...), where function(observation, action, arm) "
            "returns `size` numbers"
        )
    raise InputError(
        f"features must be a name ({', '.join(FEATURES)}), a feature of blendctl.features, or a list of them, "
        f"actually: {declared!r}"
    )


def bind_feature(
    declared: Any,
    controllers: Sequence[Controller],
    *,
    objectives: int,
    prefer: float | None = None,
    cost_budget: float | None = None,
) -> BoundFeature:
    """Return the declared feature, see `as_feature`, bound to its controllers; a dial setting needs look-ahead."""
    if prefer is not None or cost_budget is not None:
        feature = LookAhead() if declared is None else as_feature(declared, controllers)
        if not isinstance(feature, LookAhead):
            raise InputError(f'prefer and cost_budget need features="lookahead", actually: features={declared!r}')
        declared = replace(feature, prefer=prefer, cost_budget=cost_budget)
    bound = as_feature(declared, controllers).bind(controllers, objectives=objectives)
    if not isinstance(bound, BoundFeature):
        raise InputError(
            f"bind must return a BoundFeature, actually: {type(bound).__name__}; "
            "make it a subclass of blendctl.features.BoundFeature"
        )
    return bound
