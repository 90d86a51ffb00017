"""Copy environments exactly: Gymnasium's wrappers, MuJoCo's data, and everything that supports deepcopy.

A copy has the state of every layer: counters of wrappers, random generators, attributes. Gymnasium's own environments
cannot be copied by `copy.deepcopy`: `EzPickle` makes a new one instead. MuJoCo's data is copied as a whole: time, warm
start and derived quantities belong to it. Objects that only render the environment are shared, and a copy does not
render.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete, Space
from gymnasium.utils import EzPickle
from gymnasium.utils.env_checker import data_equivalence

from blendctl.errors import BlendctlError, InputError
from blendctl.user_errors import describe_error

CostFunction = Callable[[Any, Any, dict[str, Any]], float]  # (observation, action, info) -> cost

# Packages whose objects render an environment and hold no part of its state.
_SHOWING = ("pygame", "pyglet", "glfw", "OpenGL", "matplotlib", "cv2", "moviepy")
_RENDERING = "gymnasium.envs.mujoco.mujoco_rendering"
_PLAIN_STATE: tuple[Any, ...] = (object.__getstate__, EzPickle.__getstate__)
LARGEST_POOL = 256  # MuJoCo data that is kept for the next copies


class EnvironmentCopier:
    """Copy an environment, and restore it from a copy.

    shared: share the parts that steps do not change: spaces, the specification and MuJoCo's model. `find_copier` tests
    whether this is exact.
    """

    def __init__(self, *, shared: bool = True) -> None:
        self.shared = shared
        self._pool: list[tuple[Any, Any]] = []  # MuJoCo's model and data that copies no longer use

    def copy(self, env: Any) -> Any:
        """Return a copy that continues exactly as `env`, and shares no state with it."""
        return self._copy(env, None)

    def restore(self, env: Any, saved: Any) -> None:
        """Restore `env` to the state of a copy; the copy is unchanged and can be used again."""
        made = self._copy(saved, env)
        for layer, new in list(zip(_layers(env), _layers(made), strict=True)):
            inner = vars(layer).get("env")
            layer.__dict__ = new.__dict__  # objects that refer to `new` then share the state of `layer`
            if isinstance(layer, gymnasium.Wrapper):
                layer.env = inner

    def _copy(self, env: Any, target: Any) -> Any:
        """Copy all layers; with a target, its MuJoCo data is overwritten in place, and its render mode is kept."""
        layers = list(_layers(env))
        targets = [None] * len(layers) if target is None else list(_layers(target))
        memo: dict[int, Any] = {}
        taken: list[tuple[Any, Any]] = []
        for layer, goal in zip(layers, targets, strict=True):
            for name, value in vars(layer).items():
                if _is_mujoco_data(value):
                    kept = None if goal is None else vars(goal).get(name)
                    memo[id(value)] = self._mujoco_data(vars(layer).get("model"), value, kept, taken)
                elif self._is_shared(value):
                    memo[id(value)] = value
        plain = [layer for layer in layers if _has_plain_state(type(layer))]
        for layer in plain:
            memo[id(layer)] = object.__new__(type(layer))
        for layer, goal in reversed(list(zip(layers, targets, strict=True))):
            if layer in plain:
                made = memo[id(layer)]
                made.__dict__.update({name: copy.deepcopy(value, memo) for name, value in vars(layer).items()})
            else:
                made = memo[id(layer)] = copy.deepcopy(layer, memo)
            if "render_mode" in vars(made) and made is not layer:
                made.__dict__["render_mode"] = None if goal is None else vars(goal).get("render_mode")
        made = memo[id(env)]
        for pair in taken:
            weakref.finalize(made, self._release, pair).atexit = False
        return made

    def _is_shared(self, value: Any) -> bool:
        kind = type(value).__module__
        if kind.partition(".")[0] in _SHOWING or kind == _RENDERING:
            return True
        return self.shared and (isinstance(value, Space | gymnasium.envs.registration.EnvSpec) or _is_model(value))

    def _mujoco_data(self, model: Any, data: Any, kept: Any, taken: list[tuple[Any, Any]]) -> Any:
        import mujoco

        if model is None or not self.shared:
            return copy.deepcopy(data)
        if kept is not None:
            made = kept
        else:
            at = next((at for at, (its, _) in enumerate(self._pool) if its is model), None)
            made = mujoco.MjData(model) if at is None else self._pool.pop(at)[1]  # a new one takes half a millisecond
            taken.append((model, made))
        mujoco.mj_copyData(made, model, data)
        return made

    def _release(self, pair: tuple[Any, Any]) -> None:
        if len(self._pool) < LARGEST_POOL:
            self._pool.append(pair)


def _layers(env: Any) -> Iterator[Any]:
    """Yield an environment and those below it, the outermost first."""
    yield env
    for value in vars(env).values():
        if isinstance(value, gymnasium.Env):
            yield from _layers(value)


def _has_plain_state(kind: type) -> bool:
    """Return whether the attributes of an object are its whole state: it has no copy protocol of its own."""
    custom = ("__deepcopy__", "__reduce__", "__reduce_ex__", "__setstate__")
    states = [getattr(kind, name, None) for name in custom]
    plain = (None, object.__reduce__, object.__reduce_ex__, EzPickle.__setstate__)
    return all(any(state is one for one in plain) for state in states) and any(
        kind.__getstate__ is one for one in _PLAIN_STATE
    )


def _is_mujoco_data(value: Any) -> bool:
    return type(value).__name__ == "MjData" and type(value).__module__.startswith("mujoco")


def _is_model(value: Any) -> bool:
    return type(value).__name__ == "MjModel" and type(value).__module__.startswith("mujoco")


def step_env(env: Any, action: Any, cost: CostFunction | None) -> tuple[Any, float, float, bool]:
    """Step an environment; return observation, reward, cost, and whether its episode continues."""
    applied = as_env_action(env.action_space, action)
    observation, reward, terminated, truncated, info = env.step(applied)
    spent = info.get("cost", 0.0) if cost is None else cost(observation, applied, info)
    return observation, float(reward), float(spent), not (terminated or truncated)


def as_env_action(space: Any, action: Any) -> Any:
    """Convert an action of numbers to the type of an environment's action space: a whole number or an array."""
    if isinstance(space, Discrete):
        return int(np.asarray(action).item())
    return np.asarray(action).astype(space.dtype).reshape(space.shape)


