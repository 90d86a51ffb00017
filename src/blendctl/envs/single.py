"""Show one world as a Gymnasium environment, with snapshot, restore and peek."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.envs.batch import Policy, WorldBatch, check_seed, name_costs
from blendctl.envs.catalog import as_task
from blendctl.envs.drawing import Picture
from blendctl.envs.scene import Scene, read_scene
from blendctl.envs.spaces import action_space, observation_space
from blendctl.envs.tasks import Task
from blendctl.envs.view import RenderMetadata, View, Window
from blendctl.envs.world_state import UNBORN


class SingleWorld(gymnasium.Env[FloatArray, FloatArray]):
    """One world. `gymnasium.make("blendctl/PointGoal1-v0")` makes it, without wrappers.

    `render_mode` is "topdown", which works everywhere, or "rgb_array", MuJoCo's camera, which needs OpenGL; `view`
    sets their size and content (see `View`).

    The cost of a step is in `info["cost"]`, its components in `info["cost_hazards"]` and so on; all are 0 or 1.
    An episode is truncated after `max_episode_steps`, by default the task's limit; the count is part of a snapshot.
    `gymnasium.make(..., max_episode_steps=n)` adds Gymnasium's `TimeLimit`, which can only shorten episodes; for longer
    ones make a `SingleWorld`.
    """

    metadata: dict[str, Any] = RenderMetadata()  # type: ignore[assignment]  # a dictionary when read

    def __init__(
        self,
        task: Task | str,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        view: View | Mapping[str, Any] | None = None,
    ) -> None:
        self.task = as_task(task)
        self.window = None if render_mode is None else Window(render_mode, self.task, view=view)
        self.batch = WorldBatch(self.task, 1, threads=1, max_steps=max_episode_steps)
        self.render_mode = render_mode
        self.observation_space = observation_space(self.batch.compiled_task)
        self.action_space = action_space(self.batch.act_size)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Begin an episode; a seed produces the same layout as in the reference, None continues the random stream."""
        if seed is not None:
            seed = check_seed(seed)
        super().reset(seed=seed)
        if seed is None and self.batch.worlds.phase[0] == UNBORN:
            seed = int(self.np_random.integers(2**32))
        if seed is not None:
            self.batch.seed(0, seed)
        self.batch.reset(np.ones(1, dtype=np.bool_))
        return self.observation, {}

    def step(self, action: ArrayLike) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """Advance by an action (2,), clipped to [-1, 1]."""
        checked = self.batch.check_actions(action, solo=True)
        self.batch.expect_live()
        out = self.batch.step(checked)
        info: dict[str, Any] = {"cost": float(out.cost[0])}
        for name, value in zip(self.batch.cost_names, out.components[0].tolist(), strict=True):
            info[f"cost_{name}"] = value
        info["goal_met"] = bool(out.goal_met[0])
        info["unstable"] = bool(out.unstable[0])
        return out.obs[0], float(out.reward[0]), bool(out.terminated[0]), bool(out.truncated[0]), info

    @property
    def observation(self) -> FloatArray:
        """The present observation (obs,), for example after `restore`."""
        observation: FloatArray = self.batch.worlds.obs[0].copy()
        return observation

    def peek(
        self,
        alternatives: ArrayLike | Sequence[Policy],
        *,
        horizon: int | None = None,
        gamma: float = 1.0,
        components: bool = False,
    ) -> tuple[FloatArray, FloatArray] | tuple[FloatArray, FloatArray, dict[str, FloatArray]]:
        """Return reward (k,) and cost (k,) of k alternatives from here, without advancing the world.

        Alternatives are actions (k, 2), evaluated by one step, or with `horizon` k policies (functions from an
        observation (obs,) to an action (2,)), whose rewards and costs are summed with discount `gamma`
        over the horizon or to the end of the episode. `components=True` adds the costs by name.
        """
        outcome = self.batch.judge(alternatives, horizon=horizon, gamma=gamma, solo=True)
        reward, cost, parts = (values[:, 0] for values in outcome)
        return (reward, cost, name_costs(self.task, parts)) if components else (reward, cost)

    def snapshot(self) -> bytes:
        """Return the complete state of the world."""
        return self.batch.snapshot(0)

    def restore(self, snapshot: bytes) -> None:
        """Restore the world; it continues bit for bit. A rejected snapshot changes nothing."""
        self.batch.restore([snapshot])

    def scene(self) -> Scene:
        """Return the poses of the robot and every object."""
        return read_scene(self.batch, 0)

    def render(self) -> Picture | None:
        """Draw the world as (height, width, 3) bytes of red, green, blue; None without a render mode."""
        if self.window is None:
            gymnasium.logger.warn('this world has no render mode; make it with render_mode="topdown"')
            return None
        return self.window.picture(self.batch, 0)

    def close(self) -> None:
        """Release the world; closing twice is allowed."""
        self.batch.close()
        if self.window is not None:
            self.window.close()
