"""Draw a world from above: the robot with its heading, every object, and the lidar readings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from blendctl.envs.drawing import Canvas, Drawing, Paint, Picture, develop
from blendctl.envs.glyphs import INK, WHITE, Color, Glyph, Point2, mix
from blendctl.envs.objects import Goal
from blendctl.envs.palette import kind_colors
from blendctl.envs.scene import Scene
from blendctl.envs.tasks import Task

MARGIN = 0.3  # m, kept free around the square and around the robot
WIDEST = 2.0  # largest zoom-out to keep a leaving robot in view; then the view follows it
GRID = 0.5  # m

FLOOR: Color = (232, 230, 225)
SQUARE: Color = (250, 249, 246)
LINES: Color = (216, 214, 208)
_PAINTS = {"ink": INK, "shadow": INK, "white": WHITE, "rim": WHITE}


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
        """Draw a scene as (height, width, 3) bytes of red, green, blue; `trail` has the robot's earlier positions."""
        center, half = _look(scene, self.task.extents + MARGIN)
        scale = 0.5 * min(self._size) / half
        canvas = self._canvas
        canvas[:] = self._bare_floor(center, scale)
        drawing = self._blank(center, scale)
        _draw_trail(drawing, trail, self.task.robot_spec.color)
        for body in sorted(scene.bodies, key=lambda body: body.kind.layer):
            kind, at = body.kind, (body.x, body.y)
            glyph = kind.glyph if body.lit else tuple(shape for shape in kind.glyph if not shape.lit_only)
            _draw_glyph(drawing, glyph, self.colors[kind.name], at=at, turn=body.rot, unit=kind.size)
        if self._lidar:
            _draw_lidars(drawing, scene, self.colors)
        robot = self.task.robot_spec
        _draw_glyph(drawing, robot.glyph, robot.color, at=(scene.x, scene.y), turn=scene.heading)
        self._point_to_goal(drawing, scene, center)
        drawing.paint(canvas)
        return develop(canvas)

    def _point_to_goal(self, drawing: Drawing, scene: Scene, center: Point2) -> None:
        """Draw an arrow at the picture's edge towards a goal outside the picture."""
        goal = next(body for body in scene.bodies if isinstance(body.kind, Goal))
        away = (goal.x - center[0], goal.y - center[1])
        room = [0.5 * pixels / drawing.scale - 0.15 for pixels in self._size]
        excess = max(abs(away[0]) / room[0], abs(away[1]) / room[1])
        if excess > 1.0 + goal.kind.size / min(room):
            at = (center[0] + away[0] / excess, center[1] + away[1] / excess)
            turn = math.atan2(away[1], away[0])
            tip, left, right = (_place(at, turn, *p) for p in ((0.1, 0.0), (-0.06, 0.08), (-0.06, -0.08)))
            drawing.triangle((tip, left, right), color=self.colors[goal.kind.name], corner=0.015)

    def _blank(self, center: Point2, scale: float) -> Drawing:
        return Drawing(center=center, scale=scale, width=self._size[0], height=self._size[1])

    def _bare_floor(self, center: Point2, scale: float) -> Canvas:
        """Paint the floor, its grid and the square of the start layout; cached, because it seldom changes."""
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
    """Choose centre and half-width of the view: it contains the whole square, and always the robot.

    For a robot that leaves the square the view zooms out, and beyond `WIDEST` it follows the robot.
    """
    x, y = (value if math.isfinite(value) else 0.0 for value in (scene.x, scene.y))
    free = 2.0 * MARGIN
    wide = min(max(half, max(abs(x), abs(y)) + free), WIDEST * half)
    room = wide - free

    def shift(value: float) -> float:
        return math.copysign(max(0.0, abs(value) - room), value)

    return (shift(x), shift(y)), wide


def _place(origin: Point2, turn: float, x: float, y: float) -> Point2:
    """Transform a point from a body's frame to the world frame."""
    cosine, sine = math.cos(turn), math.sin(turn)
    return origin[0] + cosine * x - sine * y, origin[1] + sine * x + cosine * y


def _draw_glyph(drawing: Drawing, glyph: Glyph, color: Color, *, at: Point2, turn: float, unit: float = 1.0) -> None:
    """Add the shapes of a robot or an object, whose lengths are in units of `unit` metres."""
    for shape in glyph:
        paint = mix(_PAINTS.get(shape.paint, color), _PAINTS[shape.toward], shape.blend)
        origin = (at[0] + shape.shift[0], at[1] + shape.shift[1])
        points = [_place(origin, turn, unit * x, unit * y) for x, y in shape.points]
        half = (unit * shape.half[0] + shape.grow, unit * shape.half[1] + shape.grow)
        fill: Paint = {"color": paint, "alpha": shape.alpha, "soft": shape.soft}
        if shape.form == "line":
            drawing.line(points[0], points[1], width=shape.outline, **fill)
        elif shape.form == "triangle":
            drawing.triangle(points, corner=shape.corner, **fill)
        else:
            fill["outline"] = shape.outline
            if shape.form == "disc":
                drawing.disc(points[0], half[0], **fill)
            else:
                drawing.box(points[0], half, turn=turn, corner=shape.corner, **fill)


def _draw_lidars(drawing: Drawing, scene: Scene, colors: dict[str, Color]) -> None:
    """Draw a ring per kind around the robot, a segment per bin; nearer objects are more opaque."""
    at = (scene.x, scene.y)
    turn = math.atan2(scene.rotation[1, 0], scene.rotation[0, 0])  # bins start at the body's x axis
    for ring, (name, values) in enumerate(scene.lidars.items()):
        radius, step = 0.26 + 0.05 * ring, 2.0 * math.pi / len(values)
        drawing.disc(at, radius, color=INK, alpha=0.07, outline=0.034)
        for piece, value in enumerate(values.tolist()):
            if value > 0.0:
                ends = (_place(at, turn + (piece + share) * step, radius, 0.0) for share in (0.14, 0.86))
                drawing.line(*ends, width=0.032, color=colors[name], alpha=0.1 + 0.9 * value)


def _draw_trail(drawing: Drawing, places: Sequence[Point2], color: Color) -> None:
    for age, ((x0, y0), (x1, y1)) in enumerate(pairwise(places)):
        # boxes, because the round ends of lines would overlap and show as beads
        half = (0.5 * math.hypot(x1 - x0, y1 - y0), 0.015)
        turn, alpha = math.atan2(y1 - y0, x1 - x0), 0.05 + 0.4 * (age + 1) / len(places)
        drawing.box((0.5 * (x0 + x1), 0.5 * (y0 + y1)), half, color=color, turn=turn, alpha=alpha)
