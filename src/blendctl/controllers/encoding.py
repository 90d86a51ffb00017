"""The encoding of a raw observation as the input of a network.

The raw lidar of Safety Gym is a poor network input: the edge of a hazard lies between the readings 0.92 and
0.94, and an object's direction is spread over three bins. Both can be decoded: an object at distance d and angle
(b + f) * w adds s = 1 - d/3 to bin b, f*s to bin b+1 and (1-f)*s to bin b-1. So the largest bin and its two
neighbours determine distance and angle exactly, unless a second object overwrites a neighbour; then the neighbours
bound f from both sides. An `Encoding` selects which of these features a network gets. It is plain data, saved with
the weights, so that a loaded network gets the inputs that it was trained on.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.compiled import compiled
from blendctl.controllers.number_checks import check_real, check_whole
from blendctl.errors import FileFormatError, InputError

ROBOT_CLIP = 5.0  # scaled robot readings are clipped to this
LARGEST_SIZE = 1 << 16  # entries of an observation, and of a network's input
OBJECT_FEATURES = 6  # x, y, distance, cosine, sine, ambiguity of the angle
PAIR_FEATURES = 7  # x, y, distance, cosine, sine of the line between two objects, and its angle to the line of sight


@dataclass(frozen=True)
class Lidar:
    """One lidar ring in the observation."""

    kind: str  # the objects that it senses, e.g. "hazards"
    start: int  # index of its first bin in the observation
    bins: int = 16  # number of bins around the robot
    objects: int = 1  # how many of the nearest objects to decode (0: none)
    radius: float = 0.2  # distance (m) from an object's centre at which a cost or a goal begins

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str):
            raise InputError(f"kind must be a name, actually: {type(self.kind).__name__}")
        check_whole(self.start, "start", low=0, high=LARGEST_SIZE)
        check_whole(self.bins, "bins", low=4, high=LARGEST_SIZE)
        check_whole(self.objects, "objects", low=0, high=self.bins)
        check_real(self.radius, "radius", low=0.0)


@dataclass(frozen=True)
class MarginAhead:
    """The margin to each decoded object's radius, `time` seconds ahead at the present velocity.

    The feature is clip((radius - distance) / width, -1, 1), once for each bound of the object's angle.
    """

    time: float
    width: float

    def __post_init__(self) -> None:
        check_real(self.time, "time", low=0.0)
        check_real(self.width, "width", low=1e-9)


@dataclass(frozen=True)
class Encoding:
    """Map raw observations (n, observation_size) to network inputs (n, size).

    >>> encoding = Encoding(observation_size=19, robot_scale=(1.0, 1.0, 1.0), lidars=(Lidar("goal", 3),))
    >>> encoding.size
    41
    >>> observation = np.zeros(19)
    >>> observation[3:6] = 0.2, 0.8, 0.6  # largest bin 1, so the angle is (1 + 0.6/0.8) * 2 pi/16
    >>> x, y, distance = encoding(observation)[35:38]
    >>> print(f"{np.hypot(x, y):.3f} {np.arctan2(y, x) / (2 * np.pi / 16):.3f}")
    0.600 1.750
    """

    observation_size: int
    robot_scale: tuple[float, ...]  # gain of each entry outside of the lidars, in order
    lidars: tuple[Lidar, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()  # (from, to): lidars whose nearest objects are compared
    ahead: tuple[MarginAhead, ...] = ()
    near: bool = True  # add clip((l - 0.85) * 10, 0, 2): the nearest 45 cm, magnified
    velocity: int = -1  # index of forward and sideways velocity (m/s); -1: none
    max_distance: float = 3.0  # where the lidar reads 0 (m)
    size: int = field(init=False)  # inputs of a network with this encoding
    plan: tuple[Any, ...] = field(init=False, repr=False, compare=False)  # arguments of the kernel `encode`

    def __post_init__(self) -> None:
        check_whole(self.observation_size, "observation_size", low=1, high=LARGEST_SIZE)
        check_whole(self.velocity, "velocity", low=-1, high=self.observation_size - 2)
        check_real(self.max_distance, "max_distance", low=1e-9)
        if not isinstance(self.near, bool):
            raise InputError(f"near must be true or false, actually: {type(self.near).__name__}")
        for gain in self.robot_scale:
            check_real(gain, "robot_scale")
        covered = np.zeros(self.observation_size, np.int64)
        for lidar in self.lidars:
            if lidar.start + lidar.bins > self.observation_size:
                raise InputError(
                    f"lidar {lidar.kind!r} covers entries {lidar.start} to {lidar.start + lidar.bins}; "
                    f"the observation has {self.observation_size}"
                )
            covered[lidar.start : lidar.start + lidar.bins] += 1
        if covered.max(initial=0) > 1:
            raise InputError("two lidars share entries of the observation; their ranges must not overlap")
        robot = np.flatnonzero(covered == 0)
        if len(robot) != len(self.robot_scale):
            raise InputError(
                f"robot_scale has {len(self.robot_scale)} gains, but {len(robot)} of {self.observation_size} "
                "entries are outside of the lidars; each of these needs one gain"
            )
        for index in (index for pair in self.pairs for index in pair):
            check_whole(index, "an entry of pairs", low=0, high=len(self.lidars) - 1)
            if self.lidars[index].objects < 1:
                raise InputError(f"a pair uses lidar {index}, which decodes no object; set its objects to at least 1")
        rings = sum(r.bins * (2 if self.near else 1) for r in self.lidars)
        objects = sum(r.objects for r in self.lidars) * (OBJECT_FEATURES + 2 * len(self.ahead))
        size = len(robot) + rings + objects + PAIR_FEATURES * len(self.pairs)
        check_whole(size, "the number of network inputs", low=1, high=LARGEST_SIZE)
        plan = (
            robot,
            np.array(self.robot_scale, np.float64),
            np.array([[r.start, r.bins, r.objects] for r in self.lidars], np.int64).reshape(-1, 3),
            np.array([r.radius for r in self.lidars], np.float64),
            np.array(self.pairs, np.int64).reshape(-1, 2),
            np.array([[a.time, a.width] for a in self.ahead], np.float64).reshape(-1, 2),
            self.near,
            int(self.velocity),
            float(self.max_distance),
        )
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "size", size)

    def __call__(self, observations: ArrayLike) -> NDArray[np.float32]:
        """Encode one row (observation_size,) or a batch (n, observation_size)."""
        raw = np.asarray(observations, np.float64)
        if raw.shape[-1:] != (self.observation_size,) or raw.ndim not in (1, 2):
            raise InputError(
                f"observation has shape {raw.shape}; allowed: ({self.observation_size},) or "
                f"(n, {self.observation_size}). Does this controller belong to this world?"
            )
        out = np.empty((1 if raw.ndim == 1 else len(raw), self.size), np.float32)
        encode(np.ascontiguousarray(raw.reshape(len(out), -1)), out, *self.plan)
        return out[0] if raw.ndim == 1 else out

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain JSON data."""
        data = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return data | {name: [asdict(part) for part in data[name]] for name in ("lidars", "ahead")}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Encoding:
        """Build an encoding from `to_dict()`; raise FileFormatError for anything else."""
        try:
            known = {f.name for f in fields(cls) if f.init}
            if set(data) != known:
                raise ValueError(f"fields {sorted(set(data) ^ known)} are missing or unknown")
            parsed = {
                "robot_scale": tuple(data["robot_scale"]),
                "lidars": tuple(Lidar(**lidar) for lidar in data["lidars"]),
                "pairs": tuple((a, b) for a, b in data["pairs"]),
                "ahead": tuple(MarginAhead(**margin) for margin in data["ahead"]),
            }
            return cls(**data | parsed)
        except (TypeError, ValueError, KeyError) as error:
            raise FileFormatError(f"the encoding cannot be read: {error}") from error


