"""Remember where objects are: a map of one episode from its observations, without the robot's true place.

The heading is measured. The way of the robot follows from its speed, corrected by the objects that are known already.
"""

from __future__ import annotations

import math

import numpy as np

from blendctl.envs.compiled_task import SUBSTEPS, CompiledTask, FloatArray
from blendctl.envs.lidar import LIDAR_RANGE
from blendctl.envs.lidar_search import (
    APART,
    EXACT,
    LOOSE,
    excess,
    explaining,
    find_object,
    locate,
    only_place,
    support_of,
    unexplained,
)
from blendctl.envs.objects import Buttons, Objects, PushBox
from blendctl.envs.tasks import LIDAR_BINS, Task

LAG = 0.0855  # s, by which a gremlin trails its circle
_SETTLED = 0.6  # s, until it has reached it
_TILTED, _CIRCLING = 5e-4, 2e-3  # brightness that makes no difference to a robot that tilts, and of gremlins
_LOST = 0.05  # brightness that an object lacks at least where the robot has lost its way
_VIEWS = 24  # observations that are kept for the search of objects


def heading_of(observation: FloatArray) -> tuple[FloatArray, float]:
    """Return the turn (2, 2) from the robot's frame to the arena's, and the heading, by the magnetometer."""
    heading = math.atan2(-observation[9], -observation[10])  # the field points along the arena's -y
    cos, sin = math.cos(heading), math.sin(heading)
    return np.array([[cos, -sin], [sin, cos]]), heading


class _KindMap:
    """Places of the objects of one kind, and the views that they were found in."""

    def __init__(self, kind: Objects, *, tilts: bool) -> None:
        self.kind = kind
        self.limit = _CIRCLING if kind.motion == "circling" else _TILTED if tilts else EXACT
        self.steady = kind.motion != "circling" and not isinstance(kind, PushBox)
        self.support = 3 if self.limit == EXACT else 5
        self.places = np.zeros((0, 2))  # (k, 2) m, in the frame of the episode
        self.seen = np.zeros(0, np.int64)  # (k,) views that showed them
        self.poses, self.rings = np.zeros((0, 3)), np.zeros((0, LIDAR_BINS))

    def add(self, pose: FloatArray, ring: FloatArray, now: float) -> None:
        """Compare a view with the map, correct the map, and look for more objects."""
        if (isinstance(self.kind, Buttons) and not ring.any()) or (self.kind.motion == "circling" and now < _SETTLED):
            return
        kind, limit = self.kind, self.limit
        if kind.count == 1:
            place = pose[:2] + only_place(ring, pose[2])[None] if ring.any() else self.places
            if not len(self.places) or math.dist(place[0], self.places[0]) > LOOSE * limit * LIDAR_RANGE:  # it moved
                self.places = place
            return
        offsets = self.places - pose[:2]
        right = np.array([excess(ring, x, y, pose[2]) <= LOOSE * limit for x, y in offsets], np.bool_)
        self.places, self.seen = self.places[right], self.seen[right]
        self.seen = self.seen + explaining(self.places, pose, ring, limit)
        if len(self.poses) and math.dist(self.poses[-1, :2], pose[:2]) < APART:
            self.poses, self.rings = self.poses[:-1], self.rings[:-1]
        self.poses, self.rings = np.vstack([self.poses, pose]), np.vstack([self.rings, ring])
        views = _VIEWS // 2 if kind.motion == "circling" else _VIEWS
        self.poses, self.rings = self.poses[-views:], self.rings[-views:]
        room = 2.0 * kind.keepout - APART if kind.motion != "sliding" else 0.0
        for _ in range(kind.count):
            if not unexplained(self.places, pose, ring, limit).any():
                return
            # If all are known and another one is found, the least seen was wrong.
            kept = np.arange(len(self.places)) != (self.seen.argmin() if len(self.places) == kind.count else -1)
            place, seen = find_object(self.places[kept], self.poses, self.rings, limit, self.support, room)
            if not seen:
                return
            self.places, self.seen = np.vstack([self.places[kept], place]), np.append(self.seen[kept], seen)

    def fits(self, place: FloatArray) -> bool:
        """Return whether an object at this place would have been hidden in all views."""
        return bool(support_of(place[0], place[1], self.poses, self.rings, self.limit) >= 0)


