"""Remember where objects are: maps of episodes from their observations, without the robot's true place.

The heading is measured. The way of the robot follows from its speed, corrected by the objects that are known already.
All maps of a batch are arrays, a row per world, so that rows can be copied and a whole batch takes one compiled call.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray
from blendctl.compiled import compiled
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE
from blendctl.scene_map.search import APART, LOOSE, excess, explaining, find_object, locate, only_place, unexplained

LAG = 0.0855  # s, by which a gremlin trails its circle
VIEWS = 24  # observations that are kept for the search of objects
SETTLED = 0.6  # s, until a gremlin has reached its circle
LOST = 0.05  # brightness that an object lacks at least where the robot has lost its way
VELOCITY, MAGNETOMETER = 3, 9  # indices in an observation

IntArray = NDArray[np.int64]


class Kinds(NamedTuple):
    """What the kernels know of the kinds of objects, an entry per kind."""

    start: IntArray  # index of the lidar in an observation
    counts: IntArray
    first: IntArray  # index of its first place
    steady: BoolArray  # it stays where it is
    circling: BoolArray
    dark: BoolArray  # its lidar may be dark for a while
    support: IntArray  # views that must show an object
    limit: FloatArray  # brightness that makes no difference
    room: FloatArray  # m, least distance between two of them
    travel: FloatArray  # m, radius of a circle
    period: float  # s, of a control step


class Maps(NamedTuple):
    """The maps of n worlds. The frame is that of the arena, with the origin where the memory began."""

    last: FloatArray  # (n, observation_size) observation
    begun: BoolArray  # (n,)
    steps: IntArray  # (n,) control steps of the episode
    velocity: FloatArray  # (n, 2) m/s
    robot: FloatArray  # (n, 2) m
    heading: FloatArray  # (n,)
    places: FloatArray  # (n, objects, 2) m
    seen: IntArray  # (n, objects) views that showed them
    known: IntArray  # (n, kinds) objects that are known, the first of their kind
    poses: FloatArray  # (n, kinds, VIEWS, 3) x, y, heading of the views in which objects are searched
    rings: FloatArray  # (n, kinds, VIEWS, LIDAR_BINS)
    views: IntArray  # (n, kinds)
    age: IntArray  # (n,) observations since the map began


@compiled
def shift_of(kinds: Kinds, kind: int, now: float) -> tuple[float, float]:
    """Return how far a circling object is from the middle of its circle, 0 for others."""
    travel = kinds.travel[kind]
    return travel * math.sin(now - LAG), travel * math.cos(now - LAG)


@compiled
def observe_all(kinds: Kinds, maps: Maps, observations: FloatArray, steps: IntArray) -> None:
    """Take notice of observations (n, observation_size) after so many control steps (n,) of the episodes."""
    for row in range(len(observations)):
        observation = observations[row]
        same = maps.begun[row]
        for i in range(len(observation)):
            if not same:
                break
            same = observation[i] == maps.last[row, i]
        if same:
            maps.steps[row] = steps[row]
            continue
        _observe(kinds, maps, row, observation, steps[row])


@compiled
def _forget(maps: Maps, row: int) -> None:
    maps.robot[row] = 0.0
    maps.known[row] = 0
    maps.views[row] = 0
    maps.age[row] = 0


@compiled
def _observe(kinds: Kinds, maps: Maps, row: int, observation: FloatArray, step: int) -> None:
    if not maps.begun[row] or step <= maps.steps[row]:
        _forget(maps, row)
        maps.velocity[row] = 0.0
        maps.steps[row] = step
        maps.begun[row] = True
    maps.last[row] = observation
    heading = math.atan2(-observation[MAGNETOMETER], -observation[MAGNETOMETER + 1])
    cos, sin = math.cos(heading), math.sin(heading)
    vx = cos * observation[VELOCITY] - sin * observation[VELOCITY + 1]
    vy = sin * observation[VELOCITY] + cos * observation[VELOCITY + 1]
    time = (step - maps.steps[row]) * kinds.period
    at = np.empty(2)
    at[0] = maps.robot[row, 0] + 0.5 * (vx + maps.velocity[row, 0]) * time
    at[1] = maps.robot[row, 1] + 0.5 * (vy + maps.velocity[row, 1]) * time
    maps.velocity[row, 0], maps.velocity[row, 1] = vx, vy
    maps.steps[row], maps.heading[row] = step, heading
    if not _locate(kinds, maps, row, observation, at, heading):
        return  # the map would suffer
    maps.age[row] += 1
    now = step * kinds.period
    pose = np.empty(3)
    for kind in range(len(kinds.start)):
        x, y = shift_of(kinds, kind, now)
        pose[0], pose[1], pose[2] = maps.robot[row, 0] - x, maps.robot[row, 1] - y, heading
        ring = observation[kinds.start[kind] : kinds.start[kind] + LIDAR_BINS]
        _add_view(kinds, maps, row, kind, pose, ring, now)


@compiled
def _locate(kinds: Kinds, maps: Maps, row: int, observation: FloatArray, robot: FloatArray, heading: float) -> bool:
    """Set the place of the robot, which is near `robot`, by the objects that are known; return whether it is sure.

    If most objects are not where they should be, the map begins anew.
    """
    maps.robot[row] = robot
    total, single, limit = 0, 0, 0.0
    for kind in range(len(kinds.start)):
        if kinds.steady[kind] and maps.known[row, kind]:
            limit = kinds.limit[kind] if total == 0 else limit
            total += maps.known[row, kind]
            single += kinds.counts[kind] == 1
    if total == 0:
        return True
    places, rings, guesses = np.empty((total, 2)), np.empty((total, LIDAR_BINS)), np.empty((single, 2))
    at, guess = 0, 0
    for kind in range(len(kinds.start)):
        if not kinds.steady[kind]:
            continue
        ring = observation[kinds.start[kind] : kinds.start[kind] + LIDAR_BINS]
        for i in range(maps.known[row, kind]):
            places[at], rings[at] = maps.places[row, kinds.first[kind] + i], ring
            if kinds.counts[kind] == 1 and ring.max() > 0.0:
                guesses[guess] = places[at] - only_place(ring, heading)
                guess += 1
            at += 1
    place, explained = locate(places, rings, robot, heading, guesses[:guess], limit)
    maps.robot[row] = place
    if explained:
        return True
    lost = 0
    for k in range(total):
        lost += excess(rings[k], places[k, 0] - robot[0], places[k, 1] - robot[1], heading) > LOST
    if 2 * lost > total:
        _forget(maps, row)
        return True
    return False


@compiled
def _add_view(kinds: Kinds, maps: Maps, row: int, kind: int, pose: FloatArray, ring: FloatArray, now: float) -> None:
    """Compare a view with the map of a kind, correct the map, and look for more objects."""
    lit = ring.max() > 0.0
    if (kinds.dark[kind] and not lit) or (kinds.circling[kind] and now < SETTLED):
        return
    first, count, limit = kinds.first[kind], kinds.counts[kind], kinds.limit[kind]
    places, seen = maps.places[row, first : first + count], maps.seen[row, first : first + count]
    if count == 1:
        if lit:
            place = pose[:2] + only_place(ring, pose[2])
            moved = math.hypot(place[0] - places[0, 0], place[1] - places[0, 1]) > LOOSE * limit * LIDAR_RANGE
            if moved or not maps.known[row, kind]:
                places[0] = place
                maps.known[row, kind] = 1
        return
    known = 0
    for k in range(maps.known[row, kind]):
        if excess(ring, places[k, 0] - pose[0], places[k, 1] - pose[1], pose[2]) <= LOOSE * limit:
            places[known], seen[known] = places[k], seen[k]
            known += 1
    shown = explaining(places[:known], pose, ring, limit)
    for k in range(known):
        seen[k] += shown[k]
    poses, rings, views = maps.poses[row, kind], maps.rings[row, kind], maps.views[row, kind]
    if views and math.hypot(poses[views - 1, 0] - pose[0], poses[views - 1, 1] - pose[1]) < APART:
        views -= 1
    most = VIEWS // 2 if kinds.circling[kind] else VIEWS
    if views == most:
        for i in range(most - 1):
            poses[i], rings[i] = poses[i + 1], rings[i + 1]
        views -= 1
    poses[views], rings[views] = pose, ring
    views += 1
    maps.views[row, kind] = views
    for _ in range(count):
        if not unexplained(places[:known], pose, ring, limit).any():
            break
        # If all are known and another one is found, the least seen was wrong.
        kept = np.ones(known, np.bool_)
        if known == count:
            kept[seen[:known].argmin()] = False
        place, shows = find_object(
            places[:known][kept], poses[:views], rings[:views], limit, kinds.support[kind], kinds.room[kind]
        )
        if not shows:
            break
        left = 0
        for k in range(known):
            if kept[k]:
                places[left], seen[left] = places[k], seen[k]
                left += 1
        places[left], seen[left] = place, shows
        known = left + 1
    maps.known[row, kind] = known