@dataclass(frozen=True)
class CopyCheck:
    """Whether copies of an environment are exact, and if not, why."""

    copier: EnvironmentCopier | None  # None if copies are not exact
    problem: str | None  # in words
    step: int | None = None  # first step that differs


def find_copier(env: Any, *, cost: CostFunction | None = None, steps: int = 20, seed: int = 0) -> CopyCheck:
    """Copy an environment within an episode, and compare `steps` steps of both with the same actions, bit for bit.

    The environment itself is only copied. The copy drives first: if it shares state with the environment, they differ.
    """
    found = CopyCheck(None, None)
    for shared in (True, False):
        copier = EnvironmentCopier(shared=shared)
        try:
            found = _compare(copier, env, cost, steps, seed)
        except BlendctlError:
            raise
        except Exception as error:  # the user's environment may raise anything
            found = CopyCheck(None, f"the environment cannot be copied ({describe_error(error)})")
        if found.copier is not None:
            break
    return found


def _compare(copier: EnvironmentCopier, env: Any, cost: CostFunction | None, steps: int, seed: int) -> CopyCheck:
    one = copier.copy(env)
    if one.unwrapped is env.unwrapped:
        return CopyCheck(None, "a copy of the environment is not exact: it is the same object")
    rng = np.random.default_rng(seed)
    space = copy.deepcopy(env.action_space)
    space.seed(int(rng.integers(2**31)))
    actions = [space.sample() for _ in range(steps + steps // 2)]
    one.reset(seed=seed)
    for action in actions[steps:]:
        if not step_env(one, action, cost)[3]:
            one.reset(seed=seed)
    other = copier.copy(one)
    saved = copier.copy(one)
    theirs = _drive(other, actions[:steps], cost)
    ours = _drive(one, actions[:steps], cost)
    found = _first_difference(ours, theirs)
    if found is None:
        copier.restore(one, saved)
        found = _first_difference(ours, _drive(one, actions[:steps], cost))
    return CopyCheck(copier, None) if found is None else found


def _drive(env: Any, actions: list[Any], cost: CostFunction | None) -> list[tuple[Any, ...]]:
    """Return the result of every step; after the end of an episode, start another one without a seed."""
    results = []
    for action in actions:
        outcome = step_env(env, action, cost)
        results.append(copy.deepcopy(outcome))
        if not outcome[3]:
            env.reset()
    return results


def _first_difference(ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]) -> CopyCheck | None:
    names = ("observation", "reward", "cost", "running")
    for number, (mine, its) in enumerate(zip(ours, theirs, strict=True), start=1):
        for name, a, b in zip(names, mine, its, strict=True):
            if not data_equivalence(a, b, exact=True):
                return CopyCheck(
                    None,
                    f"a copy of the environment is not exact: in step {number} of the same actions the {name} is "
                    f"{_text(b)}, expected {_text(a)}",
                    step=number,
                )
    return None


def _text(value: Any) -> str:
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def expect_copier(env: Any, *, cost: CostFunction | None) -> EnvironmentCopier:
    """Return the copier of an environment; raise InputError if copies are not exact."""
    found = find_copier(env, cost=cost)
    if found.copier is None:
        raise InputError(
            f"{found.problem}. Use another simulator: a second environment with set_state=, or a "
            "model(observation, controllers, horizon, rng)"
        )
    return found.copier
