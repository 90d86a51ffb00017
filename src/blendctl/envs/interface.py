"""Describe the entries of a world's observation and action: names, units, bounds, control period."""

from __future__ import annotations

from typing import Any

from blendctl.envs.catalog import find_task
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.spaces import SENSOR_LIMIT
from blendctl.lidar_ring import LIDAR_BINS

SENSORS = (("accelerometer", "m/s^2"), ("velocimeter", "m/s"), ("gyro", "rad/s"), ("magnetometer", "1"))


def describe_interface(world: str) -> dict[str, Any]:
    """Return the entries of observation and action in order, and the control period in seconds.

    >>> about = describe_interface("PointGoal1")
    >>> about["control_period"], len(about["observation"]), about["observation"][3]["name"]
    (0.02, 60, 'velocimeter x')
    """
    task = find_task(world)
    robot = task.robot_spec
    sensors = [(f"{name} {axis}", unit) for name, unit in SENSORS for axis in "xyz"]
    sensors += [(f"sensor {i}", "") for i in range(len(robot.sensors_scale))]
    if robot.ball:
        sensors += [(f"{robot.ball} angular velocity {axis}", "rad/s") for axis in "xyz"]
        sensors += [(f"{robot.ball} rotation {row}{column}", "1") for row in range(3) for column in range(3)]
    observation = [{"name": name, "unit": unit, "low": -SENSOR_LIMIT, "high": SENSOR_LIMIT} for name, unit in sensors]
    observation += [
        {"name": f"{kind} lidar {bin_number}", "unit": "1 - distance / 3 m", "low": 0.0, "high": 1.0}
        for kind in task.lidar_starts
        for bin_number in range(LIDAR_BINS)
    ]
    motors = ("left wheel", "right wheel") if robot.steering.wheels else ("thrust", "yaw rate")
    return {
        "control_period": SUBSTEPS * robot.timestep,
        "observation": observation,
        "action": [{"name": name, "unit": "share of the motor's range", "low": -1.0, "high": 1.0} for name in motors],
    }
