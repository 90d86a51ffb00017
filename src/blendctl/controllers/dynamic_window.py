"""Choose the motion that is worth most, by a model of the robot: the compiled part of the dynamic window approach.

Every motion is simulated for a second or two: first a command, then one of several ways on towards the target. Its
worth, in metres, is the progress, minus what the time inside and near obstacles costs, plus what is left of the time
when it arrives.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.controllers.free_direction import TURN, obstacle_places
from blendctl.lidar_ring import LIDAR_BINS

# Look-ahead networks that ship know a controller by its settings; with other constants here, train them again.
COURSES = 24  # first directions of a robot that slides
AIMS = (2.0, 0.6)  # m/s, velocities that it is steered to first: more than it reaches, or hardly any, to turn
WHEEL_LEVELS = 5  # first commands of each wheel, from full reverse to full speed
SPREAD = 0.5  # rad between them
# s per step; steps of the first command and of both; ways on to each side of the target
SLIDING_PLAN = (0.05, 10, 18, 3)
WHEELED_PLAN = (0.08, 6, 20, 2)
NEAR_PRICE = 2.0  # m per second at an obstacle's edge; linear in the distance, 0 at the margin
TIME_WORTH = 2.5  # m per second that is left on arrival
NEARBY = 2.0  # m: obstacles that are farther away do not count
SAME_PLACE = 0.15  # m: the target's own body
TURNING = 10.0  # rad/s per rad, as robots that slide are steered
EITHER_END = 0.5  # share of the velocity's error aside; smaller ones ahead leave it to the yaw rate where to turn
SEEKING = 2.0  # share of full turn per rad, of a robot on wheels

# Entries of a simulated state: place, heading, velocity, yaw rate, cost so far, time left on arrival.
X, Y, COS, SIN, HEADING, FORWARD, LEFT, YAW_RATE, HARM, TIME_LEFT, ENTRIES = range(11)


@compiled
def window_commands(
    rows: FloatArray,
    starts: NDArray[np.int64],
    radii: FloatArray,
    own: FloatArray,
    turn: float,
    target: tuple[FloatArray, FloatArray],
    velocity: tuple[FloatArray, FloatArray, FloatArray],
    reach: float,
    wheels: bool,
    motion: tuple[float, float, float, float],
    gains: tuple[float, float],
    price: float,
    margin: float,
) -> FloatArray:
    """Return forward speed (m/s) and yaw rate (rad/s) to steer to, or right and left command of wheels, (n, 2).

    Args:
        rows: Observations, (n, observation_size).
        starts: Index of the first bin of each lidar that shows obstacles.
        radii: Distance from their centres within which they cost, per lidar.
        own: Distance from the target within which an obstacle is the target itself, per lidar.
        turn: Angle from the forward direction to the first bin.
        target: Distance and angle, (n,) each.
        velocity: Forward and left (m/s), yaw rate (rad/s), (n,) each.
        reach: Distance at which the robot has arrived.
        wheels: Whether the robot has two driven wheels; otherwise it slides.
        motion: Top speed (m/s), time constant of the speed (s), top yaw rate (rad/s), pivot (m).
        gains: Share of full thrust per m/s, and of full turn per rad/s, as the robot is steered.
        price: Metres of progress that a second inside an obstacle costs.
        margin: Distance from an obstacle that costs less and less.
    """
    out = np.empty((len(rows), 2))
    places = np.empty((3, len(starts) * LIDAR_BINS))  # x, y, radius
    seen_x, seen_y = np.empty(LIDAR_BINS), np.empty(LIDAR_BINS)
    start, first, state = np.empty(ENTRIES), np.empty(ENTRIES), np.empty(ENTRIES)
    step, early, all_steps, ways = WHEELED_PLAN if wheels else SLIDING_PLAN
    rest = all_steps - early
    candidates = WHEEL_LEVELS * WHEEL_LEVELS if wheels else len(AIMS) * COURSES
    for row in range(len(rows)):
        distance, angle = target[0][row], target[1][row]
        x, y = distance * math.cos(angle), distance * math.sin(angle)
        count = 0
        for ring in range(len(starts)):
            seen = obstacle_places(rows[row], starts[ring : ring + 1], turn, x, y, own[ring], seen_x, seen_y)
            for i in range(seen):
                if seen_x[i] * seen_x[i] + seen_y[i] * seen_y[i] < NEARBY * NEARBY:
                    places[0, count], places[1, count], places[2, count] = seen_x[i], seen_y[i], radii[ring]
                    count += 1
        start[:] = 0.0
        start[COS], start[TIME_LEFT] = 1.0, -1.0
        start[FORWARD], start[LEFT], start[YAW_RATE] = velocity[0][row], velocity[1][row], velocity[2][row]
        if not wheels:
            start[LEFT] += motion[3] * start[YAW_RATE]  # of the point around which it turns
        best = -np.inf
        out[row, 0], out[row, 1] = (0.0, 0.0) if wheels else (angle, AIMS[0])  # which stay if nothing is finite
        for i in range(candidates):
            if wheels:
                one = 1.0 - 2.0 * (i // WHEEL_LEVELS) / (WHEEL_LEVELS - 1)
                other = 1.0 - 2.0 * (i % WHEEL_LEVELS) / (WHEEL_LEVELS - 1)
                a, b = one, other
            else:
                one, other = angle + (i % COURSES) * TURN / COURSES, AIMS[i // COURSES]
                a, b = other * math.cos(one), other * math.sin(one)
            first[:] = start
            _simulate(first, early, step, wheels, False, a, b, motion, gains, places, count, x, y, reach, price, margin)
            for way in range(-ways, ways + 1):
                state[:] = first
                course = angle + way * SPREAD
                a, b = (course, 0.0) if wheels else (AIMS[0] * math.cos(course), AIMS[0] * math.sin(course))
                _simulate(
                    state, rest, step, wheels, True, a, b, motion, gains, places, count, x, y, reach, price, margin
                )
                if state[TIME_LEFT] >= 0.0:
                    worth = distance - reach + TIME_WORTH * state[TIME_LEFT]
                else:
                    left_x, left_y = state[X] - x, state[Y] - y
                    worth = distance - math.sqrt(left_x * left_x + left_y * left_y)
                worth -= state[HARM]
                if worth > best:
                    best, out[row, 0], out[row, 1] = worth, one, other
        if not wheels:
            course, aim = out[row, 0], out[row, 1]
            out[row, 0] = aim * math.cos(course)
            ahead, aside = out[row, 0] - start[FORWARD], aim * math.sin(course) - start[LEFT]
            if abs(ahead) < EITHER_END * abs(aside):
                out[row, 1] = TURNING if start[YAW_RATE] >= 0.0 else -TURNING
            else:
                out[row, 1] = TURNING * math.atan2(aside if ahead > 0.0 else -aside, abs(ahead))
    return out


@compiled
def _simulate(
    state: FloatArray,
    steps: int,
    step: float,
    wheels: bool,
    seeking: bool,
    a: float,
    b: float,
    motion: tuple[float, float, float, float],
    gains: tuple[float, float],
    places: FloatArray,
    count: int,
    target_x: float,
    target_y: float,
    reach: float,
    price: float,
    margin: float,
) -> None:
    """Advance a state, until it arrives. a, b: the velocity to reach, the wheels' commands, or the heading to seek."""
    if state[TIME_LEFT] >= 0.0:
        state[TIME_LEFT] += steps * step
        return
    top_speed, lag, top_yaw, _ = motion
    share = min(step / lag, 1.0)
    for k in range(steps):
        if wheels:
            right, left = a, b
            if seeking:
                error = (a - state[HEADING] + math.pi) % TURN - math.pi
                twist = min(max(SEEKING * error, -1.0), 1.0)
                both = min(2.0 * (1.0 - abs(twist)), 1.0)
                right, left = min(max(both + twist, -1.0), 1.0), min(max(both - twist, -1.0), 1.0)
            state[FORWARD] += share * (0.5 * top_speed * (right + left) - state[FORWARD])
            state[YAW_RATE] += share * (0.5 * top_yaw * (right - left) - state[YAW_RATE])
            _turn(state, step * state[YAW_RATE])
            state[X] += step * state[FORWARD] * state[COS]
            state[Y] += step * state[FORWARD] * state[SIN]
        else:  # forward and left stay those of the start
            error_x, error_y = a - state[FORWARD], b - state[LEFT]
            ahead = error_x * state[COS] + error_y * state[SIN]
            aside = error_y * state[COS] - error_x * state[SIN]
            thrust = top_speed * min(max(gains[0] * ahead, -1.0), 1.0)
            state[FORWARD] += share * (thrust * state[COS] - state[FORWARD])
            state[LEFT] += share * (thrust * state[SIN] - state[LEFT])
            state[X] += step * state[FORWARD]
            state[Y] += step * state[LEFT]
            turning = TURNING * gains[1] * aside  # thrust works both ways, so the nearer end of the robot turns there
            if abs(ahead) < EITHER_END * abs(aside):  # both ends are as near: it turns on
                rate = top_yaw if state[YAW_RATE] >= 0.0 else -top_yaw
            elif abs(turning) >= abs(ahead):
                rate = top_yaw if (turning > 0.0) == (ahead > 0.0) else -top_yaw
            else:
                rate = top_yaw * turning / ahead
            state[YAW_RATE] = rate
            _turn(state, step * rate)
        for i in range(count):
            x, y = state[X] - places[0, i], state[Y] - places[1, i]
            square, edge = x * x + y * y, places[2, i] + margin
            if square < edge * edge:
                away = math.sqrt(square)
                state[HARM] += step * NEAR_PRICE * (edge - away) / margin
                if away < places[2, i]:
                    state[HARM] += step * price
        x, y = state[X] - target_x, state[Y] - target_y
        if x * x + y * y < reach * reach:
            state[TIME_LEFT] = (steps - k - 1) * step
            return


@compiled
def _turn(state: FloatArray, angle: float) -> None:
    """Turn the heading by a small angle: its cosine and sine by their series."""
    cosine, sine = 1.0 - 0.5 * angle * angle, angle * (1.0 - angle * angle / 6.0)
    state[COS], state[SIN] = state[COS] * cosine - state[SIN] * sine, state[SIN] * cosine + state[COS] * sine
    state[HEADING] += angle
