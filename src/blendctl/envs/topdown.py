"""Draw a world from above: the robot with its heading, every object, and what the lidars tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from blendctl.envs.drawing import Canvas, Drawing, Picture, Point2, develop
from blendctl.envs.palette import ROBOT, Color, kind_colors
from blendctl.envs.scene import Body, Scene
from blendctl.envs.tasks import Buttons, Goal, Gremlins, Hazards, Pillars, PushBox, Task, Vases

__all__ = ["TopDown"]

MARGIN = 0.3  # m, kept free around the square and around the robot
WIDEST = 2.0  # how far the view zooms out after a robot that leaves, before it follows
GRID = 0.5  # m

FLOOR: Color = (232, 230, 225)
SQUARE: Color = (250, 249, 246)
LINES: Color = (216, 214, 208)
INK: Color = (34, 40, 49)
WHITE: Color = (255, 255, 255)

# what lies on the floor first, what stands above it last
_LAYERS = (Hazards, Goal, Buttons, Vases, PushBox, Gremlins, Pillars)


class TopDown:
    """Draw the scenes of one task, `width` by `height` pixels."""

    def __init__(self, task: Task, *, width: int, height: int, lidar: bool = True) -> None:
        self.task = task
        self.colors = kind_colors(task)
        self._size = (width, height)
        self._canvas: Canvas = np.empty((height, width, 3), np.float32)
        self._lidar = lidar
        self._floor: tuple[Point2, float, Canvas] | None = None

    def draw(self, scene: Scene, *, trail: Sequence[Point2] = ()) -> Picture:
        """Draw a scene as (height, width, 3) bytes of red, green, blue; `trail` is where the robot was."""
        center, half = _look(scene, self.task.extents + MARGIN)
        scale = 0.5 * min(self._size) / half
        canvas = self._canvas
        canvas[:] = self._bare_floor(center, scale)
        drawing = self._blank(center, scale)
        _draw_trail(drawing, trail)
        for body in sorted(scene.bodies, key=lambda body: _layer(body)):
            _DRAW[_LAYERS[_layer(body)]](drawing, body, self.colors[body.kind.name])
        if self._lidar:
            _draw_lidars(drawing, scene, self.colors)
        _draw_robot(drawing, scene)
        self._point_to_goal(drawing, scene, center)
        drawing.paint(canvas)
        return develop(canvas)

    def _point_to_goal(self, drawing: Drawing, scene: Scene, center: Point2) -> None:
        """Put an arrow at the picture's edge towards a goal that is out of sight."""
        goal = next(body for body in scene.bodies if isinstance(body.kind, Goal))
        away = (goal.x - center[0], goal.y - center[1])
        room = [0.5 * pixels / drawing.scale - 0.15 for pixels in self._size]
        excess = max(abs(away[0]) / room[0], abs(away[1]) / room[1])
        if excess > 1.0 + goal.size / min(room):
            at = (center[0] + away[0] / excess, center[1] + away[1] / excess)
            turn = math.atan2(away[1], away[0])
            tip, left, right = (_place(at, turn, *p) for p in ((0.1, 0.0), (-0.06, 0.08), (-0.06, -0.08)))
            drawing.triangle((tip, left, right), self.colors[goal.kind.name], corner=0.015)

    def _blank(self, center: Point2, scale: float) -> Drawing:
        return Drawing(center=center, scale=scale, width=self._size[0], height=self._size[1])

    def _bare_floor(self, center: Point2, scale: float) -> Canvas:
        """Paint the floor, its grid and the square in which things start; it seldom changes, so it is kept."""
        if self._floor is not None and self._floor[:2] == (center, scale):
            return self._floor[2]
        width, height = self._size
        canvas = np.empty((height, width, 3), np.float32)
        canvas[:] = FLOOR
        drawing, extents = self._blank(center, scale), self.task.extents
        drawing.box((0.0, 0.0), (extents, extents), color=SQUARE, corner=0.05)
        thin = 1.0 / scale
        reach = 0.5 * max(self._size) / scale
        for axis in (0, 1):
            first = math.ceil((center[axis] - reach) / GRID)
            last = math.floor((center[axis] + reach) / GRID)
            for n in range(first, last + 1):
                low, high = center[1 - axis] - reach, center[1 - axis] + reach
                ends = [(n * GRID, low), (n * GRID, high)] if axis == 0 else [(low, n * GRID), (high, n * GRID)]
                drawing.line(*ends, width=thin, color=LINES, alpha=0.6)
        drawing.box((0.0, 0.0), (extents, extents), color=LINES, corner=0.05, outline=1.5 * thin)
        drawing.paint(canvas)
        self._floor = (center, scale, canvas)
        return canvas


def _look(scene: Scene, half: float) -> tuple[Point2, float]:
    """Choose centre and half-width of the view: the whole square, and always the robot.

    A robot that leaves the square is followed by zooming out, and from `WIDEST` on by moving along.
    """
    x, y = (value if math.isfinite(value) else 0.0 for value in (scene.x, scene.y))
    free = 2.0 * MARGIN
    wide = min(max(half, max(abs(x), abs(y)) + free), WIDEST * half)
    room = wide - free

    def shift(value: float) -> float:
        return math.copysign(max(0.0, abs(value) - room), value)

    return (shift(x), shift(y)), wide


