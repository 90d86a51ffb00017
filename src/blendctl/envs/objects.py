"""Declare the kinds of objects: geometry, motion, costs, and how they look from above.

A new kind is one frozen dataclass derived from `Objects`, and one entry in `KINDS` if it belongs to this package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import ClassVar, Literal

from blendctl.envs import glyphs
from blendctl.envs.glyphs import Color, Glyph, Shape, box, disc, shadow
from blendctl.errors import InputError

MOTIONS = ("fixed", "sliding", "circling")  # in the order of the lidars
COST_TYPES = ("inside", "contact", "velocity", "wrong_button")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def check_count(value: object, name: str) -> int:
    """Return a whole number of at least 1."""
    count = 0 if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if count < 1:
        raise InputError(f"expected {name} >= 1, a whole number, actually: {value!r}")
    return count


def check_size(value: object, name: str) -> float:
    """Return a number between 0 and 100."""
    size = float(value) if isinstance(value, Real) else 0.0
    if not 0.0 < size < 100.0:
        raise InputError(f"expected 0 < {name} < 100, actually: {value!r}")
    return size


def box_geom(half: float, half_height: float, density: float, *, pos: str = "0 0 0") -> str:
    """Write the XML of a box."""
    size = f"{half!r} {half!r} {half_height!r}"
    return f'<geom type="box" pos="{pos}" size="{size}" density="{density!r}"/>'


@dataclass(frozen=True)
class Objects:
    """Objects of one kind: they share a size, a lidar and their costs. Use one of the subclasses, or declare your own.

    A subclass has a `radius` or a `half` (half the edge) in metres, and overrides what differs. Every float field is
    checked to be between 0 and 100.
    """

    count: int = 1
    keepout: float = 0.2  # m, radius that no other object's keepout may overlap at the start
    name: str = "objects"  # of the lidar and of the cost
    constrained: bool = True  # whether the objects cost

    motion: ClassVar[Literal["fixed", "sliding", "circling"]] = "fixed"
    costs: ClassVar[tuple[str, ...]] = ("contact",)  # each one of COST_TYPES
    color: ClassVar[Color] = glyphs.SLATE
    glyph: ClassVar[Glyph] = ()
    layer: ClassVar[int] = 3  # the painters draw low layers first; 0 and 1 lie on the floor, under the robot's path
    alpha: ClassVar[float] = 0.6  # opacity in camera pictures, of objects without geoms

    def __post_init__(self) -> None:
        if type(self) is Objects:
            raise InputError(f"Objects is abstract; use {', '.join(kind.__name__ for kind in KINDS)}")
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError(f"expected a name of lower-case letters, digits and _, actually: {self.name!r}")
        # plain numbers, so that equal tasks have equal fingerprints
        object.__setattr__(self, "count", check_count(self.count, f"count of {self.name}"))
        for size in (field.name for field in fields(self) if field.type in (float, "float")):
            object.__setattr__(self, size, check_size(getattr(self, size), f"{size} of {self.name}"))
        movable = self.motion != "fixed"
        needs = {"contact": self.solid, "velocity": self.solid and movable, "inside": not movable}
        for cost in self.cost_names and self.costs:
            if cost not in COST_TYPES or not needs.get(cost, True):
                raise InputError(
                    f'{type(self).__name__}: the cost "{cost}" does not fit; allowed: inside (fixed objects), contact '
                    "(objects with geoms), velocity (sliding or circling ones), wrong_button (Buttons)"
                )
        if self.motion not in MOTIONS or (movable and not self.solid):
            raise InputError(f"{type(self).__name__}: a motion of {', '.join(MOTIONS)}; moving objects need geoms")

    @property
    def size(self) -> float:
        """Radius, or half the edge, in metres."""
        return float(getattr(self, "radius", None) or getattr(self, "half"))  # noqa: B009  # one of both exists

    @property
    def reach(self) -> float:
        """Distance from the centre to the surface, in metres."""
        return self.size

    @property
    def height(self) -> float:
        """Height of the centre at the start, in metres."""
        return self.size

    @property
    def thickness(self) -> float:
        """Half the height in camera pictures, of objects without geoms, in metres."""
        return 0.01

    def geoms(self) -> str:
        """Return the MuJoCo geoms of one object as XML; an empty string means no contacts."""
        return ""

    @property
    def solid(self) -> bool:
        """Whether the objects are bodies of the model."""
        return bool(self.geoms())

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Names of the cost components, without the prefix `cost_`."""
        if not self.constrained:
            return ()
        return (self.name,) if len(self.costs) == 1 else tuple(f"{self.name}_{cost}" for cost in self.costs)


