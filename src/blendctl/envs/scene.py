"""Read the poses of the robot and of every object from a world's state."""

from __future__ import annotations

import math
from dataclasses import dataclass

from blendctl.arrays import FloatArray
from blendctl.envs.batch import WorldBatch
from blendctl.envs.compiled_task import BUTTON
from blendctl.envs.objects import Objects
from blendctl.envs.tasks import Task
from blendctl.lidar_ring import LIDAR_BINS


@dataclass(frozen=True)
class Body:
    """One object and its pose."""

    kind: Objects  # its kind, with the size
    index: int  # among its kind
    x: float  # m
    y: float  # m
    z: float  # m, of the centre
    rot: float  # rad, about the vertical
    lit: bool = False  # the goal button

    @property
    def size(self) -> float:
        """Radius, or half the edge, in metres."""
        return self.kind.size


@dataclass(frozen=True)
class Scene:
    """The poses in one world."""

    task: Task
    x: float  # m, of the robot
    y: float  # m
    heading: float  # rad, direction in which the robot drives forward
    position: FloatArray  # (3,) m, of the robot
    rotation: FloatArray  # (3, 3) of the robot, body to world
    bodies: tuple[Body, ...]
    lidars: dict[str, FloatArray]  # (16,) by the objects' name, as last observed
    steps: int  # since the episode began


def read_scene(batch: WorldBatch, row: int) -> Scene:
    """Read one world's scene; raise if it was never reset."""
    batch.expect_reset()
    task, plan, worlds = batch.task, batch.compiled_task, batch.worlds
    qpos, bodies, item = worlds.qpos[row], [], 0
    for kind in task.objects:
        for index in range(kind.count):
            item += 1
            at = plan.qpos_at[item]
            if at >= 0:
                x, y, z, w, i, j, k = (float(value) for value in qpos[at : at + 7])
                rot = math.atan2(2.0 * (w * k + i * j), 1.0 - 2.0 * (j * j + k * k))
            else:
                x, y = (float(value) for value in worlds.xy[row, item])
                z, rot = kind.height, float(worlds.rot[row, item])
            lit = plan.reward == BUTTON and item == plan.button + worlds.button[row]
            bodies.append(Body(kind, index, x, y, z, rot, bool(lit)))
    rotation = worlds.rotation[row].reshape(3, 3).copy()
    forward = rotation[:, :2] @ task.robot_spec.forward
    return Scene(
        task=task,
        x=float(worlds.position[row, 0]),
        y=float(worlds.position[row, 1]),
        heading=math.atan2(forward[1], forward[0]),
        position=worlds.position[row].copy(),
        rotation=rotation,
        bodies=tuple(bodies),
        lidars={name: worlds.obs[row, start : start + LIDAR_BINS].copy() for name, start in task.lidar_starts.items()},
        steps=int(worlds.steps[row]),
    )
