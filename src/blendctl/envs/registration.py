"""Register the worlds with Gymnasium by id, without loading MuJoCo or compiled code."""

from __future__ import annotations

import gymnasium

from blendctl.envs.catalog import NAMES, add_task
from blendctl.envs.tasks import Task


def world_id(name: str) -> str:
    """Return a world's Gymnasium id.

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
            # The world itself raises on a step before a reset and truncates its episodes, and its snapshot holds the
            # count. Gymnasium's wrappers would hide `snapshot`, and `restore` would not restore their count.
            order_enforce=False,
            disable_env_checker=True,  # its checks of every step take as long as the physics
            kwargs={"task": name},
        )


def register_worlds() -> None:
    """Register the eighteen worlds of Safety Gym; repeated calls have no effect."""
    for name in NAMES:
        _register(name)


def register_task(name: str, task: Task) -> str:
    """Register your own task with Gymnasium and return its id, for `make` and `make_vec`.

    >>> from blendctl.envs import Goal, Hazards, Task
    >>> lava = Hazards(2, name="lava", radius=0.3, keepout=0.3)
    >>> register_task("PointLava", Task("Point", "goal", 1.5, (Goal(), Hazards(4), lava)))
    'blendctl/PointLava-v0'
    """
    add_task(name, task)
    _register(name)
    return world_id(name)
