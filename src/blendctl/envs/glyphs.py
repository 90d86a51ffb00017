"""Declare how robots and objects look from above, as data for both the Python painter and the report page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

Color: TypeAlias = tuple[int, int, int]  # red, green, blue, 0 to 255
Point2: TypeAlias = tuple[float, float]  # x to the right (a robot's: forward), y up (a robot's: left)

# Okabe and Ito's palette: people with colour blindness can distinguish these
BLUE: Color = (0, 114, 178)
SKY: Color = (86, 180, 233)
GREEN: Color = (0, 158, 115)
YELLOW: Color = (240, 228, 66)
ORANGE: Color = (230, 159, 0)
VERMILION: Color = (213, 94, 0)
PURPLE: Color = (204, 121, 167)
SLATE: Color = (84, 92, 104)

INK: Color = (34, 40, 49)
WHITE: Color = (255, 255, 255)


@dataclass(frozen=True)
class Shape:
    """One antialiased shape. `points` and `half` are in units of the object's size; a robot's unit is 1 m.

    All other lengths are in metres. The paint "own" is the colour of the kind or the robot; "shadow" and "rim" (the
    outline of a robot) depend on the page's theme.
    """

    form: Literal["disc", "box", "line", "triangle"]
    points: tuple[Point2, ...] = ((0.0, 0.0),)  # centre, or two ends, or three corners, in the body's frame
    half: Point2 = (0.0, 0.0)  # half-extents of a box; a disc's radius, twice
    paint: Literal["own", "ink", "white", "shadow", "rim"] = "own"
    blend: float = 0.0  # share of `toward` in the paint
    toward: Literal["ink", "white"] = "ink"
    alpha: float = 1.0  # opacity
    grow: float = 0.0  # m, added to `half`
    shift: Point2 = (0.0, 0.0)  # m, added to the position in the world's frame
    corner: float = 0.0  # m, radius of rounded corners
    outline: float = 0.0  # m, width of a line along the edge instead of a filled shape; width of a line
    soft: float = 0.0  # m, over which the edge fades out
    lit_only: bool = False  # drawn only on the goal button


Glyph: TypeAlias = tuple[Shape, ...]  # in the order of painting

_DEFAULTS = {field.name: field.default for field in fields(Shape)}


def disc(radius: float, *, at: Point2 = (0.0, 0.0), **options: Any) -> Shape:
    """Declare a disc or, with an outline, a ring."""
    return Shape("disc", (at,), (radius, radius), **options)


def box(half_x: float, half_y: float, *, at: Point2 = (0.0, 0.0), **options: Any) -> Shape:
    """Declare a box that turns with its body."""
    return Shape("box", (at,), (half_x, half_y), **options)


def shadow(radius: float, *, alpha: float = 0.28, shift: Point2 = (0.02, -0.03), soft: float = 0.12) -> Shape:
    """Declare a round shadow."""
    return disc(radius, paint="shadow", alpha=alpha, shift=shift, soft=soft)


def mix(color: Color, other: Color, share: float) -> Color:
    """Blend two colours.

    >>> mix((0, 0, 0), (200, 100, 50), 0.5)
    (100, 50, 25)
    """
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(color, other, strict=True))
    return red, green, blue


def glyph_json(glyph: Glyph) -> list[dict[str, Any]]:
    """Return a glyph as JSON data; values equal to the default are left out, except `points`, `half` and `paint`."""
    kept = ("points", "half", "paint")
    return [{n: v for n, v in asdict(shape).items() if n in kept or v != _DEFAULTS[n]} for shape in glyph]
