"""The table in docs/worlds.md is what the worlds are."""

import re
from pathlib import Path

import pytest

from blendctl.envs import NAMES, SingleWorld

PAGE = Path(__file__).parents[2] / "docs" / "worlds.md"
ROW = re.compile(r"^\| ((?:Goal|Push|Button)\d) \| ±([\d.]+) m \| (.+?) \| (\d+) \| (\d+) \| (.+?) \|$", re.MULTILINE)
ROWS = {task: rest for task, *rest in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def described(names):
    return ", ".join(names) or "none"


@pytest.mark.parametrize("name", NAMES)
def test_the_page_describes_the_world(name):
    robot, task = re.fullmatch(r"(Point|Car)(\w+)", name).groups()
    extents, objects, point, car, costs = ROWS[task]
    world = SingleWorld(name)
    kinds = [kind for kind in world.task.objects if kind.name != "goal"]
    labels = (f"{k.count} {k.name.removesuffix('s') if k.count == 1 else k.name}" for k in kinds)
    assert objects == described(labels)
    assert float(extents) == world.task.extents
    assert world.observation_space.shape == (int(point if robot == "Point" else car),)
    assert costs == described(world.task.cost_names)
