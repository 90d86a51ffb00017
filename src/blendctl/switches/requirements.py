"""Tell which methods given controllers cannot serve: no critic, no context networks, other horizons."""

from __future__ import annotations

from collections.abc import Sequence

from blendctl.controllers import Controller, Critic
from blendctl.features.predictions import can_predict
from blendctl.switches.methods import Method

__all__ = ["missing_requirement"]


def missing_requirement(method: Method, controllers: Sequence[Controller]) -> str | None:
    """Say what a method needs that the controllers do not bring; None if they bring all."""
    if method.needs == "critic" and not isinstance(controllers[0], Critic):
        return "a performant controller with a cost critic"
    if method.needs == "context":
        for horizon in method.parameters["horizon"].values:
            if not all(_predicts(controller, int(horizon)) for controller in controllers):
                return f"context networks that predict {horizon:g} steps, of both controllers"
    return None


def _predicts(controller: Controller, horizon: int) -> bool:
    horizons = getattr(getattr(controller, "context", None), "horizons", (1,))
    return can_predict(controller) and horizon in horizons
