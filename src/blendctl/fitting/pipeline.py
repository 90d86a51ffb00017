"""Fit a blend: from an environment and controllers to the files of a blend and a verdict."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium

from blendctl.controllers import Controller, open_controller
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.card import versions
from blendctl.controllers.lookahead_network import controller_label
from blendctl.controllers.resolve import display_name
from blendctl.directory_lock import DirectoryLock
from blendctl.envs.copies import find_copier
from blendctl.envs.environment import CostFunction, EnvironmentSpec, as_environment
from blendctl.errors import InputError
from blendctl.experiments.units import environment_digests, file_digests
from blendctl.fitting.contexts import EnvSource, MakeEnv
from blendctl.fitting.fit_files import FitResult, check_directory, write_fit
from blendctl.fitting.fit_units import Place, drop_place, pass_place
from blendctl.fitting.fit_work import UNFINISHED, StoredWork, Work
from blendctl.fitting.judgement import METHODS
from blendctl.fitting.stages import FitRun, OnProgress

Driver = str | Controller | Callable[..., Any]


def fit(
    env: str | EnvironmentSpec | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]],
    controllers: Sequence[Driver],
    *,
    out: str | Path,
    seed: int = 0,
    steps: int | None = None,
    minutes: float | None = None,
    cost: str | CostFunction | None = None,
    env_args: Mapping[str, Any] | None = None,
    episode_steps: int | None = None,
    names: Sequence[str] | None = None,
    hold: int | None = None,
    episodes: int | None = None,
    replace: bool = False,
    engine: str = "processes",
    workers: int | None = 1,
    address: str | None = None,
    command: str = "",
    on_progress: OnProgress = lambda text, share: None,
) -> FitResult:
    """Fit a blend of controllers in an environment, and judge it on episodes that it has not seen.

    Write blend.safetensors, card.json and report.html to `out`; `Blender.load(out)` drives the blend. The same call
    continues a fit that was interrupted, with the same result, if the environment and the controllers are named.

    Args:
        env: A built-in world, an id of Gymnasium, "module:factory" or "file.py:factory", a factory, or an environment.
        controllers: Two or more: what `open_controller` opens, controllers, or functions of the observation.
        out: Directory of the blend.
        seed: Random seed.
        steps: Control steps of data; other stages get about twice as many.
        minutes: Approximate total time; 10 without `steps`.
        cost: A key of `info`, a function (observation, action, info), or "file.py:function". By default `info["cost"]`
            if there is one; without a cost the return alone is compared.
        env_args: Arguments of the factory, or of `gymnasium.make`.
        episode_steps: Limit of an episode.
        names: Names of the controllers.
        hold: Control steps per decision; by default chosen on validation episodes.
        episodes: Test episodes; 60 by default, fewer with few steps.
        replace: Replace an earlier fit in `out`.
        engine: "processes", "ray" or "inline": where episodes and networks run, as in `blendctl compare`.
        workers: Processes; None uses all cores. More than one needs an environment and controllers that are named, and
            in a script `if __name__ == "__main__":`.
        address: Ray cluster address.
        command: Command line, for the card.
        on_progress: Called with a description of the work and the finished share of the fit.
    """
    if len(controllers) < 2:
        raise InputError(f"a blend needs two controllers or more, actually: {len(controllers)}")
    if episodes is not None and episodes < 2:
        raise InputError(f"episodes must be a whole number >= 2, actually: {episodes}")
    directory = Path(out)
    make, spec = _make_and_spec(env, env_args or {}, cost, episode_steps)
    world = None if spec is None else spec.world
    opened = [open_controller(one, world=world) if isinstance(one, str) else as_controller(one) for one in controllers]
    chosen_names = _names(controllers, opened, names)
    place = Place(EnvSource(make, spec if spec is not None and spec.make == make else None), opened)
    specs = [one for one in controllers if isinstance(one, str)]
    named = place.source.spec is not None and len(specs) == len(controllers)
    if not named and (workers != 1 or engine != "processes"):
        raise InputError("worker processes need an environment and controllers by name, FILE.py:FUNCTION for example")
    budget = {"steps": steps, "minutes": minutes, "hold": hold, "episodes": episodes}
    with DirectoryLock(directory):
        check_directory(directory, replace=replace)
        parameters: dict[str, Any] = {}
        if place.source.spec is not None and named:
            parameters = {"environment": place.source.spec.to_dict(), "controllers": specs}
            digests = file_digests("", specs) + environment_digests(place.source.spec)
            work: Work = StoredWork(
                directory / UNFINISHED,
                identity=parameters | budget | {"names": chosen_names, "seed": seed, "digests": digests}
                | {"versions": versions("numpy", "gymnasium", "torch")},
                replace=replace, command=command, engine=engine, workers=workers, address=address,
            )  # fmt: skip
        else:
            parameters, work = pass_place(place), Work()
        with closing(work):
            run = FitRun(place, chosen_names, parameters, work, seed=seed, on_progress=on_progress)
            card, candidate = run.fit(**budget)  # type: ignore[arg-type]  # as the arguments of this function
            about = {
                "environment": getattr(env, "__name__", type(env).__name__) if spec is None else spec.name,
                "env_args": dict(env_args or {}) if spec is None else dict(spec.arguments),
                "cost": _cost_name(cost if spec is None or spec.cost is None else spec.cost),
                "episode_steps": episode_steps if spec is None else spec.episode_steps,
                "controllers": [_spec(one, name) for one, name in zip(controllers, chosen_names, strict=True)],
                "command": command,
            }
            network, blender = run.network(candidate), run.blender(candidate)
            result = write_fit(directory, about | card, blender, network, guard=run.guard)
            work.finish()
        drop_place(parameters)
        return result


def _make_and_spec(
    env: Any, arguments: Mapping[str, Any], cost: str | CostFunction | None, episode_steps: int | None
) -> tuple[MakeEnv, EnvironmentSpec | None]:
    """Return a function that makes an environment at every call, and its name, None if it has none."""
    if isinstance(env, str):
        named = cost if isinstance(cost, str) else None
        spec = EnvironmentSpec(env, arguments, cost=named, episode_steps=episode_steps)
        return (spec.make if cost is named else as_environment(spec, cost=cost)[0]), spec
    if isinstance(env, gymnasium.Env):
        found = find_copier(env)
        copier = found.copier
        if copier is None:
            raise InputError(f"{found.problem}; pass a function that makes the environment instead")
        return as_environment(lambda: copier.copy(env), cost=cost, episode_steps=episode_steps)
    if callable(env) and arguments:
        env = functools.partial(env, **arguments)
    make, _ = as_environment(env, cost=cost, episode_steps=episode_steps)
    return make, env if isinstance(env, EnvironmentSpec) else None


def _cost_name(cost: Any) -> str | None:
    return cost if cost is None or isinstance(cost, str) else getattr(cost, "__name__", "function")


def _names(controllers: Sequence[Driver], opened: Sequence[Controller], names: Sequence[str] | None) -> list[str]:
    """Return unique names of the controllers that differ from the names of methods."""
    if names is None:
        found = [
            display_name(one) if isinstance(one, str) else controller_label(controller)
            for one, controller in zip(controllers, opened, strict=True)
        ]
        return [f"{name}-{i + 1}" if found.count(name) > 1 or name in METHODS else name for i, name in enumerate(found)]
    if len(names) != len(opened) or len(set(names)) < len(names) or set(names) & set(METHODS):
        raise InputError(
            f"names must be {len(opened)} different words, none of {', '.join(METHODS)}; actually: {', '.join(names)}"
        )
    return list(names)


def _spec(controller: Driver, name: str) -> str:
    """Return the name by which a controller was passed; one passed as an object must be passed again."""
    return controller if isinstance(controller, str) else f"python:{name}"
