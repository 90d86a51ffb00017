"""Choose a free direction to a target by the lidars: the compiled part of the vector field histogram."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE

# Look-ahead networks that ship know a controller by its settings; with other constants here, train them again.
DIRECTIONS = 48  # that are compared
KEEP_WEIGHT = 0.4  # of the angle to the velocity, against the angle to the target
BLOCKED_WEIGHT = 3.0  # of a blocked way, against the angle to the target
TURN = 2.0 * math.pi


@compiled
def free_directions(
    rows: FloatArray,
    starts: NDArray[np.int64],
    turn: float,
    distance: FloatArray,
    angle: FloatArray,
    forward: FloatArray,
    left: FloatArray,
    clearance: float,
    look: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the best direction (rad, left is positive) and how far it is free, as a share of what is looked at.

    Args:
        rows: Observations, (n, observation_size).
        starts: Index of the first bin of each lidar that shows obstacles.
        turn: Angle from the forward direction to the first bin.
        distance: Of the target, (n,).
        angle: Of the target, (n,).
        forward: Speed, (n,).
        left: Speed, (n,).
        clearance: Directions that pass an obstacle's centre at a smaller distance are blocked.
        look: How far obstacles block.
    """
    n = len(rows)
    chosen, share = np.empty(n), np.empty(n)
    xs, ys = np.empty(len(starts) * LIDAR_BINS), np.empty(len(starts) * LIDAR_BINS)
    for row in range(n):
        chosen[row], share[row] = free_direction(
            rows[row], starts, turn, distance[row], angle[row], forward[row], left[row], clearance, look, xs, ys
        )
    return chosen, share


@compiled
def free_direction(
    row: FloatArray,
    starts: NDArray[np.int64],
    turn: float,
    distance: float,
    angle: float,
    forward: float,
    left: float,
    clearance: float,
    look: float,
    xs: FloatArray,
    ys: FloatArray,
) -> tuple[float, float]:
    """Return the best direction for one observation; see `free_directions`. xs, ys: room for the obstacles' places."""
    looked_at = max(min(look, distance), 0.01)
    count = obstacle_places(
        row, starts, turn, distance * math.cos(angle), distance * math.sin(angle), clearance, xs, ys
    )
    velocity = math.atan2(left, forward)
    momentum = KEEP_WEIGHT * min(math.hypot(forward, left), 1.0)
    best, chosen, share = np.inf, angle, 0.0  # which stays if the observation is not finite
    for i in range(DIRECTIONS):
        direction = i * TURN / DIRECTIONS - math.pi
        free = _free(xs, ys, count, math.cos(direction), math.sin(direction), clearance, looked_at) / looked_at
        score = (
            angle_between(direction, angle)
            + momentum * angle_between(direction, velocity)
            + BLOCKED_WEIGHT * (1.0 - free)
        )
        if score < best:
            best, chosen, share = score, direction, free
    return (angle if angle_between(chosen, angle) < TURN / DIRECTIONS else chosen), share


@compiled
def obstacle_places(
    row: FloatArray,
    starts: NDArray[np.int64],
    turn: float,
    target_x: float,
    target_y: float,
    clearance: float,
    xs: FloatArray,
    ys: FloatArray,
) -> int:
    """Write the places (m, forward and left) of the obstacles, except at the target, and return their number.

    An object also shows in the two bins beside its own, in shares that tell where in the bin it is. So of two objects
    of a kind in neighbouring bins only the nearer one is found.
    """
    count = 0
    for start in starts:
        for i in range(LIDAR_BINS):
            reading = row[start + i]
            before, after = row[start + (i - 1) % LIDAR_BINS], row[start + (i + 1) % LIDAR_BINS]
            if reading <= 0.0 or reading < before or reading < after:
                continue
            share = after / reading if after < before else 1.0 - before / reading
            bearing = (i + share) * TURN / LIDAR_BINS + turn
            away = LIDAR_RANGE * (1.0 - reading)
            x, y = away * math.cos(bearing), away * math.sin(bearing)
            if math.hypot(x - target_x, y - target_y) >= clearance:
                xs[count], ys[count] = x, y
                count += 1
    return count


@compiled
def _free(xs: FloatArray, ys: FloatArray, count: int, x: float, y: float, clearance: float, free: float) -> float:
    """Return how far (m) the direction (x, y) is free, at most `free`."""
    for j in range(count):
        square = xs[j] * xs[j] + ys[j] * ys[j]
        along = x * xs[j] + y * ys[j]
        if square < clearance * clearance:  # too near already: only the directions that lead away are free
            if along > -0.2 * math.sqrt(square):
                return 0.0
        elif along > 0.0:
            room = clearance * clearance - (square - along * along)
            if room > 0.0:
                free = min(free, along - math.sqrt(room))
    return max(free, 0.0)


@compiled
def angle_between(one: float, other: float) -> float:
    return abs((one - other + math.pi) % TURN - math.pi)
