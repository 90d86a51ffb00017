"""Keep a batch of worlds and run it: reset, step, peek, snapshot, restore, without Gymnasium's conventions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import BoolArray, FloatArray
from blendctl.envs import world_state
from blendctl.envs.compiled_task import SUBSTEPS, compile_task
from blendctl.envs.kernels import DISABLED, Outcome, run_peeks, run_resets, run_steps
from blendctl.envs.mersenne import seed_generator
from blendctl.envs.objects import check_count
from blendctl.envs.physics import PhysicsSlot
from blendctl.envs.tasks import Task
from blendctl.envs.thread_pool import ThreadPool, available_cores
from blendctl.envs.world import build_model
from blendctl.errors import InputError, StateError

Policy = Callable[[FloatArray], ArrayLike]  # observations (n, obs) -> actions (n, act)

LARGEST_SEED = 2**32 - 1


@lru_cache(maxsize=32)
def _model_of(task: Task) -> mujoco.MjModel:
    """Compile a task's model once per process; slots work on copies."""
    return build_model(task)


def check_seed(seed: int) -> int:
    """Return the seed if the reference's generator takes it."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"expected a seed from 0 to 2**32 - 1, actually: {seed!r}")
    return int(seed)


def as_policies(alternatives: ArrayLike | Sequence[Policy]) -> list[Policy]:
    """Return the policies, or raise if these are not policies."""
    if isinstance(alternatives, Sequence) and alternatives:
        policies = [policy for policy in alternatives if callable(policy)]
        if len(policies) == len(alternatives):
            return policies
    raise InputError("with a horizon, expected a list of policies: functions from observations to actions")


def name_costs(task: Task, components: FloatArray) -> dict[str, FloatArray]:
    """Split components (..., costs) by name."""
    return {f"cost_{name}": components[..., c] for c, name in enumerate(task.cost_names)}


def _for_one(policy: Policy) -> Policy:
    return lambda observations: np.asarray(policy(observations[0]))[None]


def _of_shape(wanted: tuple[int, ...], alternatives: bool) -> str:
    return f"actions of shape {('k', *wanted) if alternatives else wanted}".replace("'", "")


class WorldBatch:
    """Worlds of one task, their states in arrays, and the threads that run them."""

    def __init__(self, task: Task, num_envs: int, *, threads: int | None = None, max_steps: int | None = None):
        self.task = task
        self.num_envs = check_count(num_envs, "num_envs")
        threads = available_cores() if threads is None else check_count(threads, "threads")
        steps = task.max_episode_steps if max_steps is None else check_count(max_steps, "max_episode_steps")
        self.model = _model_of(task)
        self.compiled_task = compile_task(task, self.model, max_steps=steps)
        self.worlds = world_state.empty_worlds(self.compiled_task, self.model, self.num_envs)
        self.pool = ThreadPool(self.model, min(threads, self.num_envs))
        self.mark = world_state.fingerprint(task)
        self.act_size: int = self.model.nu
        self.cost_names = task.cost_names

    def seed(self, row: int, seed: int) -> None:
        """Seed a world's random generator; the next reset draws from it."""
        seed_generator(self.worlds.key[row], self.worlds.pos[row], check_seed(seed))

    def reset(self, mask: BoolArray) -> None:
        """Begin a new episode in the masked worlds; they must have been seeded once."""
        counter = np.zeros(1, dtype=np.int64)
        self._run(lambda slot: run_resets(self.compiled_task, slot, self.worlds, mask, counter))

    def step(
        self,
        actions: FloatArray,
        *,
        autoreset: int = DISABLED,
        substeps: int = SUBSTEPS,
        worlds: world_state.WorldState | None = None,
    ) -> Outcome:
        """Advance by checked actions (n, act); other `worlds` of the same size may replace the batch's own."""
        out = self.blank_outcome()
        counter = np.zeros(1, dtype=np.int64)
        run, stepped = partial(run_steps, self.compiled_task), self.worlds if worlds is None else worlds
        self._run(lambda slot: run(slot, stepped, actions, substeps, autoreset, out, counter))
        return out

    def judge(
        self, alternatives: ArrayLike | Sequence[Policy], *, horizon: int | None, gamma: float, solo: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Check and evaluate actions by one step, or policies over a horizon; see `peek`, `roll`, `check_actions`."""
        self.expect_reset()
        if horizon is None:
            actions = self.check_actions(alternatives, alternatives=True, solo=solo)  # type: ignore[arg-type]  # refuses policies
            return self.peek(actions)
        policies = as_policies(alternatives)
        return self.roll([_for_one(policy) for policy in policies] if solo else policies, horizon=horizon, gamma=gamma)

    def peek(self, actions: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Evaluate checked actions (k, n, act): reward (k, n), cost (k, n), components (k, n, costs)."""
        k, n = actions.shape[:2]
        reward, cost = np.zeros((k, n)), np.zeros((k, n))
        components = np.zeros((k, n, len(self.cost_names)))
        counter = np.zeros(1, dtype=np.int64)
        run = partial(run_peeks, self.compiled_task)
        self.pool.run(lambda slot: run(slot, self.worlds, actions, SUBSTEPS, reward, components, cost, counter))
        return reward, cost, components

    def roll(
        self, policies: Sequence[Policy], *, horizon: int, gamma: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Roll out each policy from the frozen worlds: discounted sums, as `peek`, until an episode's end."""
        check_count(horizon, "horizon")
        if not 0.0 <= gamma <= 1.0:
            raise InputError(f"expected 0 <= gamma <= 1, actually: {gamma}")
        shape = (len(policies), self.num_envs)
        reward, cost = np.zeros(shape), np.zeros(shape)
        components = np.zeros((*shape, len(self.cost_names)))
        for k, policy in enumerate(policies):
            worlds = world_state.copy_worlds(self.worlds)
            weight = 1.0
            for _ in range(horizon):
                live = worlds.phase == world_state.RUNNING  # (n,)
                if not live.any():
                    break
                actions = self.check_actions(policy(worlds.obs.copy()))
                out = self.step(actions, worlds=worlds)
                reward[k] += weight * live * out.reward
                cost[k] += weight * live * out.cost
                components[k] += weight * live[:, None] * out.components
                weight *= gamma
        return reward, cost, components

    def check_actions(self, actions: ArrayLike, *, alternatives: bool = False, solo: bool = False) -> FloatArray:
        """Return actions (n, act), or alternatives (k, n, act), as float64; they are clipped later.

        With `solo`, a batch of one world takes actions without its axis: (act,), or (k, act) or also (k, 1, act).
        """
        wanted = (self.act_size,) if solo else (self.num_envs, self.act_size)
        if isinstance(actions, Sequence) and any(map(callable, actions)):
            raise InputError("policies need a horizon; pass peek(policies, horizon=1) for one step")
        try:
            array = np.asarray(actions, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"expected {_of_shape(wanted, alternatives)}, actually: {error}") from error
        if solo and alternatives and array.ndim == 3:
            wanted = (1, self.act_size)
        if array.ndim != len(wanted) + alternatives or array.shape[alternatives:] != wanted:
            raise InputError(f"expected {_of_shape(wanted, alternatives)}, actually: {array.shape}")
        if not array.flags.carray:  # read-only or strided: the loops would be compiled again for it
            array = array.copy()
        if not np.isfinite(array).all():
            bad = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
            raise InputError(f"expected finite actions, actually: {array[bad]} at {bad}; no world was stepped")
        return array.reshape(*array.shape[:alternatives], self.num_envs, self.act_size)

    def expect_reset(self) -> None:
        """Raise StateError if a world was never reset."""
        if self.worlds.phase.max() == world_state.UNBORN:
            raise StateError("there is no episode yet; call reset(seed=...) first")

    def expect_live(self) -> None:
        """Raise StateError if a world was never reset or its episode is over."""
        if self.worlds.phase.max() != world_state.RUNNING:
            self.expect_reset()
            ended = int(np.argmax(self.worlds.phase == world_state.ENDED))
            raise StateError(f"the episode of world {ended} is over; call reset() before the next step")

    def snapshot(self, row: int) -> bytes:
        """Return the complete state of a world as bytes."""
        self.expect_reset()
        return world_state.pack_world(self.worlds, row, self.mark)

    def restore(self, snapshots: Sequence[bytes]) -> None:
        """Restore worlds from bytes, one snapshot per row; check all before changing any."""
        if not isinstance(snapshots, list | tuple):
            kind = type(snapshots).__name__
            raise InputError(f"expected a list of {self.num_envs} snapshots, actually: {kind}")
        if len(snapshots) != self.num_envs:
            raise InputError(f"expected {self.num_envs} snapshots, actually: {len(snapshots)}")
        rows = [world_state.unpack_world(snapshot, self.worlds, self.mark) for snapshot in snapshots]
        for values in rows:
            world_state.check_world(values, self.compiled_task)
        for row, values in enumerate(rows):
            arrays: tuple[NDArray[Any], ...] = self.worlds
            for array, value in zip(arrays, values, strict=True):
                array[row] = value

    def close(self) -> None:
        """Stop the threads."""
        self.pool.close()

    def blank_outcome(self) -> Outcome:
        """Return an empty outcome: zeros."""
        n, size = self.worlds.obs.shape
        goal_met, terminated, truncated, unstable = np.zeros((4, n), dtype=np.bool_)
        return Outcome(
            obs=np.zeros((n, size)),
            reward=np.zeros(n),
            cost=np.zeros(n),
            components=np.zeros((n, len(self.cost_names))),
            goal_met=goal_met,
            terminated=terminated,
            truncated=truncated,
            unstable=unstable,
            final_obs=np.zeros((n, size)),
        )

    def _run(self, work: Callable[[PhysicsSlot], bool]) -> None:
        if not all(self.pool.run(work)):
            raise InputError(
                f"the objects do not fit: no layout was found inside extents={self.task.extents}; "
                "use fewer objects, smaller keepouts or larger extents"
            )
