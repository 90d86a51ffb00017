"""Describe a world for the report page: its kinds of objects and its robot, with sizes, colours and glyphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blendctl.envs.compiled_task import SUBSTEPS, CompiledTask
from blendctl.envs.glyphs import glyph_json
from blendctl.envs.objects import Buttons, Goal
from blendctl.envs.palette import kind_colors
from blendctl.envs.tasks import Task


@dataclass(frozen=True)
class Item:
    """One object of a world, and where its pose is stored."""

    kind: int  # index into the kinds of `describe_world`
    label: str  # of its columns: "vases_0"
    number: int  # its number in the world's arrays; the robot is 0
    qpos_at: int  # index of its pose in qpos, -1 if it is fixed


def describe_world(task: Task, plan: CompiledTask) -> dict[str, Any]:
    """Return the data with which the page draws a task, as JSON data; lengths are in metres."""
    colors = kind_colors(task)
    kinds = [
        {
            "name": kind.name,
            "count": kind.count,
            "size": kind.size,
            "color": list(colors[kind.name]),
            "costs": kind.constrained,
            "layer": kind.layer,
            "glyph": glyph_json(kind.glyph),
            "goal": isinstance(kind, Goal),  # its place is in the columns goal_x, goal_y
            "lit": isinstance(kind, Buttons),  # the column "button" says which one is lit
        }
        for kind in task.objects
    ]
    return {
        "robot": {"name": task.robot, "glyph": glyph_json(task.robot_spec.glyph)},
        "extents": float(task.extents),
        "step_seconds": SUBSTEPS * float(plan.timestep),
        "max_steps": int(plan.max_steps),
        "kinds": kinds,
    }


def items_of(task: Task, plan: CompiledTask) -> list[Item]:
    """List the objects in the order of the world's arrays."""
    labels = [(index, f"{kind.name}_{i}") for index, kind in enumerate(task.objects) for i in range(kind.count)]
    return [Item(index, label, n, int(plan.qpos_at[n])) for n, (index, label) in enumerate(labels, start=1)]
