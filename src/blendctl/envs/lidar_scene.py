"""Rebuild a world from an observation: what the sensors show, and draws for what they hide.

Distances and directions of objects follow from the lidar almost exactly. Hidden are objects behind nearer ones, the
angle of an object whose neighbouring bins are lit by others, the place of the robot in the arena, and the rotation and
speed of things that slide; these are drawn from what the task declares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from blendctl.compiled import compiled
from blendctl.envs.batch import WorldBatch
from blendctl.envs.compiled_task import BUTTON, PUSH, SUBSTEPS, FloatArray
from blendctl.envs.lidar import see
from blendctl.envs.objects import Buttons, Objects, PushBox
from blendctl.envs.physics import HOVER
from blendctl.envs.reward_cost import BUTTON_REST
from blendctl.envs.world_state import RUNNING, WorldState, empty_worlds
from blendctl.lidar_ring import LIDAR_BINS, LIDAR_RANGE
from blendctl.scene_map import LAG, SceneMemory

_BIN = 2.0 * math.pi / LIDAR_BINS
_UPRIGHT = np.eye(3).ravel()
_SAME = 1e-6  # brightness that makes no difference
_SCENES = 64  # tried per lidar
_DRAWS = 30  # places tried for a hidden object
_TOUCHING = 0.05  # m, room between robot and box below which the box is pushed
_SAME_BUTTON = 0.1  # m, largest distance of the goal from its button
_FAR = 20.0  # m, where an object goes that fits nowhere
_WHEEL = 0.05  # m, radius of the car's wheels
_WHEEL_SIDE = (-0.13, 0.13)  # m, where they touch the floor, left and right


def decode_lidar(
    bins: FloatArray, count: int, rng: np.random.Generator, *, known: FloatArray | None = None
) -> FloatArray:
    """Return the places (k, 2), k <= count, of objects in the robot's frame that light bins (16,), the known first.

    Several scenes may light the same bins. Of those that are tried the one with the fewest objects is returned: that an
    object's leak is taken for another object is far less likely than that one object hides behind another.
    """
    lit = np.zeros(LIDAR_BINS)
    known = np.zeros((0, 2)) if known is None else known
    for x, y in known:
        see(lit, np.zeros(3), _UPRIGHT, x, y)
    places, seen = _best_scene(np.ascontiguousarray(bins), lit, rng.random((_SCENES, count - len(known))) < 0.5)
    return np.concatenate([known, places[:seen]])


@compiled
def _best_scene(bins: FloatArray, lit: FloatArray, coins: NDArray[np.bool_]) -> tuple[FloatArray, int]:
    """Decode once per row of coins (scenes, count); return the places (count, 2) of the best scene, and how many.

    Known objects have lit the bins (16,) so far.
    """
    scenes, count = coins.shape
    best, least, fewest = np.zeros((count, 2)), np.inf, count + 1
    for scene in range(scenes):
        places, explained = np.zeros((count, 2)), lit.copy()
        seen = _decode_once(bins, coins[scene], places, explained)
        error = np.abs(bins - explained).max()
        if error < least - _SAME or (error < least + _SAME and seen < fewest):
            best, least, fewest = places, error, seen
    return best, fewest


@compiled
def _decode_once(bins: FloatArray, coins: NDArray[np.bool_], places: FloatArray, explained: FloatArray) -> int:
    """Fill places (count, 2) of objects and the bins (16,) that they light; return how many objects there are.

    The brightest bin that is not explained yet holds an object: leaks are darker. Its neighbours show the angle within
    the bin. Where another object has lit one of them the other one counts; otherwise a coin decides which.
    """
    for seen in range(len(coins)):
        at, bright = -1, _SAME
        for i in range(LIDAR_BINS):
            if bins[i] > explained[i] + _SAME and bins[i] > bright:
                at, bright = i, bins[i]
        if at < 0:
            return seen
        before, after = (at - 1) % LIDAR_BINS, (at + 1) % LIDAR_BINS
        low = min(max(1.0 - bins[before] / bright, 0.0), 1.0)
        high = min(max(bins[after] / bright, 0.0), 1.0)
        lit_before = bins[before] > _SAME and explained[before] >= bins[before] - _SAME
        lit_after = bins[after] > _SAME and explained[after] >= bins[after] - _SAME
        take_high = coins[seen] if lit_before == lit_after else lit_before
        share = high if take_high else low
        explained[at] = bright
        explained[after] = max(explained[after], share * bright)
        explained[before] = max(explained[before], (1.0 - share) * bright)
        angle, distance = (at + share) * _BIN, LIDAR_RANGE * (1.0 - bright)
        places[seen, 0], places[seen, 1] = distance * math.cos(angle), distance * math.sin(angle)
    return len(coins)


def visible(bins: FloatArray, x: float, y: float) -> bool:
    """Return whether an object at (x, y) in the robot's frame would be seen: brighter than the bins (16,)."""
    bright = max(0.0, 1.0 - math.hypot(x, y) / LIDAR_RANGE)
    place = (math.atan2(y, x) % (2.0 * math.pi)) / _BIN
    at, share = int(place) % LIDAR_BINS, place - int(place)
    lit = ((at, bright), ((at + 1) % LIDAR_BINS, share * bright), ((at - 1) % LIDAR_BINS, (1.0 - share) * bright))
    return any(value > bins[i] + _SAME for i, value in lit)


