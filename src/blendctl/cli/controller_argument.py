"""Open the controller that a command names."""

from __future__ import annotations

import click

from blendctl.controllers import Controller, RemoteController
from blendctl.controllers.resolve import open_controller

REMOTE_DEADLINE = 5.0  # s; longer than on a robot, because nothing waits for the action


def open_named_controller(name: str, *, world: str | None) -> Controller:
    """Open a controller; close a remote one when the command ends."""
    controller = open_controller(name, world=world, deadline=REMOTE_DEADLINE)
    if isinstance(controller, RemoteController):
        click.get_current_context().call_on_close(controller.close)
    return controller
