"""Step any environments in lock-step in this process, as a vector environment; with copies if these are exact."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray
from blendctl.envs.copies import EnvironmentCopier, as_env_action, find_copier
from blendctl.errors import InputError

Infos = dict[str, Any]


class LockStepEnvs(VectorEnv[Any, Any, Any]):
    """Environments that advance together; each has its own seed and random stream.

    Observations are stacked: (n, ...) of a Box, (n,) of a Discrete space, else an array (n,) of objects. Actions are
    arrays of numbers (n, ...); a discrete action is a number or one entry. `infos` has the entries that are numbers in
    every environment, each (n,).
    """

    def __init__(
        self,
        envs: Sequence[gymnasium.Env[Any, Any]],
        *,
        autoreset_mode: AutoresetMode = AutoresetMode.DISABLED,
        keep_open: bool = False,
    ) -> None:
        if autoreset_mode is AutoresetMode.NEXT_STEP:
            raise InputError("environments in lock-step reset at once (SAME_STEP), or on request (DISABLED)")
        self.envs, self.num_envs = list(envs), len(envs)
        self.autoreset_mode = autoreset_mode
        self.keep_open = keep_open  # the environments are somebody else's: `close` leaves them open
        self.metadata = {**envs[0].metadata, "autoreset_mode": autoreset_mode}
        self.render_mode = envs[0].render_mode
        self.single_observation_space = envs[0].observation_space
        self.single_action_space = envs[0].action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._now: list[Any] = [None] * self.num_envs  # present observations

    @property
    def threads(self) -> int:
        """How many threads step the environments."""
        return 1

    @property
    def max_episode_steps(self) -> int | None:
        """Limit of an episode, None if it is not known."""
        return episode_limit(self.envs[0])

    @property
    def observations(self) -> NDArray[Any]:
        """The present observations, (n, ...)."""
        return self._stack(self._now)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Infos | None = None
    ) -> tuple[NDArray[Any], Infos]:
        """Begin new episodes, in all or in those of options["reset_mask"]; environment i gets seed + i, or seeds[i]."""
        mask = np.ones(self.num_envs, np.bool_) if not options else np.asarray(options["reset_mask"])
        if seed is None or isinstance(seed, int | np.integer):
            seeds: list[Any] = [None if seed is None else int(seed) + row for row in range(self.num_envs)]
        else:
            seeds = list(seed)
        infos: list[Infos] = [{} for _ in self.envs]
        for row in np.flatnonzero(mask):
            self._now[row], infos[row] = self.envs[row].reset(seed=seeds[row])
        return self.observations, _gather(infos)

    def step(self, actions: Any) -> tuple[NDArray[Any], FloatArray, BoolArray, BoolArray, Infos]:
        """Step every environment by its action."""
        n = self.num_envs
        reward, terminated, truncated = np.zeros(n), np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        infos: list[Infos] = []
        final = np.full(n, None, dtype=object)
        for row, (env, action) in enumerate(zip(self.envs, actions, strict=True)):
            applied = as_env_action(self.single_action_space, action)
            self._now[row], reward[row], terminated[row], truncated[row], info = env.step(applied)
            infos.append(info)
            if self.autoreset_mode is AutoresetMode.SAME_STEP and (terminated[row] or truncated[row]):
                final[row] = self._now[row]
                self._now[row], _ = env.reset()
        gathered = _gather(infos)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and (terminated | truncated).any():
            gathered |= {"final_obs": final, "_final_obs": terminated | truncated}
        return self.observations, reward, terminated, truncated, gathered

    def take(self, observations: Sequence[Any]) -> None:
        """Set the observations after external steps."""
        self._now = list(observations)

    def render(self) -> tuple[Any, ...] | None:
        """Return a picture of every environment."""
        return None if self.render_mode is None else tuple(env.render() for env in self.envs)

    def close_extras(self, **_: Any) -> None:
        """Close the environments, unless somebody else does."""
        for env in () if self.keep_open else self.envs:
            env.close()

    def _stack(self, rows: Sequence[Any]) -> NDArray[Any]:
        if isinstance(self.single_observation_space, Box | Discrete):
            return np.stack([np.asarray(row) for row in rows])
        stacked = np.empty(len(rows), dtype=object)
        stacked[:] = rows
        return stacked


class BranchingEnvs(LockStepEnvs):
    """Environments in lock-step whose copies are exact: they can restore a state, and evaluate alternatives."""

    def __init__(self, envs: Sequence[gymnasium.Env[Any, Any]], copier: EnvironmentCopier, **options: Any) -> None:
        super().__init__(envs, **options)
        self.copier = copier

    def snapshot(self) -> list[tuple[Any, Any]]:
        """Return the state of every environment."""
        return [(self.copier.copy(env), now) for env, now in zip(self.envs, self._now, strict=True)]

    def restore(self, snapshots: Sequence[tuple[Any, Any]]) -> None:
        """Restore the environments; they continue bit for bit."""
        for row, (saved, now) in enumerate(snapshots):
            self.copier.restore(self.envs[row], saved)
            self._now[row] = now

    def peek(
        self,
        alternatives: Any,
        *,
        horizon: int | None = None,
        gamma: float = 1.0,
        components: bool = False,
    ) -> tuple[FloatArray, FloatArray] | tuple[FloatArray, FloatArray, dict[str, FloatArray]]:
        """Return reward (k, n) and cost (k, n) of k alternatives from here, without advancing any environment.

        Alternatives are actions (k, n, ...), evaluated by one step, or with `horizon` k functions from observations
        (n, ...) to actions (n, ...), whose rewards and costs are summed with discount `gamma`.
        """
        policies = [_constant(row) for row in alternatives] if horizon is None else list(alternatives)
        reward, cost = np.zeros((2, len(policies), self.num_envs))
        parts: dict[str, FloatArray] = {}
        for at, policy in enumerate(policies):
            envs = [self.copier.copy(env) for env in self.envs]
            rows, running, factor = list(self._now), np.ones(self.num_envs, np.bool_), 1.0
            for _ in range(horizon or 1):
                actions = policy(self._stack(rows))
                for row in np.flatnonzero(running):
                    action = as_env_action(self.single_action_space, actions[row])
                    rows[row], gained, terminated, truncated, info = envs[row].step(action)
                    reward[at, row] += factor * float(gained)
                    cost[at, row] += factor * float(info.get("cost", 0.0))
                    for name in (name for name in info if name.startswith("cost_") and _is_number(info[name])):
                        parts.setdefault(name, np.zeros_like(reward))[at, row] += factor * float(info[name])
                    running[row] = not (terminated or truncated)
                factor *= gamma
        return (reward, cost, parts) if components else (reward, cost)


class PeekingCopy(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Add `peek` to an environment whose copies are exact; raise InputError for another."""

    only_watches = True  # it changes nothing

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        found = find_copier(env)
        if found.copier is None:
            raise InputError(f"counterfactual steps need exact copies of the environment: {found.problem}")
        self._rows = BranchingEnvs([env], found.copier)

    def reset(self, **options: Any) -> tuple[Any, Infos]:
        """Begin an episode."""
        observation, info = self.env.reset(**options)
        self._rows.take([observation])
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Infos]:
        """Step the environment."""
        result = self.env.step(action)
        self._rows.take([result[0]])
        return result

    def peek(self, alternatives: Any, *, components: bool = False, **options: Any) -> Any:
        """Return reward (k,) and cost (k,) of k actions, or with `horizon` of k functions, without advancing."""
        rows = [_for_one(one) if callable(one) else [one] for one in alternatives]
        result: Any = self._rows.peek(rows, components=True, **options)
        reward, cost, parts = result
        values = {name: part[:, 0] for name, part in parts.items()}
        return (reward[:, 0], cost[:, 0], values) if components else (reward[:, 0], cost[:, 0])