def heading_of(observation: FloatArray) -> tuple[FloatArray, float]:
    """Return the turn (2, 2) from the robot's frame to the arena's, and the heading, by the magnetometer."""
    heading = math.atan2(-observation[9], -observation[10])  # the field points along the arena's -y
    cos, sin = math.cos(heading), math.sin(heading)
    return np.array([[cos, -sin], [sin, cos]]), heading


def rebuild_worlds(
    batch: WorldBatch,
    observations: FloatArray,
    steps: NDArray[np.int64],
    rngs: Sequence[np.random.Generator],
    *,
    memory: SceneMemory | None = None,
    rows: NDArray[np.intp] | None = None,
) -> WorldState:
    """Return worlds of the batch's task for observations (n, obs) after steps (n,) of their episodes.

    memory: what is remembered of episodes, with these observations; rows (n,): the worlds of the memory.
    """
    worlds = empty_worlds(batch.compiled_task, batch.model, len(observations))
    for row, rng in enumerate(rngs):
        remembered = row if rows is None else int(rows[row])
        _Rebuilt(batch, worlds, row, rng, memory, remembered).fill(observations[row], int(steps[row]))
    return worlds


class _Rebuilt:
    """One world that is being rebuilt."""

    def __init__(
        self,
        batch: WorldBatch,
        worlds: WorldState,
        row: int,
        rng: np.random.Generator,
        memory: SceneMemory | None,
        remembered: int,
    ) -> None:
        self.task, self.plan, self.rng = batch.task, batch.compiled_task, rng
        self.memory, self.remembered = memory, remembered  # the memory, and the row of this world in it
        self.world = WorldState._make(array[row : row + 1] for array in worlds)  # views of one row
        self.robot = np.zeros(2)  # m, in the arena
        self.turn = np.eye(2)  # from the robot's frame to the arena's

    def fill(self, observation: FloatArray, steps: int) -> None:
        """Set the whole state but the random generator."""
        world, plan, starts = self.world, self.plan, self.task.lidar_starts
        world.obs[0], world.phase[0], world.steps[0] = observation, RUNNING, steps
        world.time[0] = steps * SUBSTEPS * plan.timestep
        self.turn, heading = heading_of(observation)
        rings = {kind.name: observation[starts[kind.name] :][:LIDAR_BINS] for kind in self.task.objects}
        offsets = {kind.name: self._seen(kind, rings[kind.name]) for kind in self.task.objects}
        self._place_robot(offsets)
        self._set_robot(observation, heading)
        item = 1
        for kind in self.task.objects:
            resting = isinstance(kind, Buttons) and plan.reward == BUTTON and not rings[kind.name].any()
            if resting:  # the buttons are dark: they may be anywhere
                world.timer[0] = self.rng.integers(1, BUTTON_REST + 1)
            self._set_objects(kind, item, offsets[kind.name], None if resting else rings[kind.name])
            item += kind.count
        self._set_goal()

    def _seen(self, kind: Objects, ring: FloatArray) -> FloatArray:
        """Return the offsets (k, 2) from the robot of the objects that are remembered or seen."""
        known = None
        if self.memory is not None:
            known = self.memory.offsets(self.remembered, kind.name) @ self.turn
        return decode_lidar(ring, kind.count, self.rng, known=known) @ self.turn.T

    def _place_robot(self, offsets: dict[str, FloatArray]) -> None:
        """Draw the place of the robot so that what it knows lies inside of the arena."""
        fixed = [kind.keepout if kind.motion == "fixed" else 0.0 for kind in self.task.objects]
        room = np.repeat([0.0, *fixed], [1, *(len(offsets[kind.name]) for kind in self.task.objects)])[:, None]
        seen = np.concatenate([np.zeros((1, 2)), *(offsets[kind.name] for kind in self.task.objects)])
        low, high = -self.plan.extents - (seen - room).min(axis=0), self.plan.extents - (seen + room).max(axis=0)
        middle, half = (low + high) / 2.0, np.maximum(high - low, 0.0) / 2.0
        self.robot = middle + half * self.rng.uniform(-1.0, 1.0, 2)

    def _set_robot(self, observation: FloatArray, heading: float) -> None:
        world, velocity, gyro = self.world, observation[3:6], observation[6:9]
        world.xy[0, 0], world.rot[0, 0] = self.robot, heading
        world.position[0] = *self.robot, self.plan.height[0]
        rotation = np.eye(3)
        rotation[:2, :2] = self.turn
        world.rotation[0] = rotation.ravel()
        if not self.plan.free_robot:  # the joints' axes are those of the pose at rest, which is the present one
            world.qvel[0, :3] = velocity[0], velocity[1], gyro[2]
            return
        qpos, qvel = world.qpos[0], world.qvel[0]
        qpos[:3] = world.position[0]
        qpos[3:7] = math.cos(heading / 2.0), 0.0, 0.0, math.sin(heading / 2.0)
        qvel[:3] = rotation @ velocity
        qvel[3:6] = gyro
        qvel[6:8] = [-(velocity[1] + gyro[2] * side) / _WHEEL for side in _WHEEL_SIDE]  # wheels that do not slip
        mujoco.mju_mat2Quat(qpos[9:13], np.ascontiguousarray(observation[15:24]))
        qvel[8:11] = observation[12:15]

    def _set_objects(self, kind: Objects, first: int, offsets: FloatArray, ring: FloatArray | None) -> None:
        """Place the objects that are seen at offsets (k, 2), and draw places for the others."""
        world, plan, now = self.world, self.plan, float(self.world.time[0])
        for index in range(kind.count):
            item = first + index
            place = self.robot + offsets[index] if index < len(offsets) else self._hidden(kind, ring)
            centre, speed, height = place, np.zeros(2), plan.height[item]
            if plan.mocap_at[item] >= 0:
                radius = plan.travel[plan.mocap_at[item]]
                centre = place - radius * np.array([math.sin(now - LAG), math.cos(now - LAG)])
                speed, height = radius * np.array([math.cos(now - LAG), -math.sin(now - LAG)]), height + HOVER
            world.xy[0, item] = centre
            world.rot[0, item] = self.rng.uniform(0.0, 2.0 * math.pi)
            if isinstance(kind, PushBox):
                world.rot[0, item], speed = self._pushed(kind, place)
            at = plan.qpos_at[item]
            if at >= 0:
                half = world.rot[0, item] / 2.0
                world.qpos[0, at : at + 7] = *place, height, math.cos(half), 0.0, 0.0, math.sin(half)
                world.qvel[0, plan.qvel_at[item] : plan.qvel_at[item] + 2] = speed

    def _pushed(self, box: PushBox, place: FloatArray) -> tuple[float, FloatArray]:
        """Draw a rotation of the box that leaves room for the robot, and return it with the speed of a pushed box."""
        offset = place - self.robot
        distance, reach = float(np.hypot(*offset)), self.task.robot_spec.reach
        away = offset / max(distance, 1e-9)
        rotations = self.rng.uniform(0.0, 0.5 * math.pi, _DRAWS)  # four rotations look alike
        bearing = np.arctan2(-offset[1], -offset[0]) - rotations
        x, y = np.abs(distance * np.cos(bearing)), np.abs(distance * np.sin(bearing))  # of the robot, from the box
        cube = np.hypot(np.maximum(x - box.half, 0.0), np.maximum(y - box.half, 0.0))
        columns = [np.maximum(np.abs(value - box.half) - box.half / 2, 0.0) for value in (x, y)]
        room = np.minimum(cube, np.hypot(*columns)) - reach
        free = np.flatnonzero(room >= 0)
        chosen = int(free[0]) if len(free) else int(room.argmax())
        robot_speed = self.world.rotation[0].reshape(3, 3)[:2] @ self.world.obs[0, 3:6]
        push = max(float(robot_speed @ away), 0.0) if room[chosen] < _TOUCHING else 0.0
        return float(rotations[chosen]), push * away

    def _hidden(self, kind: Objects, ring: FloatArray | None) -> FloatArray:
        """Draw a place where an object is not seen; far away if none is found."""
        side = self.plan.extents - kind.keepout
        for _ in range(_DRAWS):
            place = self.rng.uniform(-side, side, 2)
            offset = place - self.robot
            if ring is not None and visible(ring, *(self.turn.T @ offset)):
                continue
            if self.memory is None or self.memory.may_hide(self.remembered, kind.name, offset):
                return place
        return np.array([_FAR, _FAR]) + self.rng.uniform(0.0, _FAR, 2)

    def _set_goal(self) -> None:
        """Set the goal button, and the distances that the next reward is measured from."""
        world, plan = self.world, self.plan
        xy, goal = world.xy[0], world.xy[0, plan.goal]
        if plan.reward == BUTTON:
            buttons = xy[plan.button : plan.button + plan.buttons]
            away = np.hypot(*(buttons - goal).T)
            world.button[0] = away.argmin() if away.min() < _SAME_BUTTON else plan.buttons - 1  # the last may be drawn
            buttons[world.button[0]] = goal
        world.last[0] = np.hypot(*(goal - self.robot)), 0.0
        if plan.reward == PUSH:
            box = world.qpos[0, plan.qpos_at[plan.box] :][:3]
            world.last[0, 0] = np.linalg.norm(box - world.position[0])
            world.last[0, 1] = np.linalg.norm(box - [*goal, plan.goal_height])
