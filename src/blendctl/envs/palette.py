"""Choose a different colour for every kind of object in a task."""

from __future__ import annotations

from itertools import cycle

from blendctl.envs.glyphs import ORANGE, PURPLE, SKY, SLATE, VERMILION, YELLOW, Color
from blendctl.envs.tasks import Task

_SPARE = (PURPLE, ORANGE, SKY, YELLOW, VERMILION, SLATE)


def kind_colors(task: Task) -> dict[str, Color]:
    """Return each kind's colour by its name, in the order of the lidars; a colour already taken is replaced.

    >>> from blendctl.envs import Goal, Hazards, Task
    >>> kind_colors(Task("Point", "goal", 1.5, (Goal(), Hazards(4), Hazards(2, name="lava"))))
    {'goal': (0, 158, 115), 'hazards': (213, 94, 0), 'lava': (204, 121, 167)}
    """
    usual = {kind.name: kind.color for kind in task.sighted}
    spare = cycle([color for color in _SPARE if color not in usual.values()] or _SPARE)
    colors: dict[str, Color] = {}
    for name, color in usual.items():
        colors[name] = next(spare) if color in colors.values() else color
    return colors
