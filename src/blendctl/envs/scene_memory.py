"""Remember where objects are: a map of one episode from its observations, without the robot's true place.

The lidar shows the distance of the nearest object of a bin exactly, its direction only where no other object lights the
neighbouring bins. Seen from several places, the distances alone fix where an object is. The heading is measured; the
way of the robot follows from its speed, corrected by objects that are known already.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blendctl.compiled import compiled
from blendctl.envs.compiled_task import SUBSTEPS, CompiledTask, FloatArray
from blendctl.envs.lidar import LIDAR_RANGE
from blendctl.envs.objects import Buttons, Objects, PushBox
from blendctl.envs.tasks import LIDAR_BINS, Task

_BIN = 2.0 * math.pi / LIDAR_BINS
LAG = 0.0855  # s, by which a gremlin trails its circle
_SETTLED = 0.6  # s, until it has reached it
_VIEWS = 24  # observations that are kept for the search of objects
_APART = 0.02  # m, least way of the robot between two of them
# Brightness that makes no difference, of a robot that stays upright, of one that tilts, and of circling objects.
_EXACT, _TILTED, _CIRCLING = 1e-5, 5e-4, 2e-3
_LOOSE = 5.0  # times as much contradicts an object
_TRUSTED = 6  # one in so many views may be wrong, unless the robot stays upright
_EDGE = 0.02  # share of a bin at its edges
_DRIFT = 0.1  # m, largest error of the way between two observations


@compiled
def light(x: float, y: float, heading: float) -> tuple[int, float, float]:
    """Return the bin of an object at (x, y) from the robot, its brightness, and where in the bin it is, 0 to 1."""
    place = ((math.atan2(y, x) - heading) % (2.0 * math.pi)) / _BIN
    at = int(place)
    return at % LIDAR_BINS, max(0.0, 1.0 - math.hypot(x, y) / LIDAR_RANGE), place - at


@compiled
def excess(ring: FloatArray, x: float, y: float, heading: float) -> float:
    """Return how much brighter than a ring (16,) an object at (x, y) from the robot would be in its three bins."""
    at, bright, share = light(x, y, heading)
    middle = bright - ring[at]
    after = share * bright - ring[(at + 1) % LIDAR_BINS]
    before = (1.0 - share) * bright - ring[(at - 1) % LIDAR_BINS]
    return max(middle, after, before)


@compiled
def _support(x: float, y: float, poses: FloatArray, rings: FloatArray, limit: float) -> int:
    """Count the views whose brightest bin an object at (x, y) explains; -1 if it should have been seen and was not."""
    count, missing = 0, 0
    for i in range(len(poses)):
        dx, dy, heading = x - poses[i, 0], y - poses[i, 1], poses[i, 2]
        if excess(rings[i], dx, dy, heading) > _LOOSE * limit:
            missing += 1
            if limit == _EXACT or _TRUSTED * missing > len(poses):
                return -1
            continue
        at, bright, _ = light(dx, dy, heading)
        count += bright > limit and abs(bright - rings[i, at]) < limit
    return count


@compiled
def _unexplained(places: FloatArray, pose: FloatArray, ring: FloatArray, limit: float) -> FloatArray:
    """Return a ring (16,) that is 0 in the bins that the places (k, 2) explain."""
    left = ring.copy()
    for k in range(len(places)):
        at, bright, share = light(places[k, 0] - pose[0], places[k, 1] - pose[1], pose[2])
        for where, value in ((at, bright), (at + 1, share * bright), (at - 1, (1.0 - share) * bright)):
            if value > ring[where % LIDAR_BINS] - _LOOSE * limit:
                left[where % LIDAR_BINS] = 0.0
    return left


@compiled
def find_object(
    known: FloatArray, poses: FloatArray, rings: FloatArray, limit: float, support: int, room: float
) -> tuple[FloatArray, int]:
    """Return the place (2,) of one more object, and how many views show it; 0 if none is found.

    Known are the places (k, 2) of others, and the views: poses (v, 3) as x, y, heading and their rings (v, 16), the
    latest last. An object lies in a direction that both neighbours of its bin agree on, or at the measured distances
    from places of the robot, `support` of them at least.
    """
    best, most, here = np.zeros(2), 0, poses[-1]
    left = np.empty_like(rings)
    for i in range(len(poses)):
        left[i] = _unexplained(known, poses[i], rings[i], limit)
    for at in range(LIDAR_BINS):
        bright = left[-1, at]
        if bright <= limit:
            continue
        far = LIDAR_RANGE * (1.0 - bright)
        low = 1.0 - rings[-1, (at - 1) % LIDAR_BINS] / bright
        high = rings[-1, (at + 1) % LIDAR_BINS] / bright
        if abs(high - low) * bright < limit and _EDGE < low < 1.0 - _EDGE:  # a leak lies at an edge
            angle = here[2] + (at + 0.5 * (low + high)) * _BIN
            x, y = here[0] + far * math.cos(angle), here[1] + far * math.sin(angle)
            count = _support(x, y, poses, rings, limit)
            if count >= 0 and count + support > most and _has_room(x, y, known, room):
                best[0], best[1], most = x, y, count + support
        for i in range(len(poses) - 1):
            dx, dy = poses[i, 0] - here[0], poses[i, 1] - here[1]
            way = math.hypot(dx, dy)
            if way < _APART:
                continue
            for other in range(LIDAR_BINS):
                if left[i, other] <= limit:
                    continue
                away = LIDAR_RANGE * (1.0 - left[i, other])
                along = (far * far - away * away + way * way) / (2.0 * way)
                if abs(along) > far:
                    continue
                side = math.sqrt(far * far - along * along)
                for sign in (-1.0, 1.0):
                    x = here[0] + (along * dx - sign * side * dy) / way
                    y = here[1] + (along * dy + sign * side * dx) / way
                    if light(x - here[0], y - here[1], here[2])[0] != at:
                        continue
                    count = _support(x, y, poses, rings, limit)
                    if count >= support and count > most and _has_room(x, y, known, room):
                        best[0], best[1], most = x, y, count
    return best, most


@compiled
def _has_room(x: float, y: float, known: FloatArray, room: float) -> bool:
    for k in range(len(known)):
        if math.hypot(x - known[k, 0], y - known[k, 1]) < room:
            return False
    return True


@compiled
def _residuals(
    places: FloatArray, rings: FloatArray, shifts: FloatArray, robot: FloatArray, heading: float
) -> tuple[FloatArray, FloatArray]:
    """Return how much farther (k,) places (k, 2) are seen than they are from the robot, and their directions (k, 2)."""
    errors, directions = np.empty(len(places)), np.empty((len(places), 2))
    for k in range(len(places)):
        x, y = places[k, 0] + shifts[k, 0] - robot[0], places[k, 1] + shifts[k, 1] - robot[1]
        at, bright, _ = light(x, y, heading)
        errors[k] = LIDAR_RANGE * (bright - rings[k, at])
        far = max(math.hypot(x, y), 1e-9)
        directions[k, 0], directions[k, 1] = x / far, y / far
    return errors, directions


@compiled
def _solve(errors: FloatArray, directions: FloatArray, used: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the shift of the robot that the distances of the used objects ask for, by least squares."""
    a, b, c, p, q = 1e-9, 0.0, 1e-9, 0.0, 0.0
    for k in range(len(errors)):
        if used[k]:
            x, y = directions[k]
            a, b, c = a + x * x, b + x * y, c + y * y
            p, q = p - x * errors[k], q - y * errors[k]
    det = a * c - b * b
    return (c * p - b * q) / det, (a * q - b * p) / det


