"""Say what a world is: a robot, the objects around it, what is rewarded and what costs.

A task is data. `Task(robot="Point", reward="goal", extents=1.5, objects=(Goal(), Hazards(8)))`
is complete: the model, the layout, the observation and the costs all follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real

from blendctl.errors import InputError, did_you_mean

__all__ = [
    "Objects",
    "Goal",
    "Hazards",
    "Pillars",
    "Buttons",
    "Vases",
    "PushBox",
    "Gremlins",
    "Task",
    "check_count",
    "ROBOTS",
    "REWARDS",
]

ROBOTS = ("Point", "Car")
REWARDS = ("goal", "push", "button")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SIZES = ("keepout", "radius", "half_height", "half", "density", "travel")


def check_count(value: object, name: str) -> int:
    """Return a whole number of at least 1."""
    count = 0 if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if count < 1:
        raise InputError(f"expected {name} >= 1, a whole number, actually: {value!r}")
    return count


def _check_size(value: object, name: str) -> float:
    size = float(value) if isinstance(value, Real) else 0.0
    if not 0.0 < size < 100.0:
        raise InputError(f"expected 0 < {name} < 100, actually: {value!r}")
    return size


@dataclass(frozen=True)
class Objects:
    """Objects of one kind; they share a size, a lidar and their costs. Use one of the subclasses."""

    count: int = 1
    keepout: float = 0.2  # m, radius that no other object's keepout may overlap at the start
    name: str = "objects"  # of the lidar and of the cost
    constrained: bool = True  # whether touching (or entering) them costs

    def __post_init__(self) -> None:
        if type(self) is Objects:
            raise InputError("Objects is abstract; use Goal, Hazards, Pillars, Buttons, Vases, PushBox, Gremlins")
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InputError(f"expected a name of lower-case letters, digits and _, actually: {self.name!r}")
        # plain numbers, so that equal tasks are written alike
        object.__setattr__(self, "count", check_count(self.count, f"count of {self.name}"))
        for size in _SIZES:
            if hasattr(self, size):
                object.__setattr__(self, size, _check_size(getattr(self, size), f"{size} of {self.name}"))

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The cost components that these objects bring, without the prefix `cost_`."""
        return (self.name,) if self.constrained else ()


@dataclass(frozen=True)
class Goal(Objects):
    """Where to go (or to push the box to): a cylinder that touches nothing."""

    keepout: float = 0.305
    name: str = "goal"
    constrained: bool = False
    radius: float = 0.3  # m; reached within it
    half_height: float = 0.15  # m

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count != 1 or self.constrained:
            raise InputError("there is one goal, and it costs nothing; expected count=1, constrained=False")

    @property
    def height(self) -> float:
        """The centre's height above the floor; the push task measures distances in space."""
        return self.half_height + 0.01


@dataclass(frozen=True)
class Hazards(Objects):
    """Discs on the floor; the robot's centre inside one costs."""

    keepout: float = 0.18
    name: str = "hazards"
    radius: float = 0.2  # m


@dataclass(frozen=True)
class Pillars(Objects):
    """Fixed cylinders; touching one costs."""

    keepout: float = 0.3
    name: str = "pillars"
    radius: float = 0.2  # m


@dataclass(frozen=True)
class Buttons(Objects):
    """Fixed spheres, one of them the goal; pressing another costs, except shortly after a success."""

    keepout: float = 0.2
    name: str = "buttons"
    radius: float = 0.1  # m


@dataclass(frozen=True)
class Vases(Objects):
    """Light boxes that slide; touching one costs, and so does one that moves."""

    keepout: float = 0.15
    name: str = "vases"
    half: float = 0.1  # m, half the edge
    density: float = 0.001

    @property
    def cost_names(self) -> tuple[str, ...]:
        """Contact and movement are counted apart."""
        return (f"{self.name}_contact", f"{self.name}_velocity") if self.constrained else ()


@dataclass(frozen=True)
class PushBox(Objects):
    """The box to push: a cube with a column on each corner."""

    keepout: float = 0.2
    name: str = "push_box"
    constrained: bool = False
    half: float = 0.2  # m, half the cube's edge; with the columns it reaches 1.5 times as far
    density: float = 0.001

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.count != 1:
            raise InputError(f"there is one box to push; expected count=1, actually: {self.count}")


@dataclass(frozen=True)
class Gremlins(Objects):
    """Boxes that circle, each around its own centre; touching one costs."""

    keepout: float = 0.4
    name: str = "gremlins"
    half: float = 0.1  # m, half the edge
    density: float = 0.001
    travel: float = 0.35  # m, radius of the circle


@dataclass(frozen=True)
class Task:
    """A world, declared. The order of the objects is the order in which they are placed."""

    robot: str  # one of ROBOTS
    reward: str  # one of REWARDS: reach the goal, push the box to it, press the button on it
    extents: float  # m, everything starts inside the square from -extents to extents
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
        object.__setattr__(self, "extents", _check_size(self.extents, "extents"))
        object.__setattr__(self, "agent_keepout", _check_size(self.agent_keepout, "agent_keepout"))
        steps = check_count(self.max_episode_steps, "max_episode_steps")
        object.__setattr__(self, "max_episode_steps", steps)
        names = [kind.name for kind in self.objects]
        costs = self.cost_names
        for what, listed in (("objects", names), ("costs", list(costs))):
            twice = sorted({name for name in listed if listed.count(name) > 1})
            if twice:
                raise InputError(f"two {what} are called {', '.join(twice)}; give each kind a name of its own")
        for role, needed in (
            (Goal, True),
            (PushBox, self.reward == "push"),
            (Buttons, self.reward == "button"),
        ):
            found = sum(isinstance(kind, role) for kind in self.objects)
            if found != 1 and (needed or found > 1):
                raise InputError(
                    f'a task with reward "{self.reward}" needs exactly one {role.__name__}, actually: {found}'
                )
        if self.reward != "button" and any(isinstance(k, Buttons) and k.constrained for k in self.objects):
            raise InputError('buttons cost only in a task with reward "button"; pass constrained=False')
        for name, keepout in (("agent", self.agent_keepout), *((k.name, k.keepout) for k in self.objects)):
            if not keepout < self.extents:
                raise InputError(f"{name}: expected keepout < extents = {self.extents}, actually: {keepout}")

    @property
    def cost_names(self) -> tuple[str, ...]:
        """The cost components in order, without the prefix `cost_`."""
        return tuple(name for kind in self.objects for name in kind.cost_names)

    @property
    def sighted(self) -> tuple[Objects, ...]:
        """The kinds in the order of their lidars: what stands still, what slides, what circles."""

        def rank(kind: Objects) -> int:
            return 2 if isinstance(kind, Gremlins) else 1 if isinstance(kind, Vases | PushBox) else 0

        return tuple(sorted(self.objects, key=rank))
