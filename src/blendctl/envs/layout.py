"""Place the robot, the objects and the goal: rejection sampling, compiled, in the reference's order of draws."""

from __future__ import annotations

import math

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.envs.compiled_task import BUTTON, CompiledTask
from blendctl.envs.mersenne import Position, Words, draw_below, draw_double

DRAWS_PER_OBJECT = 100
MAX_LAYOUTS = 10_000
DRAWS_PER_GOAL = 10_000


@compiled
def _draw_free_spot(
    plan: CompiledTask, xy: FloatArray, item: int, count: int, draws: int, key: Words, pos: Position
) -> bool:
    """Draw xy[item] until it keeps out of the first `count` items (itself excepted); return whether it does."""
    low = -plan.extents + plan.keepout[item]
    width = (plan.extents - plan.keepout[item]) - low
    for _ in range(draws):
        x = low + width * draw_double(key, pos)
        y = low + width * draw_double(key, pos)
        clear = True
        for other in range(count):
            if other == item:
                continue
            dx = x - xy[other, 0]
            dy = y - xy[other, 1]
            if math.sqrt(dx * dx + dy * dy) < plan.keepout[other] + plan.keepout[item]:
                clear = False
                break
        if clear:
            xy[item, 0] = x
            xy[item, 1] = y
            return True
    return False


@compiled
def draw_goal(plan: CompiledTask, xy: FloatArray, key: Words, pos: Position) -> int:
    """Draw a goal for the items at xy (items, 2), and write it there; return the goal button, or -1 without buttons.

    Returns -2 if there is no free spot; xy is then unchanged.
    """
    if plan.reward == BUTTON:
        button = draw_below(key, pos, plan.buttons)
        xy[plan.goal, 0] = xy[plan.button + button, 0]
        xy[plan.goal, 1] = xy[plan.button + button, 1]
        return button
    if _draw_free_spot(plan, xy, plan.goal, xy.shape[0], DRAWS_PER_GOAL, key, pos):
        return -1
    return -2


@compiled
def sample_layout(
    plan: CompiledTask, xy: FloatArray, rot: FloatArray, sampled_goal: FloatArray, key: Words, pos: Position
) -> int:
    """Fill xy (items, 2) and rot (items,); return the goal button, -1, or -2 if the objects do not fit.

    `sampled_goal` (2,) receives the first goal position, which is drawn again but keeps the others away.
    """
    items = xy.shape[0]
    for _ in range(MAX_LAYOUTS):
        placed = 0
        while placed < items and _draw_free_spot(plan, xy, placed, placed, DRAWS_PER_OBJECT, key, pos):
            placed += 1
        if placed == items:
            for item in range(items):
                rot[item] = 2.0 * np.pi * draw_double(key, pos)
            sampled_goal[0] = xy[plan.goal, 0]
            sampled_goal[1] = xy[plan.goal, 1]
            return draw_goal(plan, xy, key, pos)
    return -2