def _layer(body: Body) -> int:
    return next(i for i, sort in enumerate(_LAYERS) if isinstance(body.kind, sort))


def _turned(body: Body, x: float, y: float) -> Point2:
    return _place((body.x, body.y), body.rot, x, y)


def _place(origin: Point2, turn: float, x: float, y: float) -> Point2:
    """Turn a point of a body's own frame into the world's."""
    cosine, sine = math.cos(turn), math.sin(turn)
    return origin[0] + cosine * x - sine * y, origin[1] + sine * x + cosine * y


def _mix(color: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(color, other, strict=True))
    return red, green, blue


def _shadow(drawing: Drawing, body: Body, reach: float) -> None:
    drawing.disc((body.x + 0.02, body.y - 0.03), reach, color=INK, alpha=0.28, soft=0.12)


def _draw_hazard(drawing: Drawing, body: Body, color: Color) -> None:
    at = (body.x, body.y)
    drawing.disc(at, body.size, color=color, alpha=0.28)
    drawing.disc(at, body.size - 0.01, color=color, alpha=0.9, outline=0.02)
    drawing.disc(at, 0.55 * body.size, color=color, alpha=0.35)


def _draw_goal(drawing: Drawing, body: Body, color: Color) -> None:
    at = (body.x, body.y)
    drawing.disc(at, body.size, color=color, alpha=0.25, soft=0.14)
    drawing.disc(at, body.size - 0.0125, color=color, outline=0.025)
    drawing.disc(at, 0.58 * body.size, color=color, alpha=0.8, outline=0.02)
    drawing.disc(at, 0.22 * body.size, color=color)


def _draw_button(drawing: Drawing, body: Body, color: Color) -> None:
    at = (body.x, body.y)
    _shadow(drawing, body, 1.05 * body.size)
    drawing.disc(at, body.size, color=_mix(color, INK, 0.25))
    drawing.disc(at, 0.82 * body.size, color=color)
    drawing.disc(
        (body.x - 0.25 * body.size, body.y + 0.3 * body.size),
        0.3 * body.size,
        color=WHITE,
        alpha=0.55,
        soft=0.05,
    )
    if body.lit:
        drawing.disc(at, 1.25 * body.size, color=INK, outline=0.025)


def _draw_vase(drawing: Drawing, body: Body, color: Color) -> None:
    at, half = (body.x, body.y), body.size
    _shadow(drawing, body, 1.15 * half)
    drawing.box(at, (half, half), color=_mix(color, INK, 0.3), turn=body.rot, corner=0.02)
    drawing.box(at, (0.86 * half, 0.86 * half), color=color, turn=body.rot, corner=0.015)
    drawing.disc(at, 0.5 * half, color=_mix(color, WHITE, 0.55))
    drawing.disc(at, 0.3 * half, color=_mix(color, INK, 0.55))


def _draw_push_box(drawing: Drawing, body: Body, color: Color) -> None:
    half, dark = body.size, _mix(color, INK, 0.45)
    drawing.box(
        (body.x + 0.02, body.y - 0.03),
        (1.5 * half, 1.5 * half),
        color=INK,
        turn=body.rot,
        alpha=0.25,
        soft=0.12,
    )
    for grow, shade in ((0.012, dark), (0.0, color)):
        for x, y in ((1, 1), (-1, 1), (1, -1), (-1, -1)):
            at, side = _turned(body, x * half, y * half), 0.5 * half + grow
            drawing.box(at, (side, side), color=shade, turn=body.rot, corner=0.02)
        drawing.box((body.x, body.y), (half + grow, half + grow), color=shade, turn=body.rot, corner=0.01)
    inner = 0.62 * half
    drawing.box((body.x, body.y), (inner, inner), color=dark, turn=body.rot, corner=0.02, outline=0.015, alpha=0.8)
    for x, y in ((1, 1), (-1, 1)):
        ends = _turned(body, -x * inner, -y * inner), _turned(body, x * inner, y * inner)
        drawing.line(*ends, width=0.015, color=dark, alpha=0.8)


def _draw_gremlin(drawing: Drawing, body: Body, color: Color) -> None:
    at, half = (body.x, body.y), body.size
    drawing.disc((body.x + 0.04, body.y - 0.06), 1.15 * half, color=INK, alpha=0.3, soft=0.14)  # it hovers
    drawing.box(at, (half, half), color=_mix(color, INK, 0.45), turn=body.rot, corner=0.035)
    drawing.box(at, (0.86 * half, 0.86 * half), color=color, turn=body.rot, corner=0.03)
    for side in (-0.38, 0.38):
        drawing.disc(_turned(body, side * half, 0.2 * half), 0.26 * half, color=WHITE)
        drawing.disc(_turned(body, side * half, 0.26 * half), 0.12 * half, color=INK)


