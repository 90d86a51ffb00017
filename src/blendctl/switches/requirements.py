"""Check what methods need from the controllers: a cost critic, or context networks that predict far enough."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Box

from blendctl.controllers import Controller, Critic
from blendctl.controllers.base import can_predict
from blendctl.controllers.lookahead_file import read_lookahead
from blendctl.controllers.zoo import find_lookahead
from blendctl.errors import InputError

if TYPE_CHECKING:
    from blendctl.switches.methods import Method


def missing_requirement(
    method: Method, controllers: Sequence[Controller], *, lookahead: str | None = None, worlds: Any = None
) -> str | None:
    """Return in words what a method needs but the controllers or worlds lack; None if nothing is missing."""
    if worlds is not None:
        if method.on == "worlds" and not hasattr(worlds, "task"):
            return "a world of blendctl"
        if method.on == "copies" and not hasattr(worlds, "snapshot"):
            return "an environment that can be copied exactly (see blendctl check-env)"
        if method.on == "arrays" and not isinstance(worlds.single_action_space, Box):
            return "actions that are arrays of numbers"
    if method.needs == "critic" and not isinstance(controllers[0], Critic):
        return "a performant controller with a cost critic"
    if method.needs == "lookahead" and lookahead is not None:
        read_lookahead(lookahead).check_controllers(controllers)
    elif method.needs == "lookahead" and find_lookahead(controllers) is None:
        return "look-ahead networks for these controllers in their order"
    if method.needs == "context":
        for horizon in method.parameters["horizon"].values:
            if not all(_predicts(controller, int(horizon)) for controller in controllers):
                return f"context networks that predict {horizon:g} steps, of both controllers"
    return None


def _predicts(controller: Controller, horizon: int) -> bool:
    horizons = getattr(controller, "horizons", (1,))
    return can_predict(controller) and horizon in horizons


def expect_context_networks(controllers: Sequence[Controller], purpose: str) -> None:
    """Raise InputError if a controller has no context networks, which `purpose` needs."""
    for index, controller in enumerate(controllers):
        if not can_predict(controller):
            raise InputError(
                f"controller {index} has no context networks, which {purpose} needs; train them with "
                '"blendctl train-context", or leave this method out of --methods'
            )
