"""Classical controllers for blendctl's worlds, such as a potential field or a vector field histogram.

They use the robot's sensors and lidars, need no training, and take one observation or a batch.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.controllers.base import Controller
from blendctl.controllers.dynamic_window import SAME_PLACE, window_commands
from blendctl.controllers.free_direction import free_directions
from blendctl.controllers.observation_layout import YAW, ObservationLayout
from blendctl.controllers.push_direction import push_commands
from blendctl.envs.catalog import as_task
from blendctl.envs.objects import Buttons
from blendctl.envs.tasks import Task
from blendctl.errors import InputError, did_you_mean
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE

SPEED = 0.8  # m/s, cruising
CIRCLING_MARGIN = 0.1  # m: where objects that circle may be soon
SLIDING_SPEED = 2.0  # m/s, of a robot without wheels whose velocity is steered


class _Classical(ABC):
    """Base class: sizes, the target, and one observation or a batch."""

    name = ""
    action_size = 2
    keeps_time = True

    def __init__(self, world: str | Task, *, target: str = "goal") -> None:
        self.layout = ObservationLayout.of(world)
        self.observation_size = self.layout.observation_size
        if target not in self.layout.rings:
            raise InputError(
                f'{self.layout.world} has no lidar for "{target}"; {did_you_mean(target, self.layout.rings)}'
            )
        self.target = target

    @property
    def digest(self) -> str:
        """SHA-256 of the class and its settings: two controllers with other settings are not the same."""
        settings = {name: value for name, value in vars(self).items() if not name.startswith("_") and name != "layout"}
        text = json.dumps([type(self).__qualname__, self.layout.rings, settings], sort_keys=True, default=list)
        return hashlib.sha256(text.encode()).hexdigest()

    def act(self, observation: ArrayLike, rng: np.random.Generator | None = None) -> FloatArray:
        """Return the action, which is deterministic."""
        actions = self._drive(self.layout.rows(observation))
        return np.asarray(actions[0] if np.ndim(observation) == 1 else actions)

    @abstractmethod
    def _drive(self, rows: FloatArray) -> FloatArray:
        """Return actions (n, 2) for observations (n, observation_size)."""

    def _obstacles(self, avoid: Sequence[str] | None) -> list[str]:
        """Return the kinds of objects to avoid; None: everything that the lidars see but the target."""
        obstacles = [ring for ring in self.layout.rings if ring != self.target] if avoid is None else list(avoid)
        for ring in obstacles:
            self.layout.expect_ring(ring)
        return obstacles

    def _towards(self, rows: FloatArray, angle: FloatArray, cruise: FloatArray | float = SPEED) -> FloatArray:
        """Return actions that turn towards an angle (n,); the speed falls with the error of the heading."""
        return self.layout.steer(rows, cruise * np.maximum(np.cos(angle), 0.0), 3.0 * angle)

    def _move(self, rows: FloatArray, direction: FloatArray, speed: FloatArray) -> FloatArray:
        """Return actions that move the robot in a direction (n,) at a speed (n,).

        A robot without wheels slides, so its velocity is steered instead of its heading.
        """
        layout = self.layout
        if layout.robot.steering.wheels:
            return self._towards(rows, direction, speed)
        forward, left = layout.speed(rows), layout.side_speed(rows)
        ahead = speed * np.cos(direction)
        heading = np.arctan2(speed * np.sin(direction) - left, ahead - forward)  # of the change of velocity
        backwards = np.abs(heading) > 0.5 * np.pi  # thrust works both ways
        heading = np.where(backwards, heading - np.copysign(np.pi, heading), heading)
        return layout.steer(rows, ahead, 10.0 * heading)

    def _starts(self, rings: Sequence[str]) -> NDArray[np.int64]:
        """Return the index of the first bin of each lidar."""
        return np.array([self.layout.rings[ring] for ring in rings], np.int64)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.layout.world!r})"


class Stop(_Classical):
    """Brake to a standstill."""

    name = "stop"

    def _drive(self, rows: FloatArray) -> FloatArray:
        return self.layout.steer(rows, np.zeros(len(rows)), np.zeros(len(rows)), gently=True)


class PurePursuit(_Classical):
    """Drive straight to the target and ignore obstacles: fast, not safe."""

    name = "pure-pursuit"

    def _drive(self, rows: FloatArray) -> FloatArray:
        _, angle = self.layout.bearing(rows, self.target)
        return self._towards(rows, angle)


class HeadingPID(_Classical):
    """Hold the heading to the target by PID control, at constant speed.

    The integral is leaky and clipped. It is cleared by `reset` and when the batch size changes.
    """

    name = "heading-pid"

    def __init__(
        self, world: str | Task, *, target: str = "goal", gains: tuple[float, float, float] = (2.5, 0.5, 0.3)
    ) -> None:
        super().__init__(world, target=target)
        self.gains = gains  # of angle (rad), of its leaky sum, of yaw rate (rad/s)
        self._sum = np.zeros(0)

    def reset(self) -> None:
        """Clear the integral at the end of an episode."""
        self._sum = np.zeros(0)

    def _drive(self, rows: FloatArray) -> FloatArray:
        _, angle = self.layout.bearing(rows, self.target)
        if len(self._sum) != len(rows):
            self._sum = np.zeros(len(rows))
        self._sum = np.clip(0.95 * self._sum + 0.05 * angle, -1.0, 1.0)
        p, i, d = self.gains
        turn = p * angle + i * self._sum - d * rows[:, YAW]
        return self.layout.steer(rows, np.full(len(rows), 0.5 * SPEED), turn)


class PotentialField(_Classical):
    """Follow an artificial potential: the target attracts, obstacles repel.

    avoid: kinds of objects that repel; None: everything that the lidars see but the target. An obstacle repels within
    `influence` metres, more strongly at a smaller distance, and slows the robot down.
    """

    name = "potential-field"

    def __init__(
        self,
        world: str | Task,
        *,
        target: str = "goal",
        avoid: Sequence[str] | None = None,
        influence: float = 0.8,
        strength: float = 2.5,
    ) -> None:
        super().__init__(world, target=target)
        self.influence, self.strength = influence, strength
        self.obstacles = self._obstacles(avoid)
        angles = (np.arange(LIDAR_BINS) + 0.5) * 2.0 * np.pi / LIDAR_BINS
        self._angles = angles + self.layout.turn

    def _drive(self, rows: FloatArray) -> FloatArray:
        _, angle = self.layout.bearing(rows, self.target)
        x, y = np.cos(angle), np.sin(angle)
        nearest = np.full(len(rows), LIDAR_RANGE)
        for ring in self.obstacles:
            start = self.layout.rings[ring]
            reach = LIDAR_RANGE * (1.0 - rows[:, start : start + LIDAR_BINS])  # (n, bins) m
            push = np.clip(1.0 - reach / self.influence, 0.0, 1.0) ** 2
            x -= self.strength * (push * np.cos(self._angles)).sum(axis=1)
            y -= self.strength * (push * np.sin(self._angles)).sum(axis=1)
            nearest = np.minimum(nearest, reach.min(axis=1))
        slow_down = np.clip(nearest / self.influence, 0.3, 1.0)
        return self._towards(rows, np.arctan2(y, x), SPEED * slow_down)


class VectorFieldHistogram(_Classical):
    """Drive in the free direction that is nearest to the target's (a vector field histogram).

    Directions are compared by their angle to the target and to the present velocity, and by how far they are free.

    avoid: kinds of objects that block; None: everything that the lidars see but the target. An obstacle blocks the
    directions that come within `clearance` metres of its centre in the next `look` metres, or before the target; one
    at the target does not.
    speed: m/s where the way is free; None: 2 for a robot without wheels, otherwise 0.8.
    """

    name = "vfh"

    def __init__(
        self,
        world: str | Task,
        *,
        target: str = "goal",
        avoid: Sequence[str] | None = None,
        clearance: float = 0.35,
        look: float = 0.7,
        speed: float | None = None,
    ) -> None:
        super().__init__(world, target=target)
        self.obstacles = self._obstacles(avoid)
        self.clearance, self.look = clearance, look
        self.speed = (SPEED if self.layout.robot.steering.wheels else SLIDING_SPEED) if speed is None else speed
        self._blocking = self._starts(self.obstacles)

    def _drive(self, rows: FloatArray) -> FloatArray:
        distance, angle = self.layout.bearing(rows, self.target)
        forward, left = self.layout.speed(rows), self.layout.side_speed(rows)
        direction, free = free_directions(
            rows, self._blocking, self.layout.turn, distance, angle, forward, left, self.clearance, self.look
        )
        return self._move(rows, direction, self.speed * np.clip(0.3 + free, 0.3, 1.0))


class DynamicWindow(_Classical):
    """Take the motion of the next second that is worth most, by a model of the robot (the dynamic window approach).

    avoid: kinds of objects to avoid; None: those that cost. Solid ones are avoided with the robot's size, and ones that
    circle with 0.1 m more, because one observation does not show where they move.
    price: metres of progress that a second inside an obstacle costs; margin: metres beside one that cost less and less.
    """

    name = "dwa"

    def __init__(
        self,
        world: str | Task,
        *,
        target: str = "goal",
        avoid: Sequence[str] | None = None,
        price: float = 4.0,
        margin: float = 0.12,
    ) -> None:
        super().__init__(world, target=target)
        robot = self.layout.robot
        if robot.motion is None:
            raise InputError(
                f"{self.layout.world}: dwa plans by the motion of the robot, and {robot.name} declares none; pass "
                "motion=Motion(...) to Robot, or use vfh"
            )
        kinds = {kind.name: kind for kind in as_task(world).objects}
        costly = [ring for ring in self.layout.rings if kinds[ring].constrained and ring != target]
        self.obstacles = costly if avoid is None else self._obstacles(avoid)
        if not (price >= 0.0 and margin > 0.0):
            raise InputError(f"expected price >= 0 and margin > 0, actually: price={price!r}, margin={margin!r}")
        self.price, self.margin = price, margin
        avoided = [kinds[ring] for ring in self.obstacles]
        self._reach = kinds[target].reach
        self._blocking = self._starts(self.obstacles)
        self._radii = np.array(
            [
                kind.reach + kind.solid * robot.reach + (CIRCLING_MARGIN if kind.motion == "circling" else 0.0)
                for kind in avoided
            ]
        )
        self._own = np.array([SAME_PLACE if isinstance(kind, Buttons) else 0.0 for kind in avoided])

    @property
    def plan(self) -> tuple[NDArray[np.int64], FloatArray, FloatArray, float]:
        """First bins of the obstacles' lidars, their radii, the target's own, and the distance of arrival."""
        return self._blocking, self._radii, self._own, self._reach

    def _drive(self, rows: FloatArray) -> FloatArray:
        layout, robot = self.layout, self.layout.robot
        starts, radii, own, reach = self.plan
        commands = window_commands(
            rows,
            starts,
            radii,
            own,
            layout.turn,
            layout.bearing(rows, self.target),
            (layout.speed(rows), layout.side_speed(rows), rows[:, YAW].copy()),
            reach,
            robot.steering.wheels,
            self.motion,
            self.gains,
            self.price,
            self.margin,
        )
        if robot.steering.wheels:
            return robot.saturation * commands
        return layout.steer(rows, commands[:, 0], commands[:, 1])

    @property
    def motion(self) -> tuple[float, float, float, float]:
        """Top speed (m/s), time constant of the speed (s), top yaw rate (rad/s) and pivot (m)."""
        motion = self.layout.robot.motion
        assert motion is not None
        return motion.top_speed, motion.lag, motion.top_yaw_rate, motion.pivot

    @property
    def gains(self) -> tuple[float, float]:
        """Share of full thrust per m/s, and of full turn per rad/s, as the robot is steered."""
        speed_gain, turn_gain = self.layout.robot.steering.gains(gentle=False)
        return speed_gain / self.layout.robot.saturation, turn_gain


class Push(_Classical):
    """Push the box to the target: drive around it to the place behind it, then push it along a free way.

    avoid: kinds of objects that neither the robot nor, if they are solid, the box may hit; None: everything that the
    lidars see but the target and the box. The robot keeps `clearance` metres from their centres.
    speed: m/s while it pushes; `approach`: on the way around the box.
    """

    name = "push"

    def __init__(
        self,
        world: str | Task,
        *,
        target: str = "goal",
        box: str = "push_box",
        avoid: Sequence[str] | None = None,
        clearance: float = 0.4,
        speed: float = 1.0,
        approach: float = 1.3,
    ) -> None:
        super().__init__(world, target=target)
        self.layout.expect_ring(box)
        self.box = box
        self.obstacles = [ring for ring in self._obstacles(avoid) if ring != box]
        self.clearance, self.speed, self.approach = clearance, speed, approach
        solid = {kind.name for kind in as_task(world).objects if kind.solid}
        self._around = self._starts([*self.obstacles, box])
        self._solid = self._starts([ring for ring in self.obstacles if ring in solid])

    @property
    def starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first bins of the lidars of obstacles and box, the box last, and of the obstacles that stop the box."""
        return self._around, self._solid

    def _drive(self, rows: FloatArray) -> FloatArray:
        layout = self.layout
        direction, speed = push_commands(
            rows,
            *self.starts,
            layout.turn,
            layout.bearing(rows, self.target),
            layout.bearing(rows, self.box),
            (layout.speed(rows), layout.side_speed(rows)),
            (self.speed, self.approach),
            self.clearance,
        )
        return self._move(rows, direction, speed)


CLASSICAL: dict[str, type[Any]] = {
    kind.name: kind
    for kind in (PurePursuit, PotentialField, VectorFieldHistogram, DynamicWindow, Push, HeadingPID, Stop)
}


def classical(name: str, world: str) -> Controller:
    """Build a classical controller by name, for a world.

    >>> classical("stop", "PointGoal1").act(np.zeros(60))
    array([0., 0.])
    """
    if name not in CLASSICAL:
        raise InputError(f'there is no classical controller "{name}"; {did_you_mean(name, CLASSICAL)}')
    controller: Controller = CLASSICAL[name](world)
    return controller