def _for_one(policy: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda observations: [policy(observations[0])]


def lock_step(envs: Sequence[gymnasium.Env[Any, Any]], **options: Any) -> LockStepEnvs:
    """Return environments in lock-step, with `snapshot`, `restore` and `peek` if copies are exact."""
    copier = find_copier(envs[0]).copier
    return LockStepEnvs(envs, **options) if copier is None else BranchingEnvs(envs, copier, **options)


def episode_limit(env: Any) -> int | None:
    """Return the limit of an environment's episodes, None if it is not known."""
    layer, limits = env, []
    while isinstance(layer, gymnasium.Wrapper):
        limits.append(getattr(layer, "_max_episode_steps", None))
        layer = layer.env
    compiled = getattr(getattr(layer, "batch", None), "compiled_task", None)  # of a world of blendctl
    limits.append(getattr(compiled, "max_steps", None))
    known = [int(limit) for limit in limits if limit is not None]
    return min(known) if known else None


def control_period(env: Any) -> float | None:
    """Return the seconds of a control step, None if the environment does not declare it.

    It is `dt` of the innermost environment, as in MuJoCo's and most others, or `tau`, as in CartPole. The frames per
    second of its pictures may differ.
    """
    inner = env.unwrapped
    compiled = getattr(getattr(inner, "batch", None), "compiled_task", None)  # of a world of blendctl
    if compiled is not None:
        from blendctl.envs.compiled_task import SUBSTEPS

        return SUBSTEPS * float(compiled.timestep)
    value: Any = getattr(inner, "dt", getattr(inner, "tau", None))
    known = isinstance(value, int | float | np.number) and np.isfinite(value) and value > 0
    return float(value) if known else None


def _constant(actions: Any) -> Callable[[Any], Any]:
    return lambda observations: actions


def _gather(infos: Sequence[Infos]) -> Infos:
    """Return the entries that are numbers in every environment that has them, (n,), and masks of who has them."""
    gathered: Infos = {}
    for name in dict.fromkeys(name for info in infos for name in info):
        has = np.array([name in info for info in infos])
        values = [info.get(name, 0.0) for info in infos]
        if all(_is_number(value) for value in values):
            gathered[name] = np.array([float(value) for value in values])
            gathered[f"_{name}"] = has
    return gathered


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_) or (
        isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "fiub"
    )