class SceneMemory:
    """Where the robot of one world has come to in its episode, and the objects that it has seen.

    The frame is that of the arena, with the origin where the memory began.
    """

    def __init__(self, task: Task, plan: CompiledTask) -> None:
        self.task, self.plan = task, plan
        self._last: FloatArray | None = None  # observation
        self._velocity, self._steps = np.zeros(2), 0
        self._begin()

    def _begin(self) -> None:
        self.maps = {kind.name: _KindMap(kind, tilts=self.plan.free_robot) for kind in self.task.objects}
        self.robot = np.zeros(2)  # m, of the frame

    def observe(self, observation: FloatArray, steps: int) -> None:
        """Take notice of an observation after so many control steps of the episode; of the same one only once."""
        if self._last is not None and np.array_equal(observation, self._last):
            self._steps = steps
            return
        if self._last is None or steps <= self._steps:
            self._begin()
            self._velocity, self._steps = np.zeros(2), steps
        self._last = observation.copy()
        turn, heading = heading_of(observation)
        velocity = turn @ observation[3:5]
        now = steps * SUBSTEPS * self.plan.timestep
        way = 0.5 * (velocity + self._velocity) * (steps - self._steps) * SUBSTEPS * self.plan.timestep
        self._velocity, self._steps = velocity, steps
        rings = {name: observation[start : start + LIDAR_BINS] for name, start in self.task.lidar_starts.items()}
        if not self._locate(self.robot + way, heading, rings):
            return  # the map would suffer
        for name, known in self.maps.items():
            known.add(np.array([*(self.robot - self._shift(known.kind, now)), heading]), rings[name], now)

    def offsets(self, kind: Objects) -> FloatArray:
        """Return the places (k, 2) of the objects that are known, from the robot."""
        now = self._steps * SUBSTEPS * self.plan.timestep
        return np.asarray(self.maps[kind.name].places + self._shift(kind, now) - self.robot)

    def may_hide(self, kind: Objects, offset: FloatArray) -> bool:
        """Return whether an object at this offset (2,) from the robot would have been hidden so far."""
        now = self._steps * SUBSTEPS * self.plan.timestep
        return self.maps[kind.name].fits(self.robot + offset - self._shift(kind, now))

    def _locate(self, robot: FloatArray, heading: float, rings: dict[str, FloatArray]) -> bool:
        """Set the place of the robot, which is near `robot`, by the objects that are known; return whether it is sure.

        If most objects are not where they should be, the map begins anew.
        """
        self.robot = robot
        steady = [known for known in self.maps.values() if known.steady and len(known.places)]
        if not steady:
            return True
        places = np.concatenate([known.places for known in steady])
        seen = np.concatenate([np.tile(rings[known.kind.name], (len(known.places), 1)) for known in steady])
        single = [known for known in steady if known.kind.count == 1 and rings[known.kind.name].any()]
        guesses = [known.places - only_place(rings[known.kind.name], heading) for known in single]
        guess = np.concatenate([np.zeros((0, 2)), *guesses])
        self.robot, explained = locate(places, seen, robot, heading, guess, steady[0].limit)
        if explained:
            return True
        if (
            np.mean([excess(ring, x, y, heading) > _LOST for (x, y), ring in zip(places - robot, seen, strict=True)])
            > 0.5
        ):
            self._begin()
            return True
        return False

    def _shift(self, kind: Objects, now: float) -> FloatArray:
        """Return how far a circling object is from the middle of its circle."""
        travel = float(getattr(kind, "travel", 0.0)) if kind.motion == "circling" else 0.0
        return travel * np.array([math.sin(now - LAG), math.cos(now - LAG)])
