"""Simulate futures in copies of any environment; select the simulator for an environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray, IndexArray
from blendctl.envs.copies import CostFunction, EnvironmentCopier, expect_copier, step_env
from blendctl.errors import InputError
from blendctl.features.futures import Branches, Simulator

if TYPE_CHECKING:
    from blendctl.envs.tasks import Task
    from blendctl.features.world_simulators import RebuiltWorlds

SetState = Callable[[Any, Any], None]  # (environment, observation)

CHECKED_STEPS = 20
SET_TOLERANCE = 1e-3  # observations are rounded, and differences grow


def as_simulator(env: Any, *, set_state: SetState | None, cost: CostFunction | None, threads: int | None) -> Simulator:
    """Return the simulator for an environment: copies of it, or with `set_state` copies of a second instance."""
    if set_state is not None:
        return SecondEnvironment(env, set_state, cost=cost)
    from blendctl.features.world_simulators import OwnWorlds, own_world  # loads MuJoCo

    world = own_world(env)
    if world is not None and cost is None:
        return OwnWorlds(world.batch, threads=threads)
    return CopiedEnvironment(env, cost=cost)


def same_environment(one: Any, other: Any) -> bool:
    """Return whether two environments, wrapped or not, are the same."""
    return getattr(one, "unwrapped", one) is getattr(other, "unwrapped", other)


@dataclass(frozen=True)
class Twin:
    """A world of blendctl that is rebuilt from every observation; the true state is not needed.

    >>> Twin("PointGoal1").open(threads=1).source.task.robot
    'Point'
    """

    world: Task | str
    max_episode_steps: int | None = None  # None: the world's limit
    memory: bool = True  # use all observations of the episode, not only the last one

    def open(self, *, threads: int | None) -> RebuiltWorlds:
        """Return the simulator; None uses all cores."""
        from blendctl.features.world_simulators import rebuilt_worlds  # loads MuJoCo

        return rebuilt_worlds(self.world, max_steps=self.max_episode_steps, threads=threads, memory=self.memory)


class _EnvBranches(Branches):
    """Environments that are stepped one after another."""

    def __init__(
        self,
        envs: list[Any],
        observations: FloatArray,
        running: BoolArray,
        *,
        copier: EnvironmentCopier,
        cost: CostFunction | None,
    ) -> None:
        self.envs, self.copier, self.cost = envs, copier, cost
        self._observations, self._running = observations, running

    @property
    def observations(self) -> FloatArray:
        return self._observations

    @property
    def running(self) -> BoolArray:
        return self._running

    def step(self, actions: FloatArray) -> tuple[FloatArray, FloatArray]:
        reward, cost = np.zeros(len(actions)), np.zeros(len(actions))
        following, running = self._observations.copy(), self._running.copy()
        for row in np.flatnonzero(running):
            following[row], reward[row], cost[row], running[row] = step_env(self.envs[row], actions[row], self.cost)
        self._observations, self._running = following, running
        return reward, cost

    def branch(self, index: IndexArray) -> Branches:
        envs = [self.copier.copy(self.envs[i]) for i in index]
        return _EnvBranches(envs, self._observations[index], self._running[index], copier=self.copier, cost=self.cost)


class CopiedEnvironment(Simulator):
    """Copies of the driven environment; each draws its future from a new seed. Copying is checked beforehand."""

    copies_driven = True

    def __init__(self, env: Any, *, cost: CostFunction | None) -> None:
        self.envs = list(getattr(env, "envs", ())) if isinstance(env, VectorEnv) else [_without_watchers(env)]
        if not self.envs or not all(isinstance(one, gymnasium.Env) for one in self.envs):
            raise InputError(
                "simulated look-ahead copies a Gymnasium environment or worlds of blendctl, actually: "
                f"{type(env).__name__}; for anything else pass a model: a function "
                "model(observation, controllers, horizon, rng) that returns returns and costs"
            )
        self.cost = cost
        self.copier = expect_copier(self.envs[0], cost=cost)

    def open(
        self, observations: FloatArray, rows: IndexArray, seeds: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> Branches:
        envs = [self.copier.copy(self.envs[row]) for row in rows]
        for env, seed in zip(envs, seeds, strict=True):
            env.unwrapped.np_random = np.random.default_rng(seed)
        return _EnvBranches(envs, observations[rows], np.ones(len(rows), np.bool_), copier=self.copier, cost=self.cost)


def _without_watchers(env: Any) -> Any:
    """Return the environment below wrappers that only record: its copies must not record."""
    while isinstance(env, gymnasium.Wrapper) and getattr(env, "only_watches", False):
        env = env.env
    return env


class SecondEnvironment(Simulator):
    """Copies of a second environment, which `set_state(environment, observation)` sets to the present state."""

    def __init__(self, env: Any, set_state: SetState, *, cost: CostFunction | None) -> None:
        if not isinstance(env, gymnasium.Env) or not callable(set_state):
            raise InputError(
                "a second environment needs a Gymnasium environment and set_state(environment, observation), actually: "
                f"{env!r} and {set_state!r}"
            )
        self.env, self.set_state, self.cost = env, set_state, cost
        self.copier = expect_copier(env, cost=cost)
        _check_set_state(self)

    def open(
        self, observations: FloatArray, rows: IndexArray, seeds: NDArray[np.int64], steps: NDArray[np.int64]
    ) -> Branches:
        envs = [self.set(observations[row], int(seed)) for row, seed in zip(rows, seeds, strict=True)]
        return _EnvBranches(envs, observations[rows], np.ones(len(rows), np.bool_), copier=self.copier, cost=self.cost)

    def set(self, observation: Any, seed: int) -> Any:
        """Return a copy that is set to the state of an observation, in an episode of this seed."""
        self.env.reset(seed=seed)
        env = self.copier.copy(self.env)
        self.set_state(env, observation)
        return env


def action_limits(env: Any) -> tuple[Any, Any] | None:
    """Return the limits of an environment's actions, None if it has none."""
    space = getattr(env, "single_action_space", None) or getattr(env, "action_space", None)
    return (space.low, space.high) if isinstance(space, Box) else None


def _check_set_state(simulator: SecondEnvironment) -> None:
    """Step an environment and one set to its state with the same actions; raise InputError if they differ."""
    one, cost = simulator.copier.copy(simulator.env), simulator.cost
    observation, _ = one.reset(seed=0)
    one.action_space.seed(0)
    actions = [np.asarray(one.action_space.sample()) for _ in range(2 * CHECKED_STEPS)]
    for action in actions[: CHECKED_STEPS // 2]:
        observation, _, _, running = step_env(one, action, cost)
        if not running:
            observation, _ = one.reset(seed=0)
    other = simulator.set(observation, 0)
    other.unwrapped.np_random = simulator.copier.copy(one).unwrapped.np_random
    for number, action in enumerate(actions[CHECKED_STEPS:], start=1):
        mine, its = step_env(one, action, cost), step_env(other, action, cost)
        for name, a, b in zip(("observation", "reward", "cost", "running"), mine, its, strict=True):
            values = np.asarray(a, np.float64), np.asarray(b, np.float64)
            if not np.allclose(*values, rtol=SET_TOLERANCE, atol=SET_TOLERANCE):
                raise InputError(
                    f"set_state does not restore the state of an observation: in step {number} of the same actions the "
                    f"{name} is {np.asarray(b).tolist()}, expected {np.asarray(a).tolist()}. Use a "
                    "model(observation, controllers, horizon, rng)"
                )
        if not mine[3]:
            return
