"""A memory of scenes: maps of the worlds of a batch, declared by the kinds of objects that their lidars show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.errors import InputError
from blendctl.lidar_ring import LIDAR_BINS
from blendctl.scene_map.maps import LAG, VIEWS, Kinds, Maps, observe_all
from blendctl.scene_map.search import APART, EXACT, support_of

Motion = Literal["fixed", "sliding", "circling"]

_TILTED, _CIRCLING = 5e-4, 2e-3  # brightness that makes no difference to a robot that tilts, and of gremlins


@dataclass(frozen=True)
class MappedKind:
    """A kind of objects on the map."""

    name: str
    start: int  # index of its lidar in an observation
    count: int
    motion: Motion = "fixed"
    keepout: float = 0.0  # m, radius that no other object's keepout overlaps at the start
    travel: float = 0.0  # m, radius of the circle of an object that circles
    pushed: bool = False  # the robot moves it
    dark: bool = False  # its lidar may be dark for a while


class SceneMemory:
    """Where the robots of n worlds have come to in their episodes, and the objects that they have seen.

    observation_size: entries of an observation. period: s, of a control step. tilts: the robot does not stay upright.
    """

    def __init__(
        self, kinds: tuple[MappedKind, ...], rows: int, *, observation_size: int, period: float, tilts: bool
    ) -> None:
        self._index = {kind.name: index for index, kind in enumerate(kinds)}
        self.kinds = _kernel_kinds(kinds, period=period, tilts=tilts)
        objects, many = sum(kind.count for kind in kinds), len(kinds)
        self.maps = Maps(
            last=np.zeros((rows, observation_size)),
            begun=np.zeros(rows, np.bool_),
            steps=np.zeros(rows, np.int64),
            velocity=np.zeros((rows, 2)),
            robot=np.zeros((rows, 2)),
            heading=np.zeros(rows),
            places=np.zeros((rows, objects, 2)),
            seen=np.zeros((rows, objects), np.int64),
            known=np.zeros((rows, many), np.int64),
            poses=np.zeros((rows, many, VIEWS, 3)),
            rings=np.zeros((rows, many, VIEWS, LIDAR_BINS)),
            views=np.zeros((rows, many), np.int64),
            age=np.zeros(rows, np.int64),
        )

    def __len__(self) -> int:
        return len(self.maps.begun)

    def observe(self, observations: ArrayLike, steps: ArrayLike) -> None:
        """Take notice of observations (n, observation_size) after so many control steps (n,) of the episodes.

        The same observation counts once. A step that is not after the last one begins a new episode.
        """
        seen = np.ascontiguousarray(observations, np.float64)
        if seen.shape != self.maps.last.shape:
            raise InputError(f"expected observations of shape {self.maps.last.shape}, actually: {seen.shape}")
        observe_all(self.kinds, self.maps, seen, np.broadcast_to(np.asarray(steps, np.int64), len(seen)).copy())

    def copy(self) -> Maps:
        """Return a copy of the maps of all worlds."""
        return Maps._make(array.copy() for array in self.maps)

    def restore(self, maps: Maps) -> None:
        """Set the maps of all worlds to a copy."""
        for mine, other in zip(self.maps, maps, strict=True):
            mine[:] = other

    def offsets(self, row: int, name: str) -> FloatArray:
        """Return the places (k, 2) of the objects of a kind that are known, from the robot, in the arena's axes."""
        kind = self._index[name]
        first = self.kinds.first[kind]
        places = self.maps.places[row, first : first + self.maps.known[row, kind]]
        return np.asarray(places + self._shift(row, kind) - self.maps.robot[row])

    def may_hide(self, row: int, name: str, offset: FloatArray) -> bool:
        """Return whether an object at this offset (2,) from the robot would have been hidden so far."""
        kind = self._index[name]
        x, y = self.maps.robot[row] + offset - self._shift(row, kind)
        views = slice(self.maps.views[row, kind])
        poses, rings = self.maps.poses[row, kind, views], self.maps.rings[row, kind, views]
        return bool(support_of(x, y, poses, rings, self.kinds.limit[kind]) >= 0)

    def _shift(self, row: int, kind: int) -> FloatArray:
        """Return how far a circling object is from the middle of its circle."""
        angle = self.maps.steps[row] * self.kinds.period - LAG
        return np.asarray(self.kinds.travel[kind] * np.array([np.sin(angle), np.cos(angle)]))


def _kernel_kinds(kinds: tuple[MappedKind, ...], *, period: float, tilts: bool) -> Kinds:
    circling: NDArray[np.bool_] = np.array([kind.motion == "circling" for kind in kinds], np.bool_)
    limit = np.where(circling, _CIRCLING, _TILTED if tilts else EXACT)
    count = np.array([kind.count for kind in kinds], np.int64)
    room = [2.0 * kind.keepout - APART if kind.motion != "sliding" else 0.0 for kind in kinds]
    return Kinds(
        start=np.array([kind.start for kind in kinds], np.int64),
        counts=count,
        first=np.cumsum(count) - count,
        steady=np.array([kind.motion != "circling" and not kind.pushed for kind in kinds], np.bool_),
        circling=circling,
        dark=np.array([kind.dark for kind in kinds], np.bool_),
        support=np.where(limit == EXACT, 3, 5).astype(np.int64),
        limit=limit.astype(np.float64),
        room=np.array(room),
        travel=np.where(circling, [kind.travel for kind in kinds], 0.0),
        period=float(period),
    )
