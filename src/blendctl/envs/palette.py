"""Choose a colour for every kind of object: Okabe and Ito's, which colour-blind people tell apart.

Two kinds of the same sort, such as hazards that cost apart, get different colours.
"""

from __future__ import annotations

from itertools import cycle

from blendctl.envs.tasks import Buttons, Goal, Gremlins, Hazards, Objects, Pillars, PushBox, Task, Vases

__all__ = ["kind_colors", "ROBOT", "Color"]

Color = tuple[int, int, int]  # red, green, blue, 0 to 255

BLUE: Color = (0, 114, 178)
SKY: Color = (86, 180, 233)
GREEN: Color = (0, 158, 115)
YELLOW: Color = (240, 228, 66)
ORANGE: Color = (230, 159, 0)
VERMILION: Color = (213, 94, 0)
PURPLE: Color = (204, 121, 167)
SLATE: Color = (84, 92, 104)

ROBOT = BLUE
_OF_SORT: tuple[tuple[type[Objects], Color], ...] = (
    (Goal, GREEN),
    (Hazards, VERMILION),
    (Vases, SKY),
    (Pillars, SLATE),
    (Gremlins, PURPLE),
    (Buttons, ORANGE),
    (PushBox, YELLOW),
)
_SPARE = (PURPLE, ORANGE, SKY, YELLOW, VERMILION, SLATE)


def kind_colors(task: Task) -> dict[str, Color]:
    """Give each kind's colour by its name, in the order of the lidars.

    >>> from blendctl.envs.tasks import Goal, Hazards, Task
    >>> kind_colors(Task("Point", "goal", 1.5, (Goal(), Hazards(4), Hazards(2, name="lava"))))
    {'goal': (0, 158, 115), 'hazards': (213, 94, 0), 'lava': (204, 121, 167)}
    """
    usual = {kind.name: next(color for sort, color in _OF_SORT if isinstance(kind, sort)) for kind in task.sighted}
    spare = cycle([color for color in _SPARE if color not in usual.values()] or _SPARE)
    colors: dict[str, Color] = {}
    for name, color in usual.items():
        colors[name] = next(spare) if color in colors.values() else color
    return colors