def _draw_pillar(drawing: Drawing, body: Body, color: Color) -> None:
    at = (body.x, body.y)
    drawing.disc((body.x + 0.05, body.y - 0.07), 1.02 * body.size, color=INK, alpha=0.35, soft=0.14)
    drawing.disc(at, body.size, color=_mix(color, INK, 0.5))
    drawing.disc(at, 0.9 * body.size, color=color)
    drawing.disc(at, 0.6 * body.size, color=_mix(color, WHITE, 0.18))


_DRAW = {
    Hazards: _draw_hazard,
    Goal: _draw_goal,
    Buttons: _draw_button,
    Vases: _draw_vase,
    PushBox: _draw_push_box,
    Gremlins: _draw_gremlin,
    Pillars: _draw_pillar,
}


def _draw_lidars(drawing: Drawing, scene: Scene, colors: dict[str, Color]) -> None:
    """Put a ring per kind around the robot, a piece per bin, the stronger the nearer the object."""
    at = (scene.x, scene.y)
    turn = math.atan2(scene.rotation[1, 0], scene.rotation[0, 0])  # bins start at the body's x axis
    for ring, (name, values) in enumerate(scene.lidars.items()):
        radius, step = 0.26 + 0.05 * ring, 2.0 * math.pi / len(values)
        drawing.disc(at, radius, color=INK, alpha=0.07, outline=0.034)
        for piece, value in enumerate(values.tolist()):
            if value > 0.0:
                ends = (_place(at, turn + (piece + share) * step, radius, 0.0) for share in (0.14, 0.86))
                drawing.line(*ends, width=0.032, color=colors[name], alpha=0.1 + 0.9 * value)


def _draw_trail(drawing: Drawing, places: Sequence[Point2]) -> None:
    for age, ((x0, y0), (x1, y1)) in enumerate(pairwise(places)):
        # boxes, because the round ends of lines would overlap and show as beads
        half = (0.5 * math.hypot(x1 - x0, y1 - y0), 0.015)
        turn, alpha = math.atan2(y1 - y0, x1 - x0), 0.05 + 0.4 * (age + 1) / len(places)
        drawing.box((0.5 * (x0 + x1), 0.5 * (y0 + y1)), half, color=ROBOT, turn=turn, alpha=alpha)


def _draw_robot(drawing: Drawing, scene: Scene) -> None:
    if scene.task.robot == "Point":
        _draw_point(drawing, scene)
    else:
        _draw_car(drawing, scene)


def _draw_point(drawing: Drawing, scene: Scene) -> None:
    at, turn = (scene.x, scene.y), scene.heading

    def part(x: float, y: float) -> Point2:
        return _place(at, turn, x, y)

    drawing.disc((scene.x + 0.02, scene.y - 0.03), 0.12, color=INK, alpha=0.35, soft=0.12)
    for grow, shade in ((0.02, WHITE), (0.0, ROBOT)):
        drawing.disc(at, 0.1 + grow, color=shade)
        drawing.box(part(0.1, 0.0), (0.05 + grow, 0.05 + grow), color=shade, turn=turn, corner=0.01 + grow)
    drawing.triangle((part(0.13, 0.0), part(-0.01, 0.045), part(-0.01, -0.045)), WHITE, corner=0.006)


def _draw_car(drawing: Drawing, scene: Scene) -> None:
    """Draw the car; its front is where y is negative in its own frame."""
    at, turn = (scene.x, scene.y), scene.heading + 0.5 * math.pi
    tyre = _mix(INK, ROBOT, 0.15)

    def box(x: float, y: float, half: Point2, shade: Color, corner: float = 0.01) -> None:
        drawing.box(_place(at, turn, x, y), half, color=shade, turn=turn, corner=corner)

    drawing.box(
        (scene.x + 0.02, scene.y - 0.03),
        (0.13, 0.17),
        color=INK,
        turn=turn,
        corner=0.05,
        alpha=0.35,
        soft=0.12,
    )
    for grow, shade, wheel in ((0.018, WHITE, WHITE), (0.0, ROBOT, tyre)):
        box(0.0, 0.15, (0.1 + grow, 0.01 + grow), shade)
        box(0.0, 0.125, (0.01 + grow, 0.025 + grow), shade)
        box(0.0, -0.165, (0.05 + grow, 0.01 + grow), shade)
        box(0.0, -0.13, (0.05 + grow, 0.03 + grow), shade)
        for side in (-1, 1):
            box(side * 0.13, 0.1, (0.025 + grow, 0.05 + grow), wheel)
        box(0.0, 0.0, (0.1 + grow, 0.1 + grow), shade, 0.02)
    tip, left, right = ((0.0, -0.1), (-0.05, 0.02), (0.05, 0.02))
    points = (_place(at, turn, *tip), _place(at, turn, *left), _place(at, turn, *right))
    drawing.triangle(points, WHITE, corner=0.008)
    box(0.0, 0.065, (0.06, 0.012), _mix(ROBOT, INK, 0.4))
