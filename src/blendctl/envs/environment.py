"""Any environment by name: a world of blendctl, a Gymnasium id, or a function in Python that makes one."""

from __future__ import annotations

import ast
import difflib
import importlib
import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from types import FunctionType
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, VectorEnv

from blendctl.envs.catalog import NAMES, find_task, open_task, task_names, world_name
from blendctl.envs.tasks import Task
from blendctl.errors import InputError, did_you_mean
from blendctl.user_code import is_python, load_object
from blendctl.user_errors import describe_error

CostFunction = Callable[[Any, Any, dict[str, Any]], float]  # (observation, action, info) -> cost


@dataclass(frozen=True)
class EnvironmentSpec:
    """Specification of an environment, for every process: its name and the user's settings.

    name: a world (PointGoal1), a Gymnasium id (HalfCheetah-v5, module:id), FILE.py:FUNCTION or MODULE:FUNCTION. A name
    in Python runs the user's code: use only what the user has typed.
    arguments: arguments of the environment or the function, JSON data. cost: a key of `info`, or FILE.py:FUNCTION of
    (observation, action, info); None: `info["cost"]`. episode_steps: limit of an episode; None: the environment's.

    >>> env = EnvironmentSpec("Pendulum-v1", episode_steps=20).make()
    >>> env.spec.max_episode_steps
    20
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cost: str | None = None
    episode_steps: int | None = None

    def __post_init__(self) -> None:
        if self.episode_steps is not None and self.episode_steps < 1:
            raise InputError(f"episode_steps must be a whole number >= 1, actually: {self.episode_steps}")
        if is_python(self.name) and not _in_gymnasium(self.name):
            made = load_object(self.name, of=(Task, FunctionType, type))
            if isinstance(made, Task):
                open_task(self.name)
            elif not callable(made):
                raise InputError(
                    f'"{self.name}" is not a blendctl.envs.Task, nor a function that returns an environment, actually: '
                    f"{made!r}"
                )
        elif self.is_world:
            object.__setattr__(self, "name", world_name(self.name))
        elif not _in_gymnasium(self.name):
            raise InputError(f'there is no environment "{self.name}"; {_nearest(self.name)}')
        if self.is_world and self.arguments:
            raise InputError(f"the world {self.name} takes no arguments, actually: {', '.join(self.arguments)}")
        if self.cost is not None and is_python(self.cost) and not callable(load_object(self.cost)):
            raise InputError(f'"{self.cost}" must be a function of (observation, action, info)')

    @property
    def is_world(self) -> bool:
        """Whether it is a world of blendctl, which can run many times in lock-step on several threads."""
        return world_name(self.name) in task_names()

    @property
    def is_plain_world(self) -> bool:
        """Whether it is a world of blendctl with its own cost."""
        return self.is_world and self.cost is None

    @property
    def world(self) -> str | None:
        """The name of the world, None for another environment."""
        return self.name if self.is_world else None

    def make(self, *, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """Make the environment; its cost is in `info["cost"]`."""
        env = self._make(render_mode)
        if render_mode is not None and hasattr(env.unwrapped, "mujoco_renderer"):
            _choose_opengl()
            if not {"camera_id", "camera_name", "default_camera_config"} & set(self.arguments):
                _follow(env.unwrapped.mujoco_renderer)
        return env if self.cost is None else ChosenCost(env, self.cost)

    def _make(self, render_mode: str | None) -> gymnasium.Env[Any, Any]:
        if self.is_world:
            from blendctl.envs.single import SingleWorld

            return SingleWorld(find_task(self.name), max_episode_steps=self.episode_steps, render_mode=render_mode)
        chosen = dict(self.arguments) | ({} if render_mode is None else {"render_mode": render_mode})
        if _in_gymnasium(self.name):
            try:
                return gymnasium.make(
                    self.name, max_episode_steps=self.episode_steps, disable_env_checker=True, **chosen
                )
            except (gymnasium.error.Error, TypeError, ValueError, ImportError) as error:
                raise InputError(f'"{self.name}" cannot be made: {describe_error(error)}') from error
        function = load_object(self.name)
        if render_mode is not None and not _accepts(function, "render_mode"):
            raise InputError(f'"{self.name}" does not take render_mode="{render_mode}"; add this argument to it')
        try:
            env = function(**chosen)
        except TypeError as error:
            raise InputError(f'"{self.name}" cannot be called with {chosen}: {error}') from error
        return expect_environment(env, self.name, steps=self.episode_steps)

    def make_vector(
        self, count: int, *, autoreset_mode: AutoresetMode = AutoresetMode.DISABLED, threads: int | None = 1
    ) -> VectorEnv[Any, Any, Any]:
        """Make `count` of them in lock-step; with snapshot, restore and peek if copies are exact."""
        if self.is_plain_world:
            from blendctl.envs.vector import VectorWorld

            return VectorWorld(
                find_task(self.name),
                count,
                threads=threads,
                autoreset_mode=autoreset_mode,
                max_episode_steps=self.episode_steps,
            )
        from blendctl.envs.lockstep import lock_step

        return lock_step([self.make() for _ in range(count)], autoreset_mode=autoreset_mode)

    def episode_limit(self) -> int | None:
        """Return the limit of its episodes in control steps, None if it is not known."""
        if self.episode_steps is not None:
            return self.episode_steps
        if self.is_world:
            return find_task(self.name).max_episode_steps
        from blendctl.envs.lockstep import episode_limit

        with closing(self.make()) as env:
            return episode_limit(env)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


def expect_cost(env: gymnasium.Env[Any, Any]) -> None:
    """Raise InputError if an environment does not report a cost in its first steps."""
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(3):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
        if "cost" not in info:
            known = [str(name) for name in info]
            hint = did_you_mean("cost", known) if known else "it has no entries"
            raise InputError(
                f'the environment has no info["cost"] ({hint}); choose the cost: --cost KEY or --cost FILE.py:FUNCTION '
                "of (observation, action, info), in Python cost="
            )
        if terminated or truncated:
            return


class ChosenCost(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Put the cost that the user chose into `info["cost"]`: an entry of `info`, or a function of the step."""

    def __init__(self, env: gymnasium.Env[Any, Any], cost: str | CostFunction) -> None:
        super().__init__(env)
        self.cost = cost
        self._function: CostFunction | None = None
        if not isinstance(cost, str):
            self._function = cost
        elif is_python(cost):
            self._function = load_object(cost)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment, and add the cost."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._function is not None:
            value: Any = self._function(observation, action, info)
        elif self.cost in info:
            value = info[self.cost]
        else:
            known = [str(name) for name in info]
            raise InputError(
                f'info has no entry "{self.cost}" to be the cost; '
                + (did_you_mean(str(self.cost), known) if known else "it has no entries; pass a function as the cost")
            )
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(f"the cost of a step must be a number, actually: {value!r} of {self.cost}") from None
        return observation, reward, terminated, truncated, {**info, "cost": number}


