"""Push a box to a goal by the lidars: the compiled part of the classical controller `push`.

The box moves where it is pushed from behind. So the robot chooses a direction for the box, drives around it to the
place behind it, and pushes while it keeps to the line through the box.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.controllers.free_direction import (
    BLOCKED_WEIGHT,
    DIRECTIONS,
    KEEP_WEIGHT,
    TURN,
    angle_between,
    free_direction,
    obstacle_places,
)
from blendctl.lidar_ring import LIDAR_BINS

# Look-ahead networks that ship know a controller by its settings; with other constants here, train them again.
BEHIND = 0.6  # m from the box's centre: where a push begins
AHEAD = 0.8  # m: how far the way of the box is looked at
GOAL = 0.3  # m from the goal: where the way of the box ends
CONTACT = 0.35  # m: distance of the centres while the robot pushes
EDGE = 0.1  # m over which an obstacle near a way begins to block it
ROBOT_CLEARANCE = 0.42  # m between the centre of an obstacle and the way of the robot behind the box
BOX_CLEARANCE = 0.6  # m between the centres of the box and of an obstacle that it would hit
LANE = 0.4  # m to the side: where the robot is behind the box
ON_LINE, OFF_LINE = 0.15, 0.35  # m to the side: from full speed to none
SOON = 0.2  # s: the place to the side is judged this far ahead
CENTRE = 3.0  # 1/s, towards the line
RETREAT = 0.4  # m/s, if the robot is too far to the side and near the box
LOOK = 0.3  # m: obstacles that stop a push
FAR = 100.0  # m: no target


@compiled
def push_commands(
    rows: FloatArray,
    around: NDArray[np.int64],
    solid: NDArray[np.int64],
    turn: float,
    goal: tuple[FloatArray, FloatArray],
    box: tuple[FloatArray, FloatArray],
    velocity: tuple[FloatArray, FloatArray],
    speeds: tuple[float, float],
    clearance: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the direction (rad, left is positive) and the speed (m/s) of the robot, (n,) each.

    Args:
        rows: Observations, (n, observation_size).
        around: Index of the first bin of each lidar that shows obstacles, and last that of the box.
        solid: Those of the obstacles that also stop the box.
        turn: Angle from the forward direction to the first bin.
        goal: Distance and angle, (n,) each.
        box: Distance and angle, (n,) each.
        velocity: Forward and left, (n,) each.
        speeds: While pushing and on the way to the box.
        clearance: Of the robot from the centres of obstacles and of the box, on the way to it.
    """
    n = len(rows)
    directions, paces = np.empty(n), np.empty(n)
    avoided = around[:-1]
    xs, ys = np.empty(len(around) * LIDAR_BINS), np.empty(len(around) * LIDAR_BINS)
    solid_xs, solid_ys = np.empty(len(solid) * LIDAR_BINS), np.empty(len(solid) * LIDAR_BINS)
    for row in range(n):
        goal_x, goal_y = goal[0][row] * math.cos(goal[1][row]), goal[0][row] * math.sin(goal[1][row])
        away, at = box[0][row], box[1][row]
        x, y = away * math.cos(at), away * math.sin(at)
        forward, left = velocity[0][row], velocity[1][row]
        count = obstacle_places(rows[row], avoided, turn, FAR, 0.0, 0.0, xs, ys)
        solid_count = obstacle_places(rows[row], solid, turn, FAR, 0.0, 0.0, solid_xs, solid_ys)
        angle = _push_angle(
            xs[:count], ys[:count], solid_xs[:solid_count], solid_ys[:solid_count], x, y, goal_x - x, goal_y - y, at
        )
        ux, uy = math.cos(angle), math.sin(angle)
        behind = x * ux + y * uy  # m, how far the robot is behind the box
        side_x, side_y = behind * ux - x, behind * uy - y  # from the line through the box to the robot
        side = math.hypot(side_x, side_y)
        if behind > 0.2 and side < min(LANE, 1.2 * behind):
            outward = (forward * side_x + left * side_y) / max(side, 1e-6)
            soon = abs(side + SOON * outward)
            pace = speeds[0] * min(max((OFF_LINE - soon) / (OFF_LINE - ON_LINE), 0.0), 1.0)
            if soon > OFF_LINE and away < BEHIND - 0.05:
                pace = -RETREAT
            centre = CENTRE * min(max((away - 0.38) / 0.15, 0.3), 1.0)  # in contact the box cannot be passed
            want_x, want_y = pace * ux - centre * side_x, pace * uy - centre * side_y
            wanted = math.atan2(want_y, want_x)
            direction, free = free_direction(
                rows[row], avoided, turn, FAR, wanted, forward, left, 0.9 * clearance, LOOK, xs, ys
            )
            directions[row] = wanted if free > 0.99 else direction
            paces[row] = math.hypot(want_x, want_y) * min(0.2 + free, 1.0)
        else:
            start_x, start_y = x - BEHIND * ux, y - BEHIND * uy
            left_to_go = math.hypot(start_x, start_y)
            directions[row], free = free_direction(
                rows[row],
                around,
                turn,
                left_to_go,
                math.atan2(start_y, start_x),
                forward,
                left,
                clearance,
                BEHIND,
                xs,
                ys,
            )
            paces[row] = min(speeds[1] * min(0.3 + free, 1.0), 0.3 + 2.5 * left_to_go)
    return directions, paces


@compiled
def _push_angle(
    xs: FloatArray,
    ys: FloatArray,
    solid_xs: FloatArray,
    solid_ys: FloatArray,
    box_x: float,
    box_y: float,
    goal_x: float,
    goal_y: float,
    present: float,
) -> float:
    """Return the direction in which to push the box, by the places of obstacles; the goal is given from the box.

    Directions are compared by their angle to the goal's and to the `present` one from the robot to the box, and by
    whether obstacles block the way of the robot or, if they are solid, of the box.
    """
    straight = math.atan2(goal_y, goal_x)
    way = min(AHEAD, max(math.hypot(goal_x, goal_y) - GOAL, 0.05))  # of the box
    best, chosen = np.inf, straight
    for i in range(DIRECTIONS):
        angle = straight + i * TURN / DIRECTIONS
        ux, uy = math.cos(angle), math.sin(angle)
        start_x, start_y = box_x - BEHIND * ux, box_y - BEHIND * uy
        blocked = 0.0
        for x, y in zip(xs, ys):  # noqa: B905  # numba's zip has no `strict`
            share = _blocked(x - start_x, y - start_y, ux, uy, BEHIND + way - CONTACT, ROBOT_CLEARANCE)
            blocked = max(blocked, share)
        for x, y in zip(solid_xs, solid_ys):  # noqa: B905
            if (x - box_x) * ux + (y - box_y) * uy > 0.0:  # a box that moves away from it is free
                blocked = max(blocked, _blocked(x - box_x, y - box_y, ux, uy, way, BOX_CLEARANCE))
        score = angle_between(angle, straight) + KEEP_WEIGHT * angle_between(angle, present) + BLOCKED_WEIGHT * blocked
        if score < best:
            best, chosen = score, angle
    return chosen


@compiled
def _blocked(x: float, y: float, ux: float, uy: float, way: float, clearance: float) -> float:
    """Return how much an obstacle at (x, y) blocks a way that begins at 0, from 0 to 1."""
    along = min(max(x * ux + y * uy, 0.0), way)
    return min(max((clearance - math.hypot(x - along * ux, y - along * uy)) / EDGE, 0.0), 1.0)
