"""The context psi: what is known about the action of each controller before one of them acts."""

from blendctl.features.base import (
    BoundFeature,
    Custom,
    Feature,
    LookAheadInfo,
    OneHot,
    Scaled,
    Stack,
    StageForesight,
    UnitLength,
)
from blendctl.features.dial import Dial, DialPoint
from blendctl.features.lookahead import LookAhead
from blendctl.features.online import OnlineLinear
from blendctl.features.predictions import Critics, Predictions
from blendctl.features.registry import (
    as_feature,
    bind_feature,
    choose_feature,
    default_feature,
    feature_name,
    next_step_feature,
)
from blendctl.features.simulated import SimulatedLookAhead
from blendctl.features.simulators import Twin

__all__ = [
    "Feature",
    "BoundFeature",
    "LookAheadInfo",
    "StageForesight",
    "LookAhead",
    "SimulatedLookAhead",
    "Twin",
    "Dial",
    "DialPoint",
    "Predictions",
    "Critics",
    "OnlineLinear",
    "OneHot",
    "Custom",
    "Stack",
    "Scaled",
    "UnitLength",
    "as_feature",
    "bind_feature",
    "choose_feature",
    "default_feature",
    "feature_name",
    "next_step_feature",
]
