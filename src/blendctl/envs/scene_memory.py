"""The memory of a task's scenes: which kinds of objects its maps show."""

from __future__ import annotations

from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.objects import Buttons, PushBox
from blendctl.envs.tasks import Task
from blendctl.errors import InputError
from blendctl.scene_map import MappedKind, SceneMemory

MAPPED_ROBOTS = ("Point", "Car")  # whose way can be read from their sensors


def check_rebuildable(task: Task) -> None:
    """Raise InputError for a robot whose state cannot be read from its sensors."""
    if task.robot not in MAPPED_ROBOTS:
        raise InputError(f"worlds can be rebuilt from observations of the robots Point and Car, actually: {task.robot}")


def mapped_kinds(task: Task) -> tuple[MappedKind, ...]:
    """Return what the map of a task knows of its objects, in their order."""
    return tuple(
        MappedKind(
            kind.name,
            start=task.lidar_starts[kind.name],
            count=kind.count,
            motion=kind.motion,
            keepout=kind.keepout,
            travel=float(getattr(kind, "travel", 0.0)),
            pushed=isinstance(kind, PushBox),
            dark=isinstance(kind, Buttons),
        )
        for kind in task.objects
    )


def open_memory(task: Task, rows: int) -> SceneMemory:
    """Return an empty memory of so many worlds of a task."""
    robot = task.robot_spec
    return SceneMemory(
        mapped_kinds(task),
        rows,
        observation_size=task.observation_size,
        period=SUBSTEPS * robot.timestep,
        tilts=robot.free,
    )
