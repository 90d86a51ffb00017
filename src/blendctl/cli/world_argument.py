"""Find the world that a command names: one of the known ones, or a task in a Python file of the user's."""

from __future__ import annotations

import runpy
from pathlib import Path

from blendctl.envs.catalog import find_task, short_name
from blendctl.envs.tasks import Task
from blendctl.errors import InputError, did_you_mean

__all__ = ["name_and_task"]


def name_and_task(world: str) -> tuple[str, Task]:
    """Return a short name and the task of a world such as PointGoal1, or of volcano.py:volcano, which is run.

    >>> name_and_task("blendctl/PointGoal1-v0")[0]
    'PointGoal1'
    """
    file, colon, name = world.rpartition(":")
    if not colon or not file.endswith(".py"):
        return short_name(world), find_task(world)
    if not Path(file).is_file():
        raise InputError(f'there is no file "{file}"; expected a world\'s name, or FILE.py:TASK')
    found = runpy.run_path(file)
    tasks = {key: value for key, value in found.items() if isinstance(value, Task)}
    if name not in tasks:
        raise InputError(f'{file} has no task "{name}"; {did_you_mean(name, tasks)}')
    return name, tasks[name]
