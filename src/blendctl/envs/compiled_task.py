"""Turn a task into the numbers that the compiled code needs.

Items are the robot (item 0) and every object, in the order of placement; kinds occupy
consecutive items. A `CompiledTask` has the address of each item's pose and its role.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from blendctl.arrays import FloatArray as FloatArray
from blendctl.arrays import IntArray
from blendctl.envs.objects import COST_TYPES, Buttons, Goal, Objects, PushBox
from blendctl.envs.robots import COMMON_SCALE
from blendctl.envs.tasks import REWARDS, Task
from blendctl.envs.world import body_name, contact_kinds
from blendctl.errors import InputError

SUBSTEPS = 10  # physics steps per action

GOAL, PUSH, BUTTON = range(len(REWARDS))
INSIDE, CONTACT, MOVING, WRONG_BUTTON = range(len(COST_TYPES))


class CompiledTask(NamedTuple):
    """A task for compiled code. Items: robot first, then the objects as placed; -1 means none."""

    timestep: float  # s
    extents: float  # m
    max_steps: int
    reward: int  # GOAL, PUSH or BUTTON
    keepout: FloatArray  # (items,) m
    height: FloatArray  # (items,) m, at the start
    qpos_at: IntArray  # (items,) index of a free object's pose in qpos
    qvel_at: IntArray  # (items,) the same for qvel
    body_at: IntArray  # (items,) model body of a fixed object
    mocap_at: IntArray  # (items,) mocap body (and weld) of a gremlin
    travel: FloatArray  # (mocaps,) m, radius of the gremlins' circles
    goal: int  # item
    goal_radius: float  # m
    goal_height: float  # m, of the centre
    box: int  # item that is pushed
    button: int  # first button's item
    buttons: int  # how many
    button_sensor: int  # address in sensordata of the first button's contact count
    free_robot: bool  # the robot's pose is in qpos (True) or in the model's rest pose (False)
    rest_qpos: FloatArray  # (joints,) robot's joints at the start
    robot_sensors: int  # numbers in sensordata that are observed as they are, before the ball
    ball_sensor: int  # address of ball quaternion, then angular velocity
    sights: IntArray  # (lidars, 3): first item, items, whether dark while the button timer runs
    cost_about: IntArray  # (costs, 4): INSIDE.., first item, items, sensor address
    cost_radius: FloatArray  # (costs,) m, of what is entered
    obs_size: int


def compile_task(task: Task, model: mujoco.MjModel, *, max_steps: int) -> CompiledTask:
    """Look up every address once."""
    robot = task.robot_spec
    first: dict[str, int] = {}
    kinds: list[Objects] = []
    for kind in task.objects:
        first[kind.name] = 1 + len(kinds)
        kinds += [kind] * kind.count
    items = 1 + len(kinds)

    where = {name: np.full(items, -1, dtype=np.int64) for name in ("qpos", "qvel", "body", "mocap")}
    for item, kind in enumerate(kinds, start=1):
        if not kind.solid:
            continue
        body = model.body(body_name(kind, item - first[kind.name]))
        if model.body_jntnum[body.id]:
            joint = model.body_jntadr[body.id]
            where["qpos"][item] = model.jnt_qposadr[joint]
            where["qvel"][item] = model.jnt_dofadr[joint]
        else:
            where["body"][item] = body.id
        if kind.motion == "circling":
            where["mocap"][item] = model.body_mocapid[model.body(f"{body.name}.mocap").id]
    circling = sorted(
        (where["mocap"][i], float(getattr(kind, "travel", 0.0)))
        for i, kind in enumerate(kinds, start=1)
        if kind.motion == "circling"
    )

    own_sensors = len(COMMON_SCALE + robot.sensors_scale)
    sensor_of, address = {}, own_sensors + (7 if robot.ball else 0)
    for kind in contact_kinds(task):
        sensor_of[kind.name] = address
        address += kind.count
    if address != model.nsensordata:
        extra = model.nsensordata - address + len(robot.sensors_scale)
        raise InputError(f"{robot.name}: sensors have {extra} numbers; expected as many gains in sensors_scale")

    about: list[tuple[int, int, int, int]] = []
    radius: list[float] = []
    for kind in task.objects:
        for cost in kind.costs if kind.constrained else ():
            about.append((COST_TYPES.index(cost), first[kind.name], kind.count, sensor_of.get(kind.name, -1)))
            radius.append(kind.size)

    goal = next(kind for kind in task.objects if isinstance(kind, Goal))
    button = next((kind for kind in task.objects if isinstance(kind, Buttons)), None)
    box = next((kind for kind in task.objects if isinstance(kind, PushBox)), None)
    sights = [
        (first[kind.name], kind.count, isinstance(kind, Buttons) and task.reward == "button") for kind in task.sighted
    ]
    return CompiledTask(
        timestep=float(model.opt.timestep),
        extents=float(task.extents),
        max_steps=int(max_steps),
        reward=REWARDS.index(task.reward),
        keepout=np.array([task.agent_keepout, *(kind.keepout for kind in kinds)], dtype=np.float64),
        height=np.array([robot.height, *(kind.height for kind in kinds)], dtype=np.float64),
        qpos_at=where["qpos"],
        qvel_at=where["qvel"],
        body_at=where["body"],
        mocap_at=where["mocap"],
        travel=np.array([travel for _, travel in circling], dtype=np.float64),
        goal=first[goal.name],
        goal_radius=float(goal.radius),
        goal_height=float(goal.height),
        box=first[box.name] if box else -1,
        button=first[button.name] if button else -1,
        buttons=button.count if button else 0,
        button_sensor=sensor_of.get(button.name, -1) if button else -1,
        free_robot=robot.free,
        rest_qpos=np.array(robot.rest_qpos, dtype=np.float64),
        robot_sensors=own_sensors,
        ball_sensor=own_sensors if robot.ball else -1,
        sights=np.array(sights, dtype=np.int64).reshape(-1, 3),
        cost_about=np.array(about, dtype=np.int64).reshape(-1, 4),
        cost_radius=np.array(radius, dtype=np.float64),
        obs_size=task.observation_size,
    )
