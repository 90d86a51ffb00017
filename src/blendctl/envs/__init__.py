"""Safety Gym on today's MuJoCo and Gymnasium: worlds by id, by name, or declared by you.

Importing this registers the ids with Gymnasium; MuJoCo and the compiled code load when a world is made.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from blendctl.envs.catalog import NAMES, find_task, open_task, task_names
from blendctl.envs.glyphs import Shape
from blendctl.envs.objects import Buttons, Goal, Gremlins, Hazards, Objects, Pillars, PushBox, Vases
from blendctl.envs.registration import register_task, register_worlds, world_id
from blendctl.envs.robots import Motion, Robot, Steering, add_robot
from blendctl.envs.tasks import Task

if TYPE_CHECKING:
    from blendctl.envs.scene import Body, Scene
    from blendctl.envs.single import SingleWorld
    from blendctl.envs.vector import VectorWorld
    from blendctl.envs.view import View
    from blendctl.envs.wrappers import CostInStep

__all__ = [
    "VectorWorld", "SingleWorld", "CostInStep", "View", "Scene", "Body",
    "Task", "Objects", "Goal", "Hazards", "Pillars", "Buttons", "Vases", "PushBox", "Gremlins",
    "Robot", "Steering", "Motion", "Shape", "add_robot",
    "NAMES", "find_task", "open_task", "task_names", "register_task", "register_worlds", "world_id",
]  # fmt: skip

_LATE = {
    "VectorWorld": "blendctl.envs.vector",
    "SingleWorld": "blendctl.envs.single",
    "CostInStep": "blendctl.envs.wrappers",
    "View": "blendctl.envs.view",
    "Scene": "blendctl.envs.scene",
    "Body": "blendctl.envs.scene",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


register_worlds()