@dataclass(frozen=True)
class Goal(Objects):
    """The target of the robot, or of the pushed box: a cylinder without contacts."""

    keepout: float = 0.305
    name: str = "goal"
    constrained: bool = False
    radius: float = 0.3  # m; reached within it
    half_height: float = 0.15  # m
    costs = ()
    color = glyphs.GREEN
    alpha = 0.4
    layer = 1
    glyph = (
        disc(1.0, alpha=0.25, soft=0.14),
        disc(1.0, grow=-0.0125, outline=0.025),
        disc(0.58, alpha=0.8, outline=0.02),
        disc(0.22),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count != 1 or self.constrained:
            raise InputError("there is one goal, and it costs nothing; expected count=1, constrained=False")

    @property
    def height(self) -> float:
        """Height of the centre above the floor; the push task measures distances in space."""
        return self.half_height + 0.01

    @property
    def thickness(self) -> float:
        """Half the height in camera pictures, in metres."""
        return self.half_height


@dataclass(frozen=True)
class Hazards(Objects):
    """Discs on the floor; the robot's centre inside one costs."""

    keepout: float = 0.18
    name: str = "hazards"
    radius: float = 0.2  # m
    height = 0.02  # m
    costs = ("inside",)
    color = glyphs.VERMILION
    layer = 0
    glyph = (disc(1.0, alpha=0.28), disc(1.0, grow=-0.01, alpha=0.9, outline=0.02), disc(0.55, alpha=0.35))


@dataclass(frozen=True)
class Pillars(Objects):
    """Fixed cylinders; touching one costs."""

    keepout: float = 0.3
    name: str = "pillars"
    radius: float = 0.2  # m
    height = 0.5  # m, of the centre
    layer = 6
    glyph = (
        shadow(1.02, alpha=0.35, shift=(0.05, -0.07), soft=0.14),
        disc(1.0, blend=0.5),
        disc(0.9),
        disc(0.6, blend=0.18, toward="white"),
    )

    def geoms(self) -> str:
        return f'<geom type="cylinder" size="{self.radius!r} {self.height!r}"/>'


@dataclass(frozen=True)
class Buttons(Objects):
    """Fixed spheres, one of them the goal; pressing another costs, except shortly after a success."""

    keepout: float = 0.2
    name: str = "buttons"
    radius: float = 0.1  # m
    costs = ("wrong_button",)
    color = glyphs.ORANGE
    layer = 2
    glyph = (
        shadow(1.05),
        disc(1.0, blend=0.25),
        disc(0.82),
        disc(0.3, shift=(-0.025, 0.03), paint="white", alpha=0.55, soft=0.05),
        disc(1.25, paint="ink", outline=0.025, lit_only=True),
    )

    def geoms(self) -> str:
        return f'<geom type="sphere" size="{self.radius!r}"/>'


@dataclass(frozen=True)
class Vases(Objects):
    """Light boxes that slide; touching one costs, and so does one that moves."""

    keepout: float = 0.15
    name: str = "vases"
    half: float = 0.1  # m, half the edge
    density: float = 0.001
    motion = "sliding"
    costs = ("contact", "velocity")
    color = glyphs.SKY
    layer = 3
    glyph = (
        shadow(1.15),
        box(1.0, 1.0, blend=0.3, corner=0.02),
        box(0.86, 0.86, corner=0.015),
        disc(0.5, blend=0.55, toward="white"),
        disc(0.3, blend=0.55),
    )

    @property
    def height(self) -> float:
        """Height of the centre at the start: a vase starts 4e-5 m inside the floor."""
        return self.half - 4e-5

    def geoms(self) -> str:
        return box_geom(self.half, self.half, self.density)


_CORNERS = ((1.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (-1.0, -1.0))


@dataclass(frozen=True)
class PushBox(Objects):
    """The box to push: a cube with a column on each corner."""

    keepout: float = 0.2
    name: str = "push_box"
    constrained: bool = False
    half: float = 0.2  # m, half the cube's edge; with the columns it reaches 1.5 times as far
    density: float = 0.001
    motion = "sliding"
    color = glyphs.YELLOW
    layer = 4
    glyph = (
        box(1.5, 1.5, paint="shadow", shift=(0.02, -0.03), alpha=0.25, soft=0.12),
        *(box(0.5, 0.5, at=at, blend=0.45, grow=0.012, corner=0.02) for at in _CORNERS),
        box(1.0, 1.0, blend=0.45, grow=0.012, corner=0.01),
        *(box(0.5, 0.5, at=at, corner=0.02) for at in _CORNERS),
        box(1.0, 1.0, corner=0.01),
        box(0.62, 0.62, blend=0.45, corner=0.02, outline=0.015, alpha=0.8),
        Shape("line", ((-0.62, -0.62), (0.62, 0.62)), blend=0.45, outline=0.015, alpha=0.8),
        Shape("line", ((0.62, -0.62), (-0.62, 0.62)), blend=0.45, outline=0.015, alpha=0.8),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count != 1:
            raise InputError(f"there is one box to push; expected count=1, actually: {self.count}")

    @property
    def reach(self) -> float:
        """Distance from the centre to the columns' outer side, in metres."""
        return 1.5 * self.half

    def geoms(self) -> str:
        half = self.half
        columns = (box_geom(half / 2, half, self.density, pos=f"{x * half!r} {y * half!r} 0") for x, y in _CORNERS)
        return box_geom(half, half, self.density) + "".join(columns)


@dataclass(frozen=True)
class Gremlins(Objects):
    """Boxes that circle, each around its own centre; touching one costs."""

    keepout: float = 0.4
    name: str = "gremlins"
    half: float = 0.1  # m, half the edge
    density: float = 0.001
    travel: float = 0.35  # m, radius of the circle
    motion = "circling"
    color = glyphs.PURPLE
    layer = 5
    glyph = (
        shadow(1.15, alpha=0.3, shift=(0.04, -0.06), soft=0.14),
        box(1.0, 1.0, blend=0.45, corner=0.035),
        box(0.86, 0.86, corner=0.03),
        *(
            disc(radius, at=(side, y), paint=paint)
            for side in (-0.38, 0.38)
            for radius, y, paint in ((0.26, 0.2, "white"), (0.12, 0.26, "ink"))
        ),
    )

    def geoms(self) -> str:
        return box_geom(self.half, self.half, self.density)


KINDS: tuple[type[Objects], ...] = (Goal, Hazards, Pillars, Buttons, Vases, PushBox, Gremlins)
