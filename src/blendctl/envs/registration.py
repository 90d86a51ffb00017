"""Make the worlds known to Gymnasium by id, without loading MuJoCo or compiled code."""

from __future__ import annotations

import gymnasium

from blendctl.envs.catalog import NAMES, add_task
from blendctl.envs.tasks import Task


def world_id(name: str) -> str:
    """Write a world's Gymnasium id.

    >>> world_id("PointGoal1")
    'blendctl/PointGoal1-v0'
    """
    return f"blendctl/{name}-v0"


def _register(name: str) -> None:
    if world_id(name) not in gymnasium.registry:
        gymnasium.register(
            world_id(name),
            entry_point="blendctl.envs.single:SingleWorld",
            vector_entry_point="blendctl.envs.vector:VectorWorld",
            # The world itself refuses a step before a reset and truncates its episodes, and its snapshot holds the
            # count: Gymnasium's wrappers would hide `snapshot`, and their count would not come back with `restore`.
            order_enforce=False,
            disable_env_checker=True,  # its checks of every step cost as much as the physics
            kwargs={"task": name},
        )


def register_worlds() -> None:
    """Register the eighteen; calling it again changes nothing."""
    for name in NAMES:
        _register(name)


def register_task(name: str, task: Task) -> str:
    """Register a task of your own and return its id; it then runs in every form.

    >>> from blendctl.envs import Goal, Hazards, Task
    >>> lava = Hazards(2, name="lava", radius=0.3, keepout=0.3)
    >>> register_task("PointLava", Task("Point", "goal", 1.5, (Goal(), Hazards(4), lava)))
    'blendctl/PointLava-v0'
    """
    add_task(name, task)
    _register(name)
    return world_id(name)
