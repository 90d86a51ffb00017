"""The encoding of paths: where each controller would drive, and what it would meet there.

Whether a controller will cross a hazard is hard to learn from lidars, because centimetres decide. Where a controller
drives in the next second is easy to learn. So a network predicts the path of every controller, and geometry does the
rest: how long a path stays inside the objects on the map of the episode (`blendctl.scene_map`), and how much nearer it
comes to the targets. A `PathEncoding` holds the network and the declaration of the map; it is saved with the weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.controllers.dense import Dense
from blendctl.controllers.encoding import LARGEST_SIZE
from blendctl.controllers.number_checks import check_real, check_whole
from blendctl.errors import FileFormatError, InputError
from blendctl.lidar_ring import LIDAR_BINS
from blendctl.scene_map import LAG, MappedKind, Maps, SceneMemory
from blendctl.scene_map.maps import Kinds

HORIZONS = 3  # the cost of a path is summed up over a quarter, half and all of it
FARTHEST = 1.0  # m, the least distance to a target is clipped to this
LEAST_SPREAD = 0.005  # m, of an object's place
MOTIONS = ("fixed", "sliding", "circling")

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Avoided:
    """A kind of objects that may cost."""

    kind: int  # index among the kinds of the map
    radius: float  # m, from its centre, at which a cost begins


@dataclass(frozen=True)
class MapDeclaration:
    """What the map of an episode shows, and which of it matters to a path."""

    observation_size: int
    period: float  # s, of a control step
    tilts: bool  # the robot does not stay upright
    kinds: tuple[MappedKind, ...]
    avoided: tuple[Avoided, ...]
    targets: tuple[int, ...]  # kinds of one object that the robot drives to

    def __post_init__(self) -> None:
        check_whole(self.observation_size, "observation_size", low=11, high=LARGEST_SIZE)
        check_real(self.period, "period", low=1e-9, high=1e9)
        if not isinstance(self.tilts, bool):
            raise InputError(f"tilts must be true or false, actually: {type(self.tilts).__name__}")
        for kind in self.kinds:
            check_whole(kind.start, "the start of a lidar", low=0, high=self.observation_size - LIDAR_BINS)
            check_whole(kind.count, "the number of objects", low=1, high=1000)
            for name in ("keepout", "travel"):
                check_real(getattr(kind, name), name, low=0.0, high=1e9)
            flags = (kind.pushed, kind.dark)
            if (
                kind.motion not in MOTIONS
                or not isinstance(kind.name, str)
                or not all(f in (True, False) for f in flags)
            ):
                raise InputError(f"a kind of objects on the map cannot be used: {kind!r}")
        last = len(self.kinds) - 1
        for part in self.avoided:
            check_whole(part.kind, "the kind of what is avoided", low=0, high=last)
            check_real(part.radius, "radius", low=0.0, high=1e9)
        for target in self.targets:
            check_whole(target, "the kind of a target", low=0, high=last)
            if self.kinds[target].count != 1:
                raise InputError(f"a target is one object, actually: {self.kinds[target].count}")

    def open(self, rows: int) -> SceneMemory:
        """Return an empty memory of so many worlds."""
        return SceneMemory(
            self.kinds, rows, observation_size=self.observation_size, period=self.period, tilts=self.tilts
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MapDeclaration:
        """Build a declaration from `asdict`; raise FileFormatError for anything else."""
        try:
            parts = {
                "kinds": tuple(MappedKind(**kind) for kind in data["kinds"]),
                "avoided": tuple(Avoided(**part) for part in data["avoided"]),
                "targets": tuple(data["targets"]),
            }
            return cls(**data | parts)
        except (TypeError, ValueError, KeyError) as error:
            raise FileFormatError(f"the declaration of the map cannot be read: {error}") from error


@dataclass(frozen=True)
class PathEncoding:
    """Map encoded observations and a memory of n worlds to network inputs (n, size)."""

    declaration: MapDeclaration
    network: Dense  # encoded observation -> (controllers * points * 2,) places in the robot's frame, in units of `unit`
    unit: Array  # (points,) m
    spread: Array  # (points,) m, error of the predicted places
    hold: int  # control steps from one point of a path to the next
    discount: float  # of costs, per control step
    controllers: int
    size: int = field(init=False)

    def __post_init__(self) -> None:
        points = len(self.unit)
        for name in ("unit", "spread"):
            values = getattr(self, name)
            if values.ndim != 1 or len(values) != points or not (np.isfinite(values) & (values > 0)).all():
                raise InputError(f"the {name} of paths must be a vector of numbers above 0, one per point")
        check_whole(points, "the points of a path", low=HORIZONS + 1, high=1000)
        check_whole(self.hold, "hold", low=1, high=1000)
        check_real(self.discount, "discount", low=0.0, high=1.0)
        check_whole(self.controllers, "the number of controllers", low=1, high=1000)
        if self.network.outputs != self.controllers * points * 2:
            raise InputError(
                f"the network of paths has {self.network.outputs} outputs; expected {self.controllers * points * 2}"
            )
        declared = self.declaration
        each = HORIZONS * len(declared.avoided) + (points + 1) * len(declared.targets) + 2 * points
        size = check_whole(self.controllers * each, "the inputs from paths", low=1, high=LARGEST_SIZE)
        object.__setattr__(self, "size", size)

    def paths(self, encoded: Array) -> FloatArray:
        """Return the predicted places (n, controllers, points, 2) in the robot's frame, in m."""
        rows = self.network.row(encoded[0])[None] if len(encoded) == 1 else self.network.batch(encoded)
        shape = (len(encoded), self.controllers, len(self.unit), 2)
        return rows.reshape(shape).astype(np.float64) * self.unit.astype(np.float64)[:, None]

    def __call__(self, encoded: Array, memory: SceneMemory) -> Array:
        """Return the inputs (n, size) from encoded observations (n, inputs), which the memory has observed."""
        declared = self.declaration
        out = np.zeros((len(encoded), self.size), np.float32)
        _encode_paths(
            memory.kinds,
            memory.maps,
            self.paths(encoded),
            np.array([part.kind for part in declared.avoided], np.int64),
            np.array([part.radius for part in declared.avoided], np.float64),
            np.array(declared.targets, np.int64),
            self.spread.astype(np.float64),
            self.hold,
            self.discount,
            out,
        )
        return out


