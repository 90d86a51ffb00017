"""Compute the reward, costs, goal flag and observation of a world after a step."""

from __future__ import annotations

import math

from blendctl.arrays import FloatArray
from blendctl.compiled import compiled
from blendctl.envs.compiled_task import CONTACT, GOAL, INSIDE, MOVING, PUSH, CompiledTask
from blendctl.envs.lidar import see
from blendctl.envs.physics import PhysicsSlot
from blendctl.lidar_ring import LIDAR_BINS

BUTTON_REST = 10  # steps after a press during which buttons cost nothing and are dark
MOVING_SPEED = 1e-4  # m/s, below it a vase is at rest
REWARD_LIMIT = 10.0


@compiled
def _space_distance(ax: float, ay: float, az: float, bx: float, by: float, bz: float) -> float:
    dx = ax - bx
    dy = ay - by
    dz = az - bz
    return math.sqrt(dx * dx + dy * dy + dz * dz)


@compiled
def measure(plan: CompiledTask, slot: PhysicsSlot, xy: FloatArray, distances: FloatArray) -> None:
    """Fill distances (2,): robot to goal, in the plane; or robot to box and box to goal, in space."""
    goal_x = xy[plan.goal, 0]
    goal_y = xy[plan.goal, 1]
    robot = slot.position
    if plan.reward == PUSH:
        at = plan.qpos_at[plan.box]
        x, y, z = slot.qpos[at], slot.qpos[at + 1], slot.qpos[at + 2]
        distances[0] = _space_distance(x, y, z, robot[0], robot[1], robot[2])
        distances[1] = _space_distance(x, y, z, goal_x, goal_y, plan.goal_height)
    else:
        distances[0] = _space_distance(goal_x, goal_y, 0.0, robot[0], robot[1], 0.0)
        distances[1] = 0.0


@compiled
def goal_met(plan: CompiledTask, slot: PhysicsSlot, distances: FloatArray, button: int) -> bool:
    """Return whether the present goal is reached."""
    if plan.reward == GOAL:
        return bool(distances[0] <= plan.goal_radius)
    if plan.reward == PUSH:
        return bool(distances[1] <= plan.goal_radius)
    return bool(slot.sensors[plan.button_sensor + button] > 0.0)


@compiled
def rate(distances: FloatArray, last: FloatArray, met: bool) -> float:
    """Return the reward: the progress since the last step, plus 1 for reaching the goal."""
    reward = float((last[0] - distances[0]) + (last[1] - distances[1]))
    if met:
        reward += 1.0
    return min(max(reward, -REWARD_LIMIT), REWARD_LIMIT)


@compiled
def count_costs(
    plan: CompiledTask, slot: PhysicsSlot, xy: FloatArray, button: int, timer: int, components: FloatArray
) -> float:
    """Fill components (costs,) with 0 or 1 each; return 1 if any of them costs, else 0."""
    total = 0.0
    for c in range(plan.cost_about.shape[0]):
        about, first, count, sensor = plan.cost_about[c]
        raw = 0.0
        for i in range(count):
            if about == INSIDE:
                dx = xy[first + i, 0] - slot.position[0]
                dy = xy[first + i, 1] - slot.position[1]
                raw += max(0.0, plan.cost_radius[c] - math.sqrt(dx * dx + dy * dy))
            elif about == CONTACT:
                raw += slot.sensors[sensor + i]
            elif about == MOVING:
                at = plan.qvel_at[first + i]
                vx, vy, vz = slot.qvel[at], slot.qvel[at + 1], slot.qvel[at + 2]
                speed = math.sqrt(vx * vx + vy * vy + vz * vz)
                if speed >= MOVING_SPEED:
                    raw += speed
            elif i != button and timer == 0:
                raw += slot.sensors[sensor + i]
        components[c] = 1.0 if raw > 0.0 else 0.0
        total += components[c]
    return 1.0 if total > 0.0 else 0.0


@compiled
def observe(plan: CompiledTask, slot: PhysicsSlot, xy: FloatArray, timer: int, obs: FloatArray) -> None:
    """Fill obs (obs_size,): the robot's sensors, then a lidar for each kind of object."""
    at = plan.robot_sensors
    obs[:at] = slot.sensors[:at]
    if plan.ball_sensor >= 0:
        ball = plan.ball_sensor
        obs[at : at + 3] = slot.sensors[ball + 4 : ball + 7]
        _rotation_matrix(slot.sensors[ball : ball + 4], obs[at + 3 : at + 12])
        at += 12
    for s in range(plan.sights.shape[0]):
        first, count, darkens = plan.sights[s]
        bins = obs[at : at + LIDAR_BINS]
        bins[:] = 0.0
        at += LIDAR_BINS
        if darkens and timer != 0:
            continue
        for item in range(first, first + count):
            q = plan.qpos_at[item]
            if q >= 0:
                see(bins, slot.position, slot.rotation, slot.qpos[q], slot.qpos[q + 1])
            else:
                see(bins, slot.position, slot.rotation, xy[item, 0], xy[item, 1])


@compiled
def _rotation_matrix(quat: FloatArray, matrix: FloatArray) -> None:
    """Fill matrix (9,), row-major, from a unit quaternion (w, x, y, z)."""
    w, x, y, z = quat[0], quat[1], quat[2], quat[3]
    matrix[0] = w * w + x * x - y * y - z * z
    matrix[1] = 2.0 * (x * y - w * z)
    matrix[2] = 2.0 * (x * z + w * y)
    matrix[3] = 2.0 * (x * y + w * z)
    matrix[4] = w * w - x * x + y * y - z * z
    matrix[5] = 2.0 * (y * z - w * x)
    matrix[6] = 2.0 * (x * z - w * y)
    matrix[7] = 2.0 * (y * z + w * x)
    matrix[8] = w * w - x * x - y * y + z * z