@compiled
def locate(
    places: FloatArray,
    rings: FloatArray,
    shifts: FloatArray,
    robot: FloatArray,
    heading: float,
    guesses: FloatArray,
    limit: float,
) -> tuple[FloatArray, int]:
    """Return the place (2,) of the robot near `robot` that explains most of the objects, and how many.

    Known are their places (k, 2), moved by shifts (k, 2), and the ring of each one's kind (k, 16). Tried are `robot`,
    guesses (g, 2), and the places that two of the objects ask for.
    """
    best, most, least = robot.copy(), -1, np.inf
    count, used = len(places), np.zeros(len(places), np.bool_)
    pairs = count * (count - 1) // 2
    one, two = 0, 0
    for trial in range(1 + len(guesses) + pairs):
        at = robot.copy()
        if 0 < trial <= len(guesses):
            at[:] = guesses[trial - 1]
        elif trial > len(guesses):
            two += 1
            if two == count:
                one, two = one + 1, one + 2
            used[:] = False
            used[one], used[two] = True, True
            for _ in range(3):
                errors, directions = _residuals(places, rings, shifts, at, heading)
                x, y = _solve(errors, directions, used)
                at[0], at[1] = at[0] + x, at[1] + y
        if not math.hypot(at[0] - robot[0], at[1] - robot[1]) <= _DRIFT:
            continue
        errors, _ = _residuals(places, rings, shifts, at, heading)
        right = np.abs(errors) < limit * LIDAR_RANGE
        explained, left = int(right.sum()), float((errors**2 * right).sum())
        if explained > most or (explained == most and left < least):
            best, most, least = at, explained, left
    if most >= 2:
        errors, directions = _residuals(places, rings, shifts, best, heading)
        x, y = _solve(errors, directions, np.abs(errors) < limit * LIDAR_RANGE)
        if math.hypot(x, y) < limit * LIDAR_RANGE:
            best[0], best[1] = best[0] + x, best[1] + y
    return best, max(most, 0)


@compiled
def _explaining(places: FloatArray, pose: FloatArray, ring: FloatArray, limit: float) -> NDArray[np.bool_]:
    """Return which of the places (k, 2) light their bin of a ring as much as it is lit, (k,)."""
    shown = np.zeros(len(places), np.bool_)
    for k in range(len(places)):
        at, bright, _ = light(places[k, 0] - pose[0], places[k, 1] - pose[1], pose[2])
        shown[k] = bright > limit and bright > ring[at] - limit
    return shown