@compiled
def _encode_paths(
    kinds: Kinds,
    maps: Maps,
    paths: FloatArray,  # (n, controllers, points, 2) m, in the robot's frame
    avoided: NDArray[np.int64],
    radii: FloatArray,
    targets: NDArray[np.int64],
    spread: FloatArray,  # (points,) m
    hold: int,
    discount: float,
    out: Array,  # (n, size) zeros
) -> None:
    points = paths.shape[2]
    width = 2.0 * math.sqrt(3.0)  # an error of standard deviation s is taken to be uniform, this times s wide
    for row in range(len(paths)):
        cos, sin = math.cos(maps.heading[row]), math.sin(maps.heading[row])
        rx, ry = maps.robot[row]
        now = maps.steps[row] * kinds.period - LAG
        at = 0
        for arm in range(paths.shape[1]):
            for part in range(len(avoided)):
                kind = avoided[part]
                first, known, travel = kinds.first[kind], maps.known[row, kind], kinds.travel[kind]
                total, factor, x0, y0, s0, step = 0.0, 1.0, 0.0, 0.0, 0.0, 0
                for point in range(points):
                    x1, y1, s1 = paths[row, arm, point, 0], paths[row, arm, point, 1], spread[point]
                    for sub in range(1, hold + 1):
                        step += 1
                        share = sub / hold
                        px, py = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
                        error = s0 + share * (s1 - s0) + LEAST_SPREAD
                        # In the frame of the map, from the robot; circling objects are where they will be then.
                        wx, wy = cos * px - sin * py + rx, sin * px + cos * py + ry
                        time = now + step * kinds.period
                        wx -= travel * math.sin(time)
                        wy -= travel * math.cos(time)
                        outside = 1.0
                        for k in range(known):
                            dx, dy = maps.places[row, first + k, 0] - wx, maps.places[row, first + k, 1] - wy
                            inside = 0.5 + (radii[part] - math.sqrt(dx * dx + dy * dy)) / (width * error)
                            outside *= 1.0 - min(max(inside, 0.0), 1.0)
                        total += factor * (1.0 - outside)
                        factor *= discount
                    x0, y0, s0 = x1, y1, s1
                    if point + 1 == points // 4 or point + 1 == points // 2 or point + 1 == points:
                        out[row, at] = total
                        at += 1
            for target in targets:
                if maps.known[row, target]:
                    dx = maps.places[row, kinds.first[target], 0] - rx
                    dy = maps.places[row, kinds.first[target], 1] - ry
                    x, y = cos * dx + sin * dy, cos * dy - sin * dx
                    here, least = math.sqrt(x * x + y * y), FARTHEST
                    for point in range(points):
                        dx, dy = x - paths[row, arm, point, 0], y - paths[row, arm, point, 1]
                        far = math.sqrt(dx * dx + dy * dy)
                        least = min(least, far)
                        out[row, at + point] = here - far
                    out[row, at + points] = least
                at += points + 1
            for point in range(points):
                out[row, at] = paths[row, arm, point, 0]
                out[row, at + 1] = paths[row, arm, point, 1]
                at += 2