def identity_encoding(observation_size: int) -> Encoding:
    """Return the encoding that copies the observation, clipped to ±5."""
    return Encoding(observation_size, robot_scale=(1.0,) * observation_size)


@compiled
def encode(
    raw: NDArray[np.float64],  # (n, observation_size)
    out: NDArray[np.float32],  # (n, size)
    robot: NDArray[np.int64],  # (readings,) indices outside of the lidars
    gains: NDArray[np.float64],  # (readings,)
    rings: NDArray[np.int64],  # (lidars, 3): start, bins, objects
    radii: NDArray[np.float64],  # (lidars,)
    pairs: NDArray[np.int64],  # (pairs, 2)
    ahead: NDArray[np.float64],  # (views, 2): time, width
    near: bool,
    velocity: int,
    max_distance: float,
) -> None:
    """Write the encoded rows to `out`; raise ValueError if they do not fit."""
    size = len(robot) + PAIR_FEATURES * len(pairs)
    for ring in range(len(rings)):
        size += rings[ring, 1] * (2 if near else 1) + rings[ring, 2] * (OBJECT_FEATURES + 2 * len(ahead))
    if out.shape[0] < raw.shape[0] or out.shape[1] < size:
        raise ValueError("the buffer is smaller than the encoded observations")
    nearest = np.zeros((len(rings), 2))  # x, y of each ring's nearest object (m, robot's frame)
    for row in range(len(raw)):
        at = 0
        for k in range(len(robot)):
            out[row, at] = min(max(raw[row, robot[k]] * gains[k], -ROBOT_CLIP), ROBOT_CLIP)
            at += 1
        vx = raw[row, velocity] if velocity >= 0 else 0.0
        vy = raw[row, velocity + 1] if velocity >= 0 else 0.0
        for ring in range(len(rings)):
            start, bins, objects = rings[ring]
            angle_of_bin = 2.0 * np.pi / bins
            for k in range(bins):
                out[row, at + k] = raw[row, start + k]
            at += bins
            if near:
                for k in range(bins):
                    out[row, at + k] = min(max((raw[row, start + k] - 0.85) * 10.0, 0.0), 2.0)
                at += bins
            first = -1
            for which in range(objects):
                peak, reading = 0, -1.0
                for k in range(bins):
                    apart = abs(k - first)
                    # The second object is searched outside of the first one's three bins.
                    if first >= 0 and min(apart, bins - apart) <= 1:
                        continue
                    if raw[row, start + k] > reading:
                        peak, reading = k, raw[row, start + k]
                if which == 0:
                    first = peak
                seen = reading > 1e-9
                low, high = 0.0, 1.0  # bounds of f, the angle's fraction within its bin
                if seen:
                    low = min(max(1.0 - raw[row, start + (peak - 1) % bins] / reading, 0.0), 1.0)
                    high = min(max(raw[row, start + (peak + 1) % bins] / reading, low), 1.0)
                distance = max_distance * (1.0 - reading) if seen else max_distance
                angle = (peak + 0.5 * (low + high)) * angle_of_bin
                cosine = np.cos(angle) if seen else 0.0
                sine = np.sin(angle) if seen else 0.0
                x, y = distance * cosine, distance * sine
                if which == 0:
                    nearest[ring, 0], nearest[ring, 1] = x, y
                out[row, at] = x
                out[row, at + 1] = y
                out[row, at + 2] = distance
                out[row, at + 3] = cosine
                out[row, at + 4] = sine
                out[row, at + 5] = high - low
                at += OBJECT_FEATURES
                for bound in (low, high):
                    edge = (peak + bound) * angle_of_bin
                    px, py = distance * np.cos(edge), distance * np.sin(edge)
                    for k in range(len(ahead)):
                        left = np.hypot(px - vx * ahead[k, 0], py - vy * ahead[k, 0])
                        margin = (radii[ring] - left) / ahead[k, 1] if seen else -1.0
                        out[row, at] = min(max(margin, -1.0), 1.0)
                        at += 1
        for pair in range(len(pairs)):
            a, b = pairs[pair]
            x, y = nearest[b, 0] - nearest[a, 0], nearest[b, 1] - nearest[a, 1]
            gap = np.hypot(x, y) + 1e-9
            sight = np.hypot(nearest[a, 0], nearest[a, 1]) + 1e-9
            out[row, at] = x
            out[row, at + 1] = y
            out[row, at + 2] = gap
            out[row, at + 3] = x / gap
            out[row, at + 4] = y / gap
            out[row, at + 5] = (x * nearest[a, 0] + y * nearest[a, 1]) / (gap * sight)
            out[row, at + 6] = (x * nearest[a, 1] - y * nearest[a, 0]) / (gap * sight)
            at += PAIR_FEATURES