@compiled
def _only_place(ring: FloatArray, heading: float) -> FloatArray:
    """Return the place (2,) of the only object of a ring (16,), from the robot."""
    at = int(ring.argmax())
    angle = heading + (at + ring[(at + 1) % LIDAR_BINS] / ring[at]) * _BIN
    far = LIDAR_RANGE * (1.0 - ring[at])
    return np.array([far * math.cos(angle), far * math.sin(angle)])


def heading_of(observation: FloatArray) -> tuple[FloatArray, float]:
    """Return the turn (2, 2) from the robot's frame to the arena's, and the heading, by the magnetometer."""
    heading = math.atan2(-observation[9], -observation[10])  # the field points along the arena's -y
    cos, sin = math.cos(heading), math.sin(heading)
    return np.array([[cos, -sin], [sin, cos]]), heading


class _KindMap:
    """Places of the objects of one kind, and the views that they were found in."""

    def __init__(self, kind: Objects, *, tilts: bool) -> None:
        self.kind = kind
        self.limit = _CIRCLING if kind.motion == "circling" else _TILTED if tilts else _EXACT
        self.support = 3 if self.limit == _EXACT else 5
        self.places = np.zeros((0, 2))  # (k, 2) m, in the frame of the episode
        self.seen = np.zeros(0, np.int64)  # (k,) views that showed them
        self.poses, self.rings = np.zeros((0, 3)), np.zeros((0, LIDAR_BINS))

    def add(self, pose: FloatArray, ring: FloatArray, now: float) -> None:
        """Compare a view with the map, correct the map, and look for more objects."""
        if (isinstance(self.kind, Buttons) and not ring.any()) or (self.kind.motion == "circling" and now < _SETTLED):
            return
        kind, limit = self.kind, self.limit
        if kind.count == 1:
            if ring.any():
                place = pose[:2] + _only_place(ring, pose[2])[None]
                if not len(self.places) or np.hypot(*(place - self.places)[0]) > 4.0 * limit * LIDAR_RANGE:  # moved
                    self.places, self.seen = place, np.ones(1, np.int64)
            return
        offsets = self.places - pose[:2]
        right = np.array([excess(ring, x, y, pose[2]) <= _LOOSE * limit for x, y in offsets], np.bool_)
        self.places, self.seen = self.places[right], self.seen[right]
        shown = _explaining(self.places, pose, ring, limit)
        self.seen = self.seen + shown
        if len(self.poses) and np.hypot(*(self.poses[-1, :2] - pose[:2])) < _APART:
            self.poses, self.rings = self.poses[:-1], self.rings[:-1]
        self.poses, self.rings = np.vstack([self.poses, pose]), np.vstack([self.rings, ring])
        views = _VIEWS // 2 if kind.motion == "circling" else _VIEWS
        self.poses, self.rings = self.poses[-views:], self.rings[-views:]
        while _unexplained(self.places, pose, ring, limit).any():
            if len(self.places) == kind.count:
                kept = np.arange(kind.count) != self.seen.argmin()
                self.places, self.seen = self.places[kept], self.seen[kept]
            room = 2.0 * kind.keepout - _APART if kind.motion != "sliding" else 0.0
            place, seen = find_object(self.places, self.poses, self.rings, limit, self.support, room)
            if not seen:
                return
            self.places, self.seen = np.vstack([self.places, place]), np.append(self.seen, seen)
            if len(self.places) == kind.count:
                return

    def fits(self, place: FloatArray) -> bool:
        """Return whether an object at this place would have been hidden in all views."""
        return bool(_support(place[0], place[1], self.poses, self.rings, self.limit) >= 0)


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
        self._locate(self.robot + way, heading, rings, now)
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

    def _locate(self, robot: FloatArray, heading: float, rings: dict[str, FloatArray], now: float) -> None:
        """Set the place of the robot, which is near `robot`, by the objects that are known."""
        places, seen, shifts, guesses = [], [], [], []
        for name, known in self.maps.items():
            if isinstance(known.kind, PushBox) or known.kind.motion == "circling" or not rings[name].any():
                continue
            shift = self._shift(known.kind, now)
            for place in known.places:
                places.append(place)
                seen.append(rings[name])
                shifts.append(shift)
                if known.kind.count == 1:
                    guesses.append(place - _only_place(rings[name], heading))
        self.robot = robot
        if places:
            found = locate(
                np.array(places), np.array(seen), np.array(shifts), robot, heading,
                np.array(guesses).reshape(-1, 2), self.maps[next(iter(self.maps))].limit,
            )  # fmt: skip
            self.robot, explained = found
            if not explained:
                self._begin()  # lost

    def _shift(self, kind: Objects, now: float) -> FloatArray:
        """Return how far a circling object is from the middle of its circle."""
        travel = float(getattr(kind, "travel", 0.0)) if kind.motion == "circling" else 0.0
        return travel * np.array([math.sin(now - LAG), math.cos(now - LAG)])
