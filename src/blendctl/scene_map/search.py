"""Search for objects in several views of a lidar: candidates at measured distances, and how well each one fits.

A view is a pose of the robot, as x, y and heading, with a ring of sixteen bins. The lidar shows the distance of the
nearest object of a bin exactly, its direction only where no other object lights the neighbouring bins. Seen from
several places, the distances alone fix where an object is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE

EXACT = 1e-5  # brightness that makes no difference to a robot that stays upright
LOOSE = 5.0  # times the limit of a difference contradict an object
APART = 0.02  # m, least way of the robot between two views
_BIN = 2.0 * math.pi / LIDAR_BINS
TRUSTED = 6  # one in so many views may be wrong, unless the robot stays upright
EDGE = 0.02  # share of a bin at its edges
DRIFT = 0.1  # m, largest error of the robot's way between two views


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
    return float(max(middle, after, before))


@compiled
def support_of(x: float, y: float, poses: FloatArray, rings: FloatArray, limit: float) -> int:
    """Count the views whose brightest bin an object at (x, y) explains; -1 if it should have been seen and was not."""
    count, missing = 0, 0
    for i in range(len(poses)):
        dx, dy, heading = x - poses[i, 0], y - poses[i, 1], poses[i, 2]
        if excess(rings[i], dx, dy, heading) > LOOSE * limit:
            missing += 1
            if limit == EXACT or TRUSTED * missing > len(poses):
                return -1
            continue
        at, bright, _ = light(dx, dy, heading)
        count += bright > limit and abs(bright - rings[i, at]) < limit
    return count


@compiled
def unexplained(places: FloatArray, pose: FloatArray, ring: FloatArray, limit: float) -> FloatArray:
    """Return a ring (16,) that is 0 in the bins that the places (k, 2) explain."""
    left = ring.copy()
    for k in range(len(places)):
        at, bright, share = light(places[k, 0] - pose[0], places[k, 1] - pose[1], pose[2])
        for where, value in ((at, bright), (at + 1, share * bright), (at - 1, (1.0 - share) * bright)):
            if value > ring[where % LIDAR_BINS] - LOOSE * limit:
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
        left[i] = unexplained(known, poses[i], rings[i], limit)
    for at in range(LIDAR_BINS):
        bright = left[-1, at]
        if bright <= limit:
            continue
        far = LIDAR_RANGE * (1.0 - bright)
        low = 1.0 - rings[-1, (at - 1) % LIDAR_BINS] / bright
        high = rings[-1, (at + 1) % LIDAR_BINS] / bright
        if abs(high - low) * bright < limit and EDGE < low < 1.0 - EDGE:  # a leak lies at an edge
            angle = here[2] + (at + 0.5 * (low + high)) * _BIN
            x, y = here[0] + far * math.cos(angle), here[1] + far * math.sin(angle)
            count = support_of(x, y, poses, rings, limit)
            if count >= 0 and count + support > most and _has_room(x, y, known, room):
                best[0], best[1], most = x, y, count + support
        for i in range(len(poses) - 1):
            dx, dy = poses[i, 0] - here[0], poses[i, 1] - here[1]
            way = math.hypot(dx, dy)
            if way < APART:
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
                    count = support_of(x, y, poses, rings, limit)
                    if count >= support and count > most and _has_room(x, y, known, room):
                        best[0], best[1], most = x, y, count
    return best, most


@compiled
def _has_room(x: float, y: float, known: FloatArray, room: float) -> bool:
    nearest = np.inf
    for k in range(len(known)):
        nearest = min(nearest, math.hypot(x - known[k, 0], y - known[k, 1]))
    return nearest >= room


@compiled
def _residuals(
    places: FloatArray, rings: FloatArray, robot: FloatArray, heading: float
) -> tuple[FloatArray, FloatArray]:
    """Return how much farther (k,) places (k, 2) are seen than they are from the robot, and their directions (k, 2).

    Infinite where a place is out of range.
    """
    errors, directions = np.empty(len(places)), np.empty((len(places), 2))
    for k in range(len(places)):
        x, y = places[k, 0] - robot[0], places[k, 1] - robot[1]
        at, bright, _ = light(x, y, heading)
        errors[k] = LIDAR_RANGE * (bright - rings[k, at]) if bright > 0.0 else np.inf
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
    robot: FloatArray,
    heading: float,
    guesses: FloatArray,
    limit: float,
) -> tuple[FloatArray, int]:
    """Return the place (2,) of the robot near `robot` that explains most of the objects, and how many.

    Objects that should be seen from there and are not count against it.

    Known are their places (k, 2) and the ring of each one's kind (k, 16). Tried are `robot`, guesses (g, 2), and the
    places that two of the objects ask for.
    """
    count, used = len(places), np.zeros(len(places), np.bool_)
    best, most, least, found = robot.copy(), -count - 1, np.inf, 0
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
                errors, directions = _residuals(places, rings, at, heading)
                x, y = _solve(errors, directions, used)
                at[0], at[1] = at[0] + x, at[1] + y
        if not math.hypot(at[0] - robot[0], at[1] - robot[1]) <= DRIFT:
            continue
        errors, _ = _residuals(places, rings, at, heading)
        right = np.abs(errors) < limit * LIDAR_RANGE
        score, left = int(right.sum()), float((errors[right] ** 2).sum())
        for k in range(count):
            score -= excess(rings[k], places[k, 0] - at[0], places[k, 1] - at[1], heading) > LOOSE * limit
        if score > most or (score == most and left < least):
            best, most, least, found = at, score, left, int(right.sum())
    if found >= 2:
        errors, directions = _residuals(places, rings, best, heading)
        x, y = _solve(errors, directions, np.abs(errors) < limit * LIDAR_RANGE)
        if math.hypot(x, y) < limit * LIDAR_RANGE:
            best[0], best[1] = best[0] + x, best[1] + y
    return best, found


@compiled
def explaining(places: FloatArray, pose: FloatArray, ring: FloatArray, limit: float) -> NDArray[np.bool_]:
    """Return which of the places (k, 2) light their bin of a ring as much as it is lit, (k,)."""
    shown = np.zeros(len(places), np.bool_)
    for k in range(len(places)):
        at, bright, _ = light(places[k, 0] - pose[0], places[k, 1] - pose[1], pose[2])
        shown[k] = bright > limit and bright > ring[at] - limit
    return shown


@compiled
def only_place(ring: FloatArray, heading: float) -> FloatArray:
    """Return the place (2,) of the only object of a ring (16,), from the robot."""
    at = int(ring.argmax())
    angle = heading + (at + ring[(at + 1) % LIDAR_BINS] / ring[at]) * _BIN
    far = LIDAR_RANGE * (1.0 - ring[at])
    return np.array([far * math.cos(angle), far * math.sin(angle)])
