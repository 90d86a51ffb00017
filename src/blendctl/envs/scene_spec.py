"""Describe a world for those who draw it from above: its kinds of objects, their sizes and colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blendctl.envs.compiled_task import SUBSTEPS, Plan
from blendctl.envs.palette import kind_colors
from blendctl.envs.tasks import Buttons, Goal, Gremlins, Hazards, Objects, Pillars, PushBox, Task, Vases

__all__ = ["Item", "describe_world", "items_of"]

# the names by which the page knows how to draw them; what lies on the floor first
_SORTS = {
    Hazards: "hazard",
    Goal: "goal",
    Buttons: "button",
    Vases: "vase",
    PushBox: "push_box",
    Gremlins: "gremlin",
    Pillars: "pillar",
}


@dataclass(frozen=True)
class Item:
    """One object of a world, and where its pose is found."""

    kind: int  # index into the kinds of `describe_world`
    label: str  # of its columns: "vases_0"
    number: int  # its number in the world's arrays, the robot is 0
    qpos_at: int  # where its pose starts in qpos, -1 if it stands still


def describe_world(task: Task, plan: Plan) -> dict[str, Any]:
    """Give what a drawing needs to know of a task, as JSON data; lengths are in metres."""
    colors = kind_colors(task)
    kinds = [
        {
            "name": kind.name,
            "sort": next(name for sort, name in _SORTS.items() if isinstance(kind, sort)),
            "count": kind.count,
            "size": _size(kind),
            "color": list(colors[kind.name]),
            "costs": kind.constrained,
        }
        for kind in task.objects
    ]
    return {
        "robot": task.robot,
        "extents": float(task.extents),
        "step_seconds": SUBSTEPS * float(plan.timestep),
        "max_steps": int(plan.max_steps),
        "kinds": kinds,
    }


def _size(kind: Objects) -> float:
    """Give the radius, or half the edge."""
    return float(kind.radius if isinstance(kind, Goal | Hazards | Pillars | Buttons) else getattr(kind, "half", 0.0))


def items_of(task: Task, plan: Plan) -> list[Item]:
    """List the objects in the order of the world's arrays."""
    items: list[Item] = []
    for index, kind in enumerate(task.objects):
        for i in range(kind.count):
            number = len(items) + 1
            items.append(Item(index, f"{kind.name}_{i}", number, int(plan.qpos_at[number])))
    return items
