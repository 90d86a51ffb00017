"""Check an environment before it is used: spaces, cost, determinism, exact copies, lock-step, pictures."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.utils.env_checker import check_env, data_equivalence

from blendctl.envs.copies import find_copier
from blendctl.envs.environment import CostFunction, EnvironmentSpec, as_environment
from blendctl.envs.lockstep import LockStepEnvs, episode_limit
from blendctl.user_errors import describe_error

__all__ = ["EnvironmentCheck", "check_environment"]

STEPS = 200  # of every test
LIKELY_COSTS = ("cost", "crash", "collision", "violat", "unsafe", "damage", "danger", "penalty", "constraint")


@dataclass(frozen=True)
class EnvironmentCheck:
    """Result of checking an environment. `usable` is False only if a blend cannot drive it at all."""

    name: str
    usable: bool = False
    observation_space: str = ""
    action_space: str = ""
    spaces_supported: bool = False
    episode_steps: int | None = None  # limit of an episode; None: not known
    cost_found: bool = False
    cost_key: str | None = None  # the entry of `info` that is the cost, or the function
    cost_candidates: tuple[str, ...] = ()  # entries of `info` whose names sound like costs
    info_keys: tuple[str, ...] = ()
    deterministic: bool = False
    copy_exact: bool = False
    copy_parts_at: int | None = None  # first step in which a copy differs
    vector: bool = False
    render: bool = False
    render_size: tuple[int, int] | None = None  # height and width in pixels
    step_microseconds: float | None = None
    copy_microseconds: float | None = None
    problems: tuple[str, ...] = ()  # what does not work, and the remedy
    notes: tuple[str, ...] = field(default=())  # of Gymnasium's checker


def check_environment(
    env: str | EnvironmentSpec | gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]],
    *,
    cost: str | CostFunction | None = None,
    episode_steps: int | None = None,
    seed: int = 0,
) -> EnvironmentCheck:
    """Check what blendctl can do with an environment: a name, an environment, or a function that makes one.

    >>> found = check_environment("Pendulum-v1")
    >>> found.usable, found.copy_exact, found.deterministic, found.cost_found
    (True, True, True, False)
    """
    make, spec = as_environment(env, cost=cost, episode_steps=episode_steps)
    one = make()
    name = spec.name if spec is not None else getattr(one.spec, "id", None) or type(one.unwrapped).__name__
    found: dict[str, Any] = {"name": name, "observation_space": _describe(one.observation_space)}
    found |= {"action_space": _describe(one.action_space), "episode_steps": episode_limit(one)}
    problems: list[str] = []
    supported = _check_spaces(one, problems)
    found["spaces_supported"] = supported
    try:
        drive = _drive(one, seed)
    except Exception as error:  # the user's environment may raise anything
        problems.append(f"driving with random actions failed: {describe_error(error)}")
        return EnvironmentCheck(**found, problems=tuple(problems))
    found |= {"usable": supported, "step_microseconds": round(drive.microseconds, 1)}
    found |= _check_cost(drive, spec.cost if spec is not None else cost, problems)
    found["deterministic"] = _check_determinism(make(), drive, seed, problems)
    found |= _check_copies(one, seed, problems)
    found["vector"] = _check_vector(make, one, seed, problems)
    found |= _check_render(one, spec, problems)
    return EnvironmentCheck(**found, problems=tuple(problems), notes=tuple(_gymnasium_notes(one)))


@dataclass(frozen=True)
class _Drive:
    """Steps with random actions."""

    actions: list[Any]
    outcomes: list[tuple[Any, Any, bool, bool]]  # observation, reward, terminated, truncated
    infos: list[dict[str, Any]]
    microseconds: float  # per step


def _drive(env: Any, seed: int, actions: list[Any] | None = None) -> _Drive:
    if actions is None:
        env.action_space.seed(seed)
        actions = [env.action_space.sample() for _ in range(STEPS)]
    outcomes: list[tuple[Any, Any, bool, bool]] = []
    infos, seconds = [], []
    observation, _ = env.reset(seed=seed)
    outcomes.append((observation, 0.0, False, False))
    for action in actions:
        started = time.perf_counter()
        observation, reward, terminated, truncated, info = env.step(action)
        seconds.append(time.perf_counter() - started)
        outcomes.append((_frozen(observation), float(reward), bool(terminated), bool(truncated)))
        infos.append(info)
        if terminated or truncated:
            env.reset()
    return _Drive(actions, outcomes, infos, 1e6 * float(np.median(seconds)))


def _frozen(observation: Any) -> Any:
    """Copy the observation; some environments write the next one into the same array."""
    return observation.copy() if isinstance(observation, np.ndarray | dict) else observation


def _describe(space: Any) -> str:
    """Return a space in words, without the limits of every entry."""
    return f"Box{space.shape} {space.dtype}" if isinstance(space, Box) and space.shape != (1,) else str(space)


def _check_spaces(env: Any, problems: list[str]) -> bool:
    observation, action = env.observation_space, env.action_space
    if not isinstance(action, Box | Discrete | MultiDiscrete | MultiBinary):
        problems.append(f"actions must be a Box, Discrete, MultiDiscrete or MultiBinary space, actually: {action}")
        return False
    if isinstance(observation, Box) and observation.shape and int(np.prod(observation.shape)) > 5000:
        problems.append(
            f"observations have {int(np.prod(observation.shape))} numbers; pass features of your own, or describe the "
            "state by fewer numbers in a wrapper"
        )
    if not isinstance(observation, Box | Discrete | MultiDiscrete | MultiBinary):
        problems.append(
            f"observations are a {type(observation).__name__}: controllers receive them as they are, but contexts need "
            "arrays; use gymnasium.wrappers.FlattenObservation, or features.Custom"
        )
    return True


def _check_cost(drive: _Drive, chosen: str | CostFunction | None, problems: list[str]) -> dict[str, Any]:
    keys = tuple(dict.fromkeys(str(key) for info in drive.infos for key in info))
    likely = tuple(key for key in keys if key != "cost" and any(word in key.lower() for word in LIKELY_COSTS))
    always = all("cost" in info for info in drive.infos)
    found: dict[str, Any] = {"info_keys": keys, "cost_candidates": likely, "cost_found": always}
    if always:
        found["cost_key"] = "cost" if chosen is None else str(getattr(chosen, "__name__", chosen))
        costs = np.array([float(info["cost"]) for info in drive.infos])
        if (costs < 0).any():
            problems.append(f"the cost was below 0 (least: {costs.min():.3g}); it is minimised: is it a reward?")
        elif not costs.any():
            problems.append(f"the cost was 0 in all {len(drive.infos)} steps of random actions; is it the right one?")
        return found
    hint = f"for example --cost {likely[0]}" if likely else "--cost KEY of an entry of info"
    listed = f"info has {', '.join(keys)}" if keys else "info is empty"
    problems.append(
        ("the cost is missing in some steps" if "cost" in keys else "there is no cost")
        + f" ({listed}): choose it with {hint}, or --cost FILE.py:FUNCTION of (observation, action, info)"
    )
    return found


def _check_determinism(env: Any, drive: _Drive, seed: int, problems: list[str]) -> bool:
    again = _drive(env, seed, drive.actions)
    for number, (a, b) in enumerate(zip(drive.outcomes, again.outcomes, strict=True)):
        if not all(data_equivalence(x, y, exact=True) for x, y in zip(a, b, strict=True)):
            where = "the first observation differs" if number == 0 else f"step {number} differs"
            problems.append(
                f"the same seed and actions do not repeat an episode: {where}. Draw randomness from self.np_random only"
            )
            return False
    return True


def _check_copies(env: Any, seed: int, problems: list[str]) -> dict[str, Any]:
    check = find_copier(env, steps=STEPS, seed=seed)
    if check.copier is None:
        problems.append(
            f"{check.problem}: simulated look-ahead needs a second environment with set_state=, or a model; learned "
            "look-ahead needs neither"
        )
        return {"copy_exact": False, "copy_parts_at": check.step}
    seconds = []
    for _ in range(10):
        started = time.perf_counter()
        check.copier.copy(env)
        seconds.append(time.perf_counter() - started)
    return {"copy_exact": True, "copy_microseconds": round(1e6 * float(np.median(seconds)), 1)}


def _check_vector(make: Callable[[], Any], env: Any, seed: int, problems: list[str]) -> bool:
    """Return whether two instances side by side behave like a single one."""
    try:
        pair = [make(), make()]
        if pair[0].unwrapped is pair[1].unwrapped:
            problems.append("only one environment was passed: pass a function that makes it, to run several at once")
            return False
        worlds = LockStepEnvs(pair)
        worlds.reset(seed=seed)
        single, _ = env.reset(seed=seed + 1)
        env.action_space.seed(seed)
        for _ in range(10):
            action = env.action_space.sample()
            single, _, terminated, truncated, _ = env.step(action)
            rows = worlds.step(np.stack([np.asarray(action)] * 2))[0]
            if not data_equivalence(np.asarray(rows[1]), np.asarray(single), exact=True):
                problems.append("two of these environments in one process influence each other")
                return False
            if terminated or truncated:
                break
    except Exception as error:
        problems.append(f"several of them do not run side by side: {describe_error(error)}")
        return False
    return True


def _check_render(env: Any, spec: EnvironmentSpec | None, problems: list[str]) -> dict[str, Any]:
    """Draw one picture."""
    mode = "rgb_array"
    if spec is not None and spec.is_world:
        mode = "topdown"  # without OpenGL
    try:
        shown = env if env.render_mode == mode or spec is None else spec.make(render_mode=mode)
        if shown.render_mode != mode:
            problems.append('no pictures: make it with render_mode="rgb_array"')
            return {"render": False}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown.reset(seed=0)
            picture: Any = shown.render()
    except Exception as error:  # missing packages and OpenGL raise many kinds of errors
        problems.append(f"no pictures: {describe_error(error)}")
        return {"render": False}
    if not isinstance(picture, np.ndarray) or picture.ndim != 3 or picture.shape[2] != 3:
        problems.append(f"no pictures: render() must return an array (height, width, 3), actually: {type(picture)}")
        return {"render": False}
    return {"render": True, "render_size": (int(picture.shape[0]), int(picture.shape[1]))}


def _gymnasium_notes(env: Any) -> list[str]:
    """Return the messages of Gymnasium's own checker."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check_env(env.unwrapped, skip_render_check=True)
        except Exception as error:
            return [f"Gymnasium's checker: {describe_error(error)}"]
    words = [str(one.message).replace("\x1b[33mWARN: ", "").replace("\x1b[0m", "").strip() for one in caught]
    return [f"Gymnasium's checker: {word}" for word in dict.fromkeys(words) if "unwrapped" not in word]
