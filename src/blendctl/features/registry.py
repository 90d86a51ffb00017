"""The features by name, and how a declaration becomes a feature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from blendctl.controllers.base import Controller, can_predict
from blendctl.controllers.zoo import find_lookahead
from blendctl.errors import InputError, did_you_mean
from blendctl.features.base import BoundFeature, Feature, OneHot, Stack
from blendctl.features.lookahead import LookAhead
from blendctl.features.online import OnlineLinear
from blendctl.features.predictions import Critics, NextStepPredictions, Predictions
from blendctl.features.simulated import SimulatedLookAhead

FEATURES: dict[str, type[Any]] = {
    "lookahead": LookAhead,
    "simulated": SimulatedLookAhead,
    "predictions": Predictions,
    "critics": Critics,
    "online": OnlineLinear,
    "one-hot": OneHot,
}

LOOKING_AHEAD = LookAhead, SimulatedLookAhead  # the features that have a dial
OBJECTIVES = ("reward", "-cost")  # of look-ahead networks


def default_feature(controllers: Sequence[Any], *, objectives: Sequence[str] = OBJECTIVES) -> Feature:
    """Return look-ahead if there are networks for these controllers in this order, else `next_step_feature`."""
    network = find_lookahead(controllers) if tuple(objectives) == OBJECTIVES else None
    return next_step_feature(controllers) if network is None else LookAhead(network)


def next_step_feature(controllers: Sequence[object]) -> Feature:
    """Return the paper's predictions if every controller has context networks, else the online model."""
    return Predictions() if all(can_predict(c) for c in controllers) else Stack(OneHot(), OnlineLinear())


def as_feature(declared: Any, controllers: Sequence[Any], *, objectives: Sequence[str] = OBJECTIVES) -> Feature:
    """Return the declared feature: None (`default_feature`), a name, a feature, or a list of these to stack.

    >>> as_feature("one-hot", [])
    OneHot()
    """
    if declared is None:
        return default_feature(controllers, objectives=objectives)
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


def choose_feature(
    declared: Any,
    controllers: Sequence[Controller],
    *,
    objectives: Sequence[str] = OBJECTIVES,
    prefer: float | None = None,
    cost_budget: float | None = None,
) -> Feature:
    """Return the declared feature, see `as_feature`, with the setting of its dial, which needs look-ahead."""
    dialled = prefer is not None or cost_budget is not None
    feature = LookAhead() if declared is None and dialled else as_feature(declared, controllers, objectives=objectives)
    if isinstance(feature, LOOKING_AHEAD) and tuple(objectives) not in (OBJECTIVES, OBJECTIVES[:1]):
        raise InputError(f"look-ahead needs the objectives {', '.join(OBJECTIVES)}, actually: {', '.join(objectives)}")
    budgets = cost_budget, getattr(feature, "cost_budget", None)
    if "-cost" not in objectives and any(budget is not None for budget in budgets):
        raise InputError(
            f"a cost budget needs the objectives {', '.join(OBJECTIVES)}, actually: {', '.join(objectives)}"
        )
    if not dialled:
        return feature
    if not isinstance(feature, LOOKING_AHEAD):
        raise InputError(
            f'prefer and cost_budget need features="lookahead" or "simulated", actually: features={declared!r}'
        )
    return replace(feature, prefer=prefer, cost_budget=cost_budget)


def feature_name(feature: Feature) -> str:
    """Return a feature in words: its name, and the setting of its dial.

    >>> feature_name(Stack(OneHot(), OnlineLinear())), feature_name(LookAhead(cost_budget=25.0))
    ('one-hot + online', 'lookahead, cost budget 25')
    """
    if isinstance(feature, Stack):
        return " + ".join(feature_name(part) for part in feature.parts)
    name = next((name for name, kind in FEATURES.items() if type(feature) is kind), type(feature).__name__)
    return f"{name}, {feature.setting}" if isinstance(feature, LOOKING_AHEAD) else name


def bind_feature(declared: Any, controllers: Sequence[Controller], *, objectives: Sequence[str]) -> BoundFeature:
    """Return the declared feature, see `as_feature`, bound to its controllers."""
    feature = choose_feature(declared, controllers, objectives=objectives)
    bound = feature.bind(controllers, objectives=len(objectives))
    if not isinstance(bound, BoundFeature):
        raise InputError(
            f"bind must return a BoundFeature, actually: {type(bound).__name__}; "
            "make it a subclass of blendctl.features.BoundFeature"
        )
    if isinstance(bound, NextStepPredictions) and tuple(objectives) != OBJECTIVES:
        return NextStepPredictions(bound.predict)  # no prior: these are not the objectives that it predicts
    return bound
