"""The encodings of a world's networks, derived from its declaration."""

from __future__ import annotations

from dataclasses import dataclass

from blendctl.controllers import Encoding, Lidar, MarginAhead
from blendctl.envs.catalog import find_task
from blendctl.envs.compiled_task import LIDAR_BINS, SUBSTEPS
from blendctl.envs.robots import ROBOT_PARTS
from blendctl.envs.tasks import Buttons, Goal, Gremlins, Hazards, Objects, Pillars, PushBox, Task, Vases

__all__ = ["WorldEncodings", "world_encodings"]

# Gains that scale each robot reading to about 1: accelerometer, velocimeter, gyro, magnetometer (3 each) ...
COMMON_SCALE = (0.1,) * 3 + (1.0,) * 3 + (0.3,) * 3 + (2.0,) * 3
# ... then for a robot on a ball its angular velocity (3) and rotation matrix (9).
BALL_SCALE = (0.05,) * 3 + (1.0,) * 9
VELOCITY = 3  # index of the velocimeter
REACH = {"Point": 0.1, "Car": 0.15}  # m, approximate distance from a robot's centre to its surface
SATURATION = {"Point": 0.05, "Car": 0.02}  # actions beyond this have no further effect


@dataclass(frozen=True)
class WorldEncodings:
    """The encodings of the networks of one world."""

    policy: Encoding  # actor and critics
    context: Encoding  # context networks: narrower margins, one step ahead
    action_gains: tuple[float, ...]  # context networks: see ContextNetwork
    step_time: float  # s per control step


def world_encodings(world: str, *, encoding: str = "full") -> WorldEncodings:
    """Build the encodings for a world: "full", "near" (raw and near-field lidar) or "raw".

    >>> policy = world_encodings("PointGoal1").policy
    >>> policy.observation_size, [lidar.kind for lidar in policy.lidars]
    (60, ['goal', 'hazards', 'vases'])
    """
    task = find_task(world)
    robot = ROBOT_PARTS[task.robot]
    step_time = robot.timestep * SUBSTEPS
    scale = COMMON_SCALE + (BALL_SCALE if robot.ball else ())
    size = len(scale) + LIDAR_BINS * len(task.sighted)
    decode = encoding == "full"
    rings = tuple(
        Lidar(
            kind.name,
            len(scale) + LIDAR_BINS * place,
            bins=LIDAR_BINS,
            objects=min(kind.count, 2) if decode else 0,
            radius=_radius(kind, task),
        )
        for place, kind in enumerate(task.sighted)
    )
    kinds = [type(kind) for kind in task.sighted]
    pair = (kinds.index(PushBox), kinds.index(Goal)) if PushBox in kinds else None
    pairs = (pair,) if pair and decode else ()
    policy = Encoding(
        size,
        scale,
        rings,
        pairs=pairs,
        ahead=(MarginAhead(0.0, 0.2), MarginAhead(10 * step_time, 0.2)) if decode else (),
        near=encoding != "raw",
        velocity=VELOCITY if decode else -1,
    )
    sharp = (
        MarginAhead(step_time, 0.004),
        MarginAhead(step_time, 0.03),
        MarginAhead(5 * step_time, 0.1),
        MarginAhead(20 * step_time, 0.3),
    )
    context = Encoding(size, scale, rings, pairs=pairs, ahead=sharp if decode else (), velocity=policy.velocity)
    return WorldEncodings(policy, context, (1.0, 1.0 / SATURATION[task.robot]), step_time)


def _radius(kind: Objects, task: Task) -> float:
    """Distance between centres (m) at which a kind of object matters: inside it, or touching it."""
    if isinstance(kind, Hazards):
        return kind.radius
    if isinstance(kind, Goal) and task.reward == "goal":
        return kind.radius
    reach = REACH[task.robot]
    match kind:
        case Goal():  # a button stands there, or a box is pushed there
            button = next((other for other in task.objects if isinstance(other, Buttons)), None)
            return reach + (button.radius if button else kind.radius)
        case Pillars() | Buttons():
            return reach + kind.radius
        case PushBox():
            return reach + 1.5 * kind.half
        case Vases() | Gremlins():
            return reach + kind.half
    return reach
