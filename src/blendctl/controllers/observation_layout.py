"""Where an observation of a world has what, and how its robot is steered by it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.controllers.encoding import OBJECT_FEATURES, Encoding, Lidar
from blendctl.envs.catalog import as_task
from blendctl.envs.robots import Robot
from blendctl.envs.tasks import Task
from blendctl.errors import InputError, did_you_mean
from blendctl.lidar_ring import LIDAR_BINS

FORWARD, SIDE, YAW = 3, 4, 8  # velocimeter x and y, gyro z in the observation


@dataclass(frozen=True)
class ObservationLayout:
    """The layout of a world's observation: the index of each lidar, and how the robot steers."""

    world: str
    robot: Robot
    rings: dict[str, int]  # kind -> index of its first bin
    observation_size: int

    @classmethod
    def of(cls, world: str | Task) -> ObservationLayout:
        """Return the layout of a world."""
        task, name = as_task(world), world if isinstance(world, str) else "the task"
        return cls(name, task.robot_spec, task.lidar_starts, task.observation_size)

    @property
    def turn(self) -> float:
        """Angle (rad) from the robot's forward direction to the first lidar bin, which is at the body's x axis."""
        x, y = self.robot.forward
        return math.atan2(-y, x)

    def rows(self, observation: ArrayLike) -> FloatArray:
        """Return the observations as rows (n, observation_size)."""
        rows = np.asarray(observation, np.float64)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.observation_size:
            raise InputError(
                f"observation has shape {rows.shape}; {self.world} has ({self.observation_size},), or a batch of it"
            )
        return np.atleast_2d(rows)

    def expect_ring(self, kind: str) -> None:
        """Raise InputError unless there is a lidar for this kind of objects."""
        if kind not in self.rings:
            raise InputError(f'{self.world} has no lidar for "{kind}"; {did_you_mean(kind, self.rings)}')

    def bearing(self, rows: FloatArray, ring: str) -> tuple[FloatArray, FloatArray]:
        """Return distance (m) and bearing (rad, left is positive) of a lidar's nearest object, (n,) each."""
        x, y, distance = (
            lidar_decoder(self.observation_size, self.rings[ring])(rows).T[-OBJECT_FEATURES:][:3].astype(float)
        )
        angle = np.arctan2(y, x) + self.turn
        return distance, np.asarray((angle + np.pi) % (2.0 * np.pi) - np.pi)

    def speed(self, rows: FloatArray) -> FloatArray:
        """Return the forward speed (m/s), (n,)."""
        x, y = self.robot.forward
        return np.asarray(x * rows[:, FORWARD] + y * rows[:, SIDE])

    def side_speed(self, rows: FloatArray) -> FloatArray:
        """Return the speed to the left (m/s), (n,)."""
        x, y = self.robot.forward
        return np.asarray(x * rows[:, SIDE] - y * rows[:, FORWARD])

    def steer(self, rows: FloatArray, speed: FloatArray, turn: FloatArray, *, gently: bool = False) -> FloatArray:
        """Return actions (n, 2) that steer to a forward speed (m/s) and a yaw rate (rad/s).

        The motors of a robot on wheels saturate early: it comes to rest only with the low gains of `gently`.
        """
        speed_gain, turn_gain = self.robot.steering.gains(gentle=gently)
        push = speed_gain * (speed - self.speed(rows))
        if self.robot.steering.wheels:
            twist = turn_gain * (turn - rows[:, YAW])
            return np.clip(np.stack([push + twist, push - twist], axis=1), -1.0, 1.0)
        return np.clip(np.stack([push, turn_gain * turn], axis=1), -1.0, 1.0)


@lru_cache(maxsize=64)
def lidar_decoder(observation_size: int, start: int) -> Encoding:
    """Return an encoding whose last features are those of one lidar's nearest object."""
    plain = (1.0,) * (observation_size - LIDAR_BINS)
    return Encoding(observation_size, plain, (Lidar("ring", start),), near=False)
