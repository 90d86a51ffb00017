"""The colours of all kinds of objects differ."""

from itertools import combinations

import numpy as np
import pytest

from blendctl.envs import NAMES, Goal, Hazards, Task, find_task
from blendctl.envs.glyphs import BLUE as ROBOT
from blendctl.envs.palette import kind_colors

# what a deuteranope's and a protanope's eyes make of linear red, green, blue (Vienot, Brettel and Mollon 1999)
SIGHTS = {
    "usual": np.eye(3),
    "deuteranopia": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
    "protanopia": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
}


def seen(color, sight):
    linear = (np.array(color) / 255.0) ** 2.2
    return 255.0 * np.clip(SIGHTS[sight] @ linear, 0.0, 1.0) ** (1 / 2.2)


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("name", NAMES)
def test_the_colours_of_a_world_differ_for_every_eye(name, sight):
    colors = [*kind_colors(find_task(name)).values(), ROBOT]
    for one, other in combinations(colors, 2):
        assert np.abs(seen(one, sight) - seen(other, sight)).max() > 25, (one, other)


def test_kinds_of_the_same_sort_get_colours_of_their_own():
    kinds = tuple(Hazards(1, name=f"hazards{n}") for n in range(5))
    colors = kind_colors(Task("Point", "goal", 2.0, (Goal(), *kinds)))
    assert len(set(colors.values())) == 6


def test_more_kinds_than_colours_are_still_drawn():
    kinds = tuple(Hazards(1, name=f"hazards{n}") for n in range(12))
    assert len(kind_colors(Task("Point", "goal", 3.0, (Goal(), *kinds)))) == 13
