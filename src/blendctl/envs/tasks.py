"""Declare a world: a robot, the objects around it, the reward and the costs.

A task is data. `Task(robot="Point", reward="goal", extents=1.5, objects=(Goal(), Hazards(8)))`
is complete: the model, the layout, the observation and the costs all follow from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from blendctl.envs.objects import MOTIONS, Buttons, Goal, Objects, PushBox, check_count, check_size
from blendctl.envs.robots import ROBOTS, Robot
from blendctl.errors import InputError, did_you_mean
from blendctl.lidar_ring import LIDAR_BINS

REWARDS = ("goal", "push", "button")


@dataclass(frozen=True)
class Task:
    """Declaration of a world. Objects are placed in declaration order."""

    robot: str  # one of ROBOTS
    reward: str  # one of REWARDS: reach the goal, push the box to it, press the button on it
    extents: float  # m, all objects start inside the square from -extents to extents
    objects: tuple[Objects, ...]
    agent_keepout: float = 0.4  # m
    max_episode_steps: int = 1000

    def __post_init__(self) -> None:
        if self.robot not in ROBOTS:
            raise InputError(f'there is no robot "{self.robot}"; {did_you_mean(str(self.robot), ROBOTS)}')
        if self.reward not in REWARDS:
            raise InputError(f'there is no reward "{self.reward}"; {did_you_mean(str(self.reward), REWARDS)}')
        objects = tuple(self.objects) if isinstance(self.objects, Iterable) else (self.objects,)
        for kind in objects:
            if not isinstance(kind, Objects):
                raise InputError(f"expected objects such as (Goal(), Hazards(8)), actually: {kind!r}")
        object.__setattr__(self, "objects", objects)
        object.__setattr__(self, "extents", check_size(self.extents, "extents"))
        object.__setattr__(self, "agent_keepout", check_size(self.agent_keepout, "agent_keepout"))
        steps = check_count(self.max_episode_steps, "max_episode_steps")
        object.__setattr__(self, "max_episode_steps", steps)
        names = [kind.name for kind in self.objects]
        costs = self.cost_names
        for what, listed in (("objects", names), ("costs", list(costs))):
            duplicates = sorted({name for name in listed if listed.count(name) > 1})
            if duplicates:
                raise InputError(f"two {what} are called {', '.join(duplicates)}; name each kind differently")
        for role, needed in ((Goal, True), (PushBox, self.reward == "push"), (Buttons, self.reward == "button")):
            count = sum(isinstance(kind, role) for kind in self.objects)
            if count != 1 and (needed or count > 1):
                raise InputError(
                    f'a task with reward "{self.reward}" needs exactly one {role.__name__}, actually: {count}'
                )
        if self.reward != "button" and any(isinstance(k, Buttons) and k.constrained for k in self.objects):
            raise InputError('buttons cost only in a task with reward "button"; pass constrained=False')
        for name, keepout in (("agent", self.agent_keepout), *((k.name, k.keepout) for k in self.objects)):
            if not keepout < self.extents:
                raise InputError(f"{name}: expected keepout < extents = {self.extents}, actually: {keepout}")

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Names of the cost components in order, without the prefix `cost_`."""
        return tuple(name for kind in self.objects for name in kind.cost_names)

    @property
    def sighted(self) -> tuple[Objects, ...]:
        """The kinds in the order of their lidars: fixed, sliding, circling."""
        return tuple(sorted(self.objects, key=lambda kind: MOTIONS.index(kind.motion)))

    @property
    def robot_spec(self) -> Robot:
        """The robot's declaration."""
        return ROBOTS[self.robot]

    @property
    def observation_size(self) -> int:
        """Length of an observation: the robot's own sensors, then a lidar per kind."""
        return self.robot_spec.sensor_count + LIDAR_BINS * len(self.objects)

    @property
    def lidar_starts(self) -> dict[str, int]:
        """Index of each lidar's first bin in an observation, by the kind's name."""
        return {kind.name: self.robot_spec.sensor_count + LIDAR_BINS * i for i, kind in enumerate(self.sighted)}
