"""Paint antialiased shapes into a picture, from their distance to each pixel; needs neither a screen nor OpenGL.

A shape covers a pixel by the distance of its edge from the pixel's centre: half a pixel inside is full, half a
pixel outside is nothing. A larger `soft` turns shapes into shadows and glows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Required, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.envs.glyphs import Color, Point2

Picture: TypeAlias = NDArray[np.uint8]  # (height, width, 3)
Canvas: TypeAlias = NDArray[np.float32]  # (height, width, 3), 0 to 255

DISC, SEGMENT, BOX, TRIANGLE = range(4)
# A row of the table of shapes: kind, six of geometry, radius, outline, soft, red, green, blue, alpha.


class Paint(TypedDict, total=False):
    """How a shape is painted; an edge is never sharper than a pixel."""

    color: Required[Color]
    alpha: float  # opacity
    outline: float  # m, width of a line along the edge instead of a filled shape
    soft: float  # m, width over which the edge fades out


class Drawing:
    """Shapes in the order in which they cover one another, in metres; y points up."""

    def __init__(self, *, center: Point2, scale: float, width: int, height: int) -> None:
        self.scale = scale  # pixels per metre
        self._left = 0.5 * width - center[0] * scale
        self._top = 0.5 * height + center[1] * scale
        self._rows: list[tuple[float, ...]] = []

    def disc(self, at: Point2, radius: float, **paint: Unpack[Paint]) -> None:
        """Add a disc or, with an outline, a ring."""
        x, y = self._pixel(at)
        self._add(DISC, (x, y, 0.0, 0.0, 0.0, 0.0), radius, **paint)

    def line(self, start: Point2, end: Point2, *, width: float, **paint: Unpack[Paint]) -> None:
        """Add a line with round ends."""
        points = (*self._pixel(start), *self._pixel(end), 0.0, 0.0)
        self._add(SEGMENT, points, 0.5 * width, **paint)

    def box(self, at: Point2, half: Point2, *, turn: float = 0.0, corner: float = 0.0, **paint: Unpack[Paint]) -> None:
        """Add a box of half-extents `half`, turned by `turn` (rad), its corners rounded by `corner`."""
        x, y = self._pixel(at)
        size = (half[0] * self.scale, half[1] * self.scale)
        # y points down in the picture, so the sense of rotation is reversed
        geometry = (x, y, *size, math.cos(turn), -math.sin(turn))
        self._add(BOX, geometry, corner, **paint)

    def triangle(self, points: Sequence[Point2], *, corner: float = 0.0, **paint: Unpack[Paint]) -> None:
        """Add a triangle; `corner` grows it by a rounded rim."""
        (x0, y0), (x1, y1), (x2, y2) = (self._pixel(point) for point in points)
        self._add(TRIANGLE, (x0, y0, x1, y1, x2, y2), corner, **paint)

    def paint(self, canvas: Canvas) -> None:
        """Paint the shapes over what is there."""
        if self._rows:
            _paint(canvas, np.array(self._rows))

    def _pixel(self, at: Point2) -> Point2:
        return self._left + at[0] * self.scale, self._top - at[1] * self.scale

    def _add(self, kind: int, geometry: tuple[float, ...], radius: float, **paint: Unpack[Paint]) -> None:
        s, alpha = self.scale, min(max(paint.get("alpha", 1.0), 0.0), 1.0)
        edge = paint.get("outline", 0.0) * s, max(1.0, paint.get("soft", 0.0) * s)
        self._rows.append((kind, *geometry, radius * s, *edge, *paint["color"], alpha))


def develop(canvas: Canvas) -> Picture:
    """Round a canvas to a picture of bytes."""
    picture = np.empty(canvas.shape, np.uint8)
    _round(canvas.ravel(), picture.ravel())
    return picture


@compiled
def _round(values: Canvas, rounded: Picture) -> None:
    for i in range(values.shape[0]):
        rounded[i] = np.uint8(np.int32(values[i] + np.float32(0.5)))  # via int32, which vectorises


@compiled
def _edge(px: float, py: float, x0: float, y0: float, x1: float, y1: float) -> float:
    """Squared distance of a point to a segment."""
    ex, ey, dx, dy = x1 - x0, y1 - y0, px - x0, py - y0
    length = ex * ex + ey * ey
    t = min(max((dx * ex + dy * ey) / length, 0.0), 1.0) if length > 0.0 else 0.0
    return (dx - t * ex) ** 2 + (dy - t * ey) ** 2


@compiled
def _side(px: float, py: float, x0: float, y0: float, x1: float, y1: float) -> float:
    return (x1 - x0) * (py - y0) - (y1 - y0) * (px - x0)


@compiled
def _distance(s: FloatArray, x: float, y: float) -> float:
    """Distance of a pixel's centre to a shape's edge, negative inside, in pixels."""
    kind, radius = int(s[0]), float(s[7])
    if kind == DISC:
        dx, dy = x - s[1], y - s[2]
        return math.sqrt(dx * dx + dy * dy) - radius
    if kind == SEGMENT:
        return math.sqrt(_edge(x, y, s[1], s[2], s[3], s[4])) - radius
    if kind == BOX:
        dx, dy = x - s[1], y - s[2]
        u = abs(s[5] * dx + s[6] * dy) - s[3] + radius
        v = abs(s[5] * dy - s[6] * dx) - s[4] + radius
        outside = math.hypot(max(u, 0.0), max(v, 0.0))
        return float(outside + min(max(u, v), 0.0) - radius)
    a = _side(x, y, s[1], s[2], s[3], s[4])
    b = _side(x, y, s[3], s[4], s[5], s[6])
    c = _side(x, y, s[5], s[6], s[1], s[2])
    inside = (a >= 0.0 and b >= 0.0 and c >= 0.0) or (a <= 0.0 and b <= 0.0 and c <= 0.0)
    nearest = math.sqrt(
        min(
            _edge(x, y, s[1], s[2], s[3], s[4]),
            _edge(x, y, s[3], s[4], s[5], s[6]),
            _edge(x, y, s[5], s[6], s[1], s[2]),
        )
    )
    return (-nearest if inside else nearest) - radius


@compiled
def _bounds(s: FloatArray) -> tuple[float, float, float, float]:
    """Return the box of pixels that a shape can touch: left, top, right, bottom."""
    kind = int(s[0])
    reach = 0.5 * s[8] + 0.5 * s[9] + 1.0
    if kind == BOX:
        wide = abs(s[5]) * s[3] + abs(s[6]) * s[4] + reach
        high = abs(s[6]) * s[3] + abs(s[5]) * s[4] + reach
        return s[1] - wide, s[2] - high, s[1] + wide, s[2] + high
    reach += s[7]
    if kind == DISC:
        return s[1] - reach, s[2] - reach, s[1] + reach, s[2] + reach
    left, right = min(s[1], s[3]), max(s[1], s[3])
    top, bottom = min(s[2], s[4]), max(s[2], s[4])
    if kind == TRIANGLE:
        left, right = min(left, s[5]), max(right, s[5])
        top, bottom = min(top, s[6]), max(bottom, s[6])
    return left - reach, top - reach, right + reach, bottom + reach


@compiled
def _paint(canvas: Canvas, shapes: FloatArray) -> None:
    height, width, _ = canvas.shape
    for n in range(shapes.shape[0]):
        s = shapes[n]
        left, top, right, bottom = _bounds(s)
        # clamped before they become integers, so that shapes far away cannot overflow
        j0, j1 = int(min(max(left, 0.0), width)), int(min(max(right + 1.0, 0.0), width))
        i0, i1 = int(min(max(top, 0.0), height)), int(min(max(bottom + 1.0, 0.0), height))
        outline, soft, alpha = s[8], s[9], s[13]
        for i in range(i0, i1):
            for j in range(j0, j1):
                d = _distance(s, j + 0.5, i + 0.5)
                if outline > 0.0:
                    d = abs(d) - 0.5 * outline
                if d >= 0.5 * soft:
                    continue
                cover = alpha
                if d > -0.5 * soft:
                    t = 0.5 - d / soft
                    cover *= t if soft <= 1.0 else t * t * (3.0 - 2.0 * t)
                canvas[i, j, 0] += np.float32(cover * (s[10] - canvas[i, j, 0]))
                canvas[i, j, 1] += np.float32(cover * (s[11] - canvas[i, j, 1]))
                canvas[i, j, 2] += np.float32(cover * (s[12] - canvas[i, j, 2]))
