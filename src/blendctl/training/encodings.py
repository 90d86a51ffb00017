"""The encodings of a world's networks, derived from its declaration."""

from __future__ import annotations

from dataclasses import dataclass

from blendctl.controllers import Encoding, Lidar, MarginAhead
from blendctl.controllers.path_encoding import Avoided, MapDeclaration
from blendctl.envs.catalog import find_task
from blendctl.envs.compiled_task import SUBSTEPS
from blendctl.envs.objects import Buttons, Goal, Objects, PushBox
from blendctl.envs.scene_memory import MAPPED_ROBOTS, mapped_kinds
from blendctl.envs.tasks import Task
from blendctl.lidar_ring import LIDAR_BINS

VELOCITY = 3  # index of the velocimeter


@dataclass(frozen=True)
class WorldEncodings:
    """The encodings of the networks of one world."""

    policy: Encoding  # actor and critics
    context: Encoding  # context networks: narrower margins, one step ahead
    action_gains: tuple[float, ...]  # context networks: see ContextNetwork
    step_time: float  # s per control step
    declaration: MapDeclaration | None = None  # look-ahead networks: the map of an episode; None for other robots


def world_encodings(world: str, *, encoding: str = "full") -> WorldEncodings:
    """Build the encodings for a world: "full", "near" (raw and near-field lidar) or "raw".

    >>> policy = world_encodings("PointGoal1").policy
    >>> policy.observation_size, [lidar.kind for lidar in policy.lidars]
    (60, ['goal', 'hazards', 'vases'])
    """
    task = find_task(world)
    robot, scale, size = task.robot_spec, task.robot_spec.sensor_scale, task.observation_size
    step_time = robot.timestep * SUBSTEPS
    decode = encoding == "full"
    rings = tuple(
        Lidar(
            kind.name,
            task.lidar_starts[kind.name],
            bins=LIDAR_BINS,
            objects=min(kind.count, 2) if decode else 0,
            radius=_radius(kind, task),
        )
        for kind in task.sighted
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
    return WorldEncodings(policy, context, (1.0, 1.0 / robot.saturation), step_time, _declaration(task))


def _declaration(task: Task) -> MapDeclaration | None:
    """Return what maps of a task show, None if its robot's way cannot be read from its sensors."""
    if task.robot not in MAPPED_ROBOTS:
        return None
    targets = [index for index, kind in enumerate(task.objects) if isinstance(kind, Goal | PushBox)]
    return MapDeclaration(
        task.observation_size,
        period=task.robot_spec.timestep * SUBSTEPS,
        tilts=task.robot_spec.free,
        kinds=mapped_kinds(task),
        avoided=tuple(
            Avoided(index, _radius(kind, task)) for index, kind in enumerate(task.objects) if index not in targets
        ),
        targets=tuple(targets),
    )


def _radius(kind: Objects, task: Task) -> float:
    """Distance between centres (m) at which a kind of object matters: inside it, or touching it."""
    reach = task.robot_spec.reach
    if isinstance(kind, Goal) and task.reward != "goal":  # a button stands there, or a box is pushed there
        button = next((other for other in task.objects if isinstance(other, Buttons)), None)
        return reach + (button.radius if button else kind.radius)
    return reach + kind.reach if kind.solid else kind.reach