def as_environment(
    env: Any, *, cost: str | CostFunction | None = None, episode_steps: int | None = None
) -> tuple[Callable[[], gymnasium.Env[Any, Any]], EnvironmentSpec | None]:
    """Return a function that makes an environment, and its specification, None if it has no name.

    env: a name as of `EnvironmentSpec`, one of these, a function without arguments, or an environment. An environment
    is returned as it is at every call.
    """
    if isinstance(env, str):
        env = EnvironmentSpec(env, cost=cost if isinstance(cost, str) else None, episode_steps=episode_steps)
        if cost is None or isinstance(cost, str):
            return env.make, env
    if isinstance(env, EnvironmentSpec):
        if cost is None and episode_steps is None:
            return env.make, env
        make: Callable[[], Any] = env.make
    elif isinstance(env, gymnasium.Env):
        make = lambda: env  # noqa: E731  # a function as the others
    elif callable(env):
        make = env
    else:
        raise InputError(
            "env must be the name of an environment, an environment, or a function that makes one, actually: "
            f"{type(env).__name__}"
        )

    def made() -> gymnasium.Env[Any, Any]:
        one = expect_environment(make(), getattr(env, "__name__", "the function"), steps=episode_steps)
        return one if cost is None else ChosenCost(one, cost)

    return made, None


def expect_environment(env: Any, source: str, *, steps: int | None) -> gymnasium.Env[Any, Any]:
    """Return an environment with a limit of its episodes; raise InputError if it is something else."""
    if not isinstance(env, gymnasium.Env):
        raise InputError(f'"{source}" must return a Gymnasium environment, actually: {type(env).__name__}')
    return env if steps is None else gymnasium.wrappers.TimeLimit(env, steps)


def parse_arguments(assignments: Sequence[str]) -> dict[str, Any]:
    """Parse arguments such as ["frame_skip=5", "terrain=hills", "limits=[0, 1]", "healthy=false"].

    >>> parse_arguments(["frame_skip=5", "terrain=hills", "healthy=false", "gravity=None"])
    {'frame_skip': 5, 'terrain': 'hills', 'healthy': False, 'gravity': None}
    """
    arguments = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InputError(f"--env-arg takes NAME=VALUE, such as frame_skip=5, actually: {text!r}")
        arguments[name.strip()] = _value(value)
    return arguments


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
            json.dumps(value)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            continue
        return value
    return text


def _in_gymnasium(name: str) -> bool:
    """Return whether Gymnasium has an id; an id with a module imports the module, which registers its ids."""
    if name in gymnasium.registry:
        return True
    if name in task_names():
        return False
    module, colon, known = name.rpartition(":")
    if colon and not is_python(name):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise InputError(f'"{module}" cannot be imported: {error}') from error
        return known in gymnasium.registry
    if colon or ("-v" not in name and "/" not in name):
        return False
    try:
        gymnasium.spec(name)
    except (gymnasium.error.Error, ImportError, ValueError):
        return False
    return True


def _nearest(name: str) -> str:
    known = [*NAMES, *gymnasium.registry]
    near = difflib.get_close_matches(world_name(name), known, n=1, cutoff=0.5)
    words = f'did you mean "{near[0]}"? ' if near else ""
    return f"{words}allowed: a world ({', '.join(NAMES[:3])}, ...), a Gymnasium id, MODULE:ID or FILE.py:FUNCTION"


def _choose_opengl() -> None:
    """Let Gymnasium's MuJoCo environments draw without a screen, if possible."""
    if "MUJOCO_GL" not in os.environ:
        from blendctl.envs.gl import explain_missing, find_backend

        backend = find_backend()
        if backend is None:
            raise InputError(explain_missing())
        os.environ["MUJOCO_GL"] = backend


def _follow(renderer: Any) -> None:
    """Use the model's camera "track", if it has one: Gymnasium 1.4 uses a fixed one, which loses the robot."""
    import mujoco

    camera = mujoco.mj_name2id(renderer.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")
    if renderer.camera_id == -1 and camera != -1:
        renderer.camera_id = camera


def _accepts(function: Any, name: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(one.name == name or one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
