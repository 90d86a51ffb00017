"""Show many worlds in lock-step as a Gymnasium vector environment, with snapshot, restore and peek."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike

from blendctl.arrays import BoolArray, FloatArray
from blendctl.envs.batch import Policy, WorldBatch, check_seed, name_costs
from blendctl.envs.catalog import as_task
from blendctl.envs.drawing import Picture
from blendctl.envs.kernels import DISABLED, NEXT_STEP, SAME_STEP, Outcome
from blendctl.envs.scene import Scene, read_scene
from blendctl.envs.spaces import action_space, observation_space
from blendctl.envs.tasks import Task
from blendctl.envs.view import RENDER_MODES, View, Window, frames_per_second
from blendctl.envs.world_state import ENDED, UNBORN
from blendctl.errors import InputError, did_you_mean

Infos: TypeAlias = dict[str, Any]

_MODES = {AutoresetMode.NEXT_STEP: NEXT_STEP, AutoresetMode.SAME_STEP: SAME_STEP, AutoresetMode.DISABLED: DISABLED}


class VectorWorld(VectorEnv[FloatArray, FloatArray, Any]):
    """`num_envs` worlds of one task that advance together.

    World i's trajectory depends only on its own seed and actions, not on the number of worlds or threads. Every call
    that steps costs one pass over the threads.
    """

    def __init__(
        self,
        task: Task | str,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        view: View | Mapping[str, Any] | None = None,
    ) -> None:
        self.task = as_task(task)
        self.window = None if render_mode is None else Window(render_mode, self.task, view=view)
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        self.batch = WorldBatch(self.task, num_envs, threads=threads, max_steps=max_episode_steps)
        self.max_episode_steps = self.task.max_episode_steps if max_episode_steps is None else max_episode_steps
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": list(RENDER_MODES),
            "render_fps": frames_per_second(self.batch.compiled_task),
        }
        self.single_observation_space = observation_space(self.batch.compiled_task)
        self.single_action_space = action_space(self.batch.act_size)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    @property
    def threads(self) -> int:
        """How many threads step the worlds."""
        return self.batch.pool.threads

    @property
    def observations(self) -> FloatArray:
        """The present observations (n, obs), for example after `restore`."""
        return self.batch.worlds.obs.copy()

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, Infos]:
        """Begin new episodes; world i gets seed + i, or the i-th of the seeds; None continues its random stream.

        `options={"reset_mask": mask}` with mask (n,) of bool resets some worlds only.
        """
        seeds = self._seeds(seed)
        mask = self._mask(options)
        for row in np.flatnonzero(mask):
            value = seeds[row]
            if value is None and self.batch.worlds.phase[row] == UNBORN:
                value = int(self.np_random.integers(2**32))
            if value is not None:
                self.batch.seed(int(row), value)
        self.batch.reset(mask)
        return self.observations, {}

    def step(self, actions: ArrayLike) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray, Infos]:
        """Advance every world by its action of actions (n, act); the costs are in the infos.

        After its end an episode is reset according to `autoreset_mode`: in the next step, whose action is
        ignored and whose reward is 0, or at once, with the last observation in `infos["final_obs"]`.
        """
        checked = self.batch.check_actions(actions)
        mode = _MODES[self.autoreset_mode]
        if mode == DISABLED:
            self.batch.expect_live()
        else:
            self.batch.expect_reset()
        idle = (self.batch.worlds.phase == ENDED) & (mode == NEXT_STEP)  # (n,) these are only reset
        out = self.batch.step(checked, autoreset=mode)
        return out.obs, out.reward, out.terminated, out.truncated, self._infos(out, idle)

    def peek(
        self,
        alternatives: ArrayLike | Sequence[Policy],
        *,
        horizon: int | None = None,
        gamma: float = 1.0,
        components: bool = False,
    ) -> tuple[FloatArray, FloatArray] | tuple[FloatArray, FloatArray, dict[str, FloatArray]]:
        """Return reward (k, n) and cost (k, n) of k alternatives from here, without advancing any world.

        Alternatives are actions (k, n, act), evaluated by one step, or with `horizon` k policies (functions from
        observations (n, obs) to actions (n, act)), whose rewards and costs are summed with discount `gamma`
        over the horizon or to the end of the episode. `components=True` adds the costs by name.
        A world whose episode is over yields 0.
        """
        reward, cost, parts = self.batch.judge(alternatives, horizon=horizon, gamma=gamma)
        return (reward, cost, name_costs(self.task, parts)) if components else (reward, cost)

    def snapshot(self) -> list[bytes]:
        """Return the complete state of every world, as bytes each."""
        return [self.batch.snapshot(row) for row in range(self.num_envs)]

    def restore(self, snapshots: Sequence[bytes]) -> None:
        """Restore the worlds; they continue bit for bit. A rejected snapshot changes nothing."""
        self.batch.restore(snapshots)

    def scene(self, row: int = 0) -> Scene:
        """Return the poses in one world."""
        if not 0 <= row < self.num_envs:
            raise InputError(f"expected a world from 0 to {self.num_envs - 1}, actually: {row}")
        return read_scene(self.batch, row)

    def render(self) -> tuple[Picture, ...] | None:
        """Draw every world as (height, width, 3) bytes of red, green, blue; None without a render mode."""
        if self.window is None:
            gymnasium.logger.warn('these worlds have no render mode; make them with render_mode="topdown"')
            return None
        return tuple(self.window.picture(self.batch, row) for row in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Stop the threads and free OpenGL resources."""
        self.batch.close()
        if self.window is not None:
            self.window.close()

    def _infos(self, out: Outcome, idle: BoolArray) -> Infos:
        """Name the results of the step; as in Gymnasium, a mask `_key` marks the worlds whose latest step has it."""
        ended = out.terminated | out.truncated
        replaced = self.autoreset_mode is AutoresetMode.SAME_STEP and bool(ended.any())
        present = ~(ended if replaced else idle)
        infos: Infos = {"cost": out.cost, "goal_met": out.goal_met, "unstable": out.unstable}
        for c, name in enumerate(self.batch.cost_names):
            infos[f"cost_{name}"] = np.ascontiguousarray(out.components[:, c])
        for key in list(infos):
            infos[f"_{key}"] = present
        if replaced:
            final = np.full(self.num_envs, None, dtype=object)
            for row in np.flatnonzero(ended):
                final[row] = out.final_obs[row]
            last = {key: ended if key[0] == "_" else value for key, value in infos.items()}
            infos |= {"final_obs": final, "_final_obs": ended, "final_info": last, "_final_info": ended}
        return infos

    def _seeds(self, seed: int | Sequence[int | None] | None) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if not isinstance(seed, Sequence | np.ndarray):
            first = check_seed(seed)
            super().reset(seed=first)
            return [check_seed(first + row) for row in range(self.num_envs)]
        seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise InputError(f"expected {self.num_envs} seeds, actually: {len(seeds)}")
        return [None if value is None else check_seed(value) for value in seeds]

    def _mask(self, options: dict[str, Any] | None) -> BoolArray:
        if not options or "reset_mask" not in options:
            return np.ones(self.num_envs, dtype=np.bool_)
        mask = np.asarray(options["reset_mask"])
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
            wanted = f"a reset_mask of {self.num_envs} booleans, at least one of them true"
            raise InputError(f"expected {wanted}, actually: {mask!r}")
        return mask.copy()  # compiled code needs a plain array


def _autoreset_mode(mode: AutoresetMode | str) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except ValueError:
        known = [known.value for known in AutoresetMode]
        raise InputError(f'there is no autoreset mode "{mode}"; {did_you_mean(str(mode), known)}') from None
