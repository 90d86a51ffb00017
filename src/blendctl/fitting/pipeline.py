"""Fit a blend: measure the controllers, make contexts, choose on validation episodes, judge on unseen ones, write."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from blendctl.blender import Guard
from blendctl.controllers import Controller, open_controller
from blendctl.controllers.adapters import as_controller
from blendctl.controllers.base import Stateful
from blendctl.controllers.lookahead_network import controller_label
from blendctl.controllers.resolve import display_name
from blendctl.directory_lock import DirectoryLock
from blendctl.envs.copies import find_copier
from blendctl.envs.environment import CostFunction, EnvironmentSpec, as_environment
from blendctl.errors import InputError, MissingExtraError
from blendctl.features import LookAhead
from blendctl.features.flattening import FloatArray, as_action, flat_controllers
from blendctl.fitting.baselines import SHARES, Coin, Share, best_threshold, list_thresholds
from blendctl.fitting.contexts import (
    PREFERENCES,
    Candidate,
    ContextTask,
    EnvSource,
    MakeEnv,
    learn_context,
    simulated_contexts,
)
from blendctl.fitting.fit_files import FitResult, check_directory, write_fit
from blendctl.fitting.judgement import BLEND, METHODS, Scales, corner_point, judge, measure_scales, mixing_line
from blendctl.fitting.outcomes import Outcomes, drive_blend, drive_switch
from blendctl.fitting.plan import MEASURING, MINUTES, TEST, VALIDATION, FitPlan, first_seed, make_plan
from blendctl.rollout import Switch
from blendctl.switches.single_controller import SingleController

MEASURED_EPISODES = 10  # of each controller, for the scales
WORLDS = 6  # that run in lock-step; one if a controller has memory
BRANCHED_STEPS = 8  # of all controllers; with fewer, copies would take longer than steps
LEARNED_MARGIN = 0.03  # utility by which simulation must be better, because it needs a copy of the world to drive
SIMULATION_SHARE = 0.3  # of all control steps of a fit
Driver = str | Controller | Callable[..., Any]
OnProgress = Callable[[str, float], None]  # what is done, share of the fit


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
    command: str = "",
    on_progress: OnProgress = lambda text, share: None,
) -> FitResult:
    """Fit a blend of controllers in an environment, and judge it on episodes that it has not seen.

    Write blend.safetensors, card.json and report.html to `out`; `Blender.load(out)` drives the blend.

    Args:
        env: A built-in world, an id of Gymnasium, "module:factory" or "file.py:factory", a factory, or an environment.
        controllers: Two or more: what `open_controller` opens, controllers, or functions of the observation.
        out: Directory of the blend.
        seed: Of all random numbers and episodes.
        steps: Control steps of data; other stages get about twice as many.
        minutes: Time in all, about; 10 without `steps`.
        cost: A key of `info`, a function (observation, action, info), or "file.py:function". By default `info["cost"]`
            if there is one; without a cost the return alone is compared.
        env_args: Arguments of the factory, or of `gymnasium.make`.
        episode_steps: Limit of an episode.
        names: Of the controllers.
        hold: Control steps per decision; by default chosen on validation episodes.
        episodes: Test episodes; 60 by default, fewer with few steps.
        replace: Replace an earlier fit in `out`.
        command: How it was called, for the card.
        on_progress: Called with what is done and the share of the fit.
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
    with DirectoryLock(directory):
        check_directory(directory, replace=replace)
        source = EnvSource(make, spec if spec is not None and spec.make == make else None)
        run = _Fit(source, opened, chosen_names, seed=seed, on_progress=on_progress)
        card, candidate = run.fit(steps=steps, minutes=minutes, hold=hold, episodes=episodes)
        name = getattr(env, "__name__", type(env).__name__)
        about = {
            "environment": name if spec is None else spec.name,
            "env_args": dict(env_args or {}) if spec is None else dict(spec.arguments),
            "cost": _cost_name(cost if spec is None or spec.cost is None else spec.cost),
            "episode_steps": episode_steps if spec is None else spec.episode_steps,
            "controllers": [_spec(one, name) for one, name in zip(controllers, chosen_names, strict=True)],
            "command": command,
        }
        blender = run.blender(candidate)
        return write_fit(directory, about | card, blender, candidate, guard=run.guard)


@dataclass
class _Fit:
    """The stages of a fit."""

    source: EnvSource
    controllers: list[Controller]
    names: list[str]
    seed: int
    on_progress: OnProgress

    def __post_init__(self) -> None:
        self.env = self.source.make()
        self.started = time.perf_counter()
        self.stateful = any(isinstance(controller, Stateful) for controller in self.controllers)
        self.flat = flat_controllers(self.controllers, self.env)
        self.observations: list[FloatArray] = []  # of the controllers alone
        self.objectives = ["reward", "-cost"] if self._has_cost() else ["reward"]
        self.steps_run = 0
        self.at_once = 1 if self.stateful else WORLDS
        self.worlds = functools.cache(self.source.open)  # by their number

    def fit(
        self, *, steps: int | None, minutes: float | None, hold: int | None, episodes: int | None
    ) -> tuple[dict[str, Any], Candidate]:
        """Run all stages; return the card and the chosen candidate."""
        if steps is not None and steps < 1:
            raise InputError(f"steps must be a whole number >= 1, actually: {steps}")
        alone, length, step_seconds = self._measure(steps)
        plan = make_plan(
            length=length, step_seconds=step_seconds, worlds=self.at_once,
            steps=steps, minutes=minutes, hold=hold, episodes=episodes,
        )  # fmt: skip
        scales = measure_scales(alone)
        means = np.stack([one.points.mean(axis=0) for one in alone])
        performant, safe = self.names[int(means[:, 0].argmax())], self.names[int(means[:, 1].argmin())]
        self.fallback = safe if len(self.objectives) == 2 else performant
        if performant == safe:  # one is best in both, or there is no cost: the other end of the line is the worst
            safe = self.names[int(means[:, 0].argmin())]
        self.scales = scales
        budget = 4.0 * steps if steps is not None else 60.0 * (minutes or MINUTES) / step_seconds
        task = ContextTask(self.source, self.controllers, scales.weight, plan, length, self.seed)
        tried = self._validate(self._candidates(task, budget=budget), plan)
        candidate, dial = self._choose(tried, plan)
        methods, settings = self._test(candidate, plan, scales)
        self.on_progress("writing", 1.0)
        judged = judge(methods, self.names, performant=performant, safe=safe, scales=scales)
        signs = np.array([1.0, -1.0])[: len(self.objectives)]
        self.guard = Guard({name: methods[name].points[:, : len(signs)] * signs for name in self.names})
        line = mixing_line(methods, performant=performant, safe=safe)
        card = {
            "verdict": judged.verdict,
            "words": judged.words,
            "corner_score": judged.score.value,
            "corner_score_ci95": judged.score.interval,
            "corner_score_reason": judged.score.reason,
            "front": judged.front,
            "names": self.names,
            "performant": performant,
            "safe": safe,
            "objectives": self.objectives,
            "fallback": self.fallback,
            "scales": {"return": scales.returns, "cost": scales.costs},
            "context": candidate.about(),
            "methods": {name: row | settings.get(name, {}) for name, row in judged.rows.items()},
            "mixing_line": line,
            "corner": corner_point(line),
            "validation": [one.about() | {"utility": self._mean_utility(came)} for one, came in tried],
            "dial": dial,
            "episodes": plan.test,
            "seed": self.seed,
            "seeds": {
                "measuring": first_seed(MEASURING, self.seed),
                "validation": first_seed(VALIDATION, self.seed),
                "test": first_seed(TEST, self.seed),
            },
            "plan": dataclasses.asdict(plan),
            "episode_length": length,
            "seconds": round(time.perf_counter() - self.started, 1),
        }
        return card, candidate

    def blender(self, candidate: Candidate) -> Any:
        """Make the blender of a candidate."""
        return candidate.blender(
            self.controllers, self.names, objectives=self.objectives, fallback=self.fallback, seed=self.seed
        )

    def _mean_utility(self, outcomes: Outcomes) -> float:
        return float(self.scales.utility(outcomes.points).mean())

    def _has_cost(self) -> bool:
        """Return whether a step has a cost; raise if the one that was named is missing."""
        self.env.reset(seed=first_seed(MEASURING, self.seed))
        self.env.action_space.seed(self.seed)
        space = self.env.action_space
        return "cost" in self.env.step(as_action(space.sample(), space))[4]

    def _measure(self, steps: int | None) -> tuple[list[Outcomes], float, float]:
        """Drive each controller alone; return outcomes, mean length of an episode, and seconds per control step."""
        started, ran = time.perf_counter(), self.steps_run
        count = MEASURED_EPISODES if steps is None else 4
        alone = []
        for arm in range(len(self.controllers)):
            self.on_progress(f"measuring {self.names[arm]}", 0.08 * arm / len(self.controllers))
            alone.append(self._drive(SingleController(arm), count, MEASURING, watch=self.observations.append))
        length = float(np.mean([one.lengths.mean() for one in alone]))
        return alone, length, (time.perf_counter() - started) / max(self.steps_run - ran, 1)

    def _drive(
        self, switch: Switch, episodes: int, stage: int, watch: Callable[[FloatArray], None] | None = None
    ) -> Outcomes:
        return drive_switch(
            self.worlds, switch, self.flat, seed=first_seed(stage, self.seed),
            episodes=episodes, at_once=self.at_once, on_step=self._count, watch=watch,
        )  # fmt: skip

    def _drive_blend(self, candidate: Candidate, episodes: int, stage: int) -> Outcomes:
        seed = first_seed(stage, self.seed)
        return drive_blend(self.env, self.blender(candidate), seed=seed, episodes=episodes, on_step=self._count)

    def _count(self, steps: int) -> None:
        self.steps_run += steps

    def _candidates(self, task: ContextTask, *, budget: float) -> list[Candidate]:
        """Make the contexts to choose from."""
        exact = not self.stateful and self.source.copies_exactly()
        found: list[Candidate] = []
        for number, hold in enumerate(task.plan.holds):
            start = 0.1 + 0.4 * number / len(task.plan.holds)

            def report(share: float, start: float = start) -> None:
                self.on_progress("learning to look ahead", start + 0.4 * share / len(task.plan.holds))

            try:
                cheap = self.source.world is not None or hold * len(self.controllers) >= BRANCHED_STEPS
                found.append(learn_context(task, hold, branching=exact and cheap, on_progress=report))
            except MissingExtraError:
                if not exact:
                    raise
                break
        if exact:
            networks = [one.network for one in found if one.network is not None]
            runs = 3 * task.plan.validation + task.plan.test
            found += simulated_contexts(task, networks, most_steps=SIMULATION_SHARE * budget / runs)
        if not found:
            raise InputError("no context fits the budget; raise steps or minutes, or install torch (blendctl[train])")
        return found

    def _validate(self, candidates: list[Candidate], plan: FitPlan) -> list[tuple[Candidate, Outcomes]]:
        """Drive the candidates at the first preference on validation episodes."""
        tried = []
        for number, candidate in enumerate(candidates):
            self.on_progress("validating", 0.5 + 0.15 * number / len(candidates))
            at_first = candidate.preferring(PREFERENCES[0])
            tried.append((at_first, self._drive_blend(at_first, plan.validation, VALIDATION)))
        return tried

    def _choose(self, tried: list[tuple[Candidate, Outcomes]], plan: FitPlan) -> tuple[Candidate, list[dict[str, Any]]]:
        """Choose the best candidate, then its preference; return it and the measured points of its dial."""

        def value(one: tuple[Candidate, Outcomes]) -> float:
            return self._mean_utility(one[1]) + LEARNED_MARGIN * isinstance(one[0].feature, LookAhead)

        best, first = max(tried, key=value)
        preferences = PREFERENCES if len(self.objectives) == 2 else PREFERENCES[:1]
        dial, utilities = [], []
        for number, prefer in enumerate(preferences):
            self.on_progress("setting the dial", 0.65 + 0.1 * number / len(preferences))
            one = best.preferring(prefer)
            weight = float(self.blender(one).feature.weight[0])
            points = first.points if not number else self._drive_blend(one, plan.validation, VALIDATION).points
            utilities.append(float(self.scales.utility(points).mean()))
            dial.append(
                {"weight": weight, "return_mean": float(points[:, 0].mean()), "cost_mean": float(points[:, 1].mean()),
                 "over_budget": 0.0, "episodes": plan.validation, "seed": first_seed(VALIDATION, self.seed)}
            )  # fmt: skip
        return best.preferring(preferences[int(np.argmax(utilities))]), sorted(dial, key=lambda point: -point["weight"])

    def _test(
        self, candidate: Candidate, plan: FitPlan, scales: Scales
    ) -> tuple[dict[str, Outcomes], dict[str, dict[str, Any]]]:
        """Run all methods on the test episodes; return their outcomes, and the settings of those that have some."""
        arms, utility = len(self.names), scales.utility
        settings: dict[str, dict[str, Any]] = {}
        self.on_progress("sweeping thresholds", 0.75)
        observations = np.concatenate(self.observations)
        thresholds = list_thresholds(observations, arms, most=plan.thresholds, seed=self.seed)
        others: dict[str, Switch] = {
            "coin per step": Coin(arms, per_step=True, seed=self.seed),
            "coin per episode": Coin(arms, per_step=False, seed=self.seed),
        }
        if thresholds:
            best = best_threshold(
                thresholds, lambda switch, n: self._drive(switch, n, VALIDATION), utility, episodes=plan.validation
            )
            others["threshold"] = best
            settings["threshold"] = {"setting": best.words(self.names), "tried": len(thresholds)}
        if isinstance(self.env.action_space, Box):
            shares = {
                share: float(utility(self._drive(Share(share), plan.validation, VALIDATION).points).mean())
                for share in SHARES
            }
            share = max(shares, key=lambda one: shares[one])
            others["shared"] = Share(share)
            settings["shared"] = {"setting": f"{share:.0%} of the action of {self.names[0]}"}
        switches = {name: SingleController(arm) for arm, name in enumerate(self.names)} | others
        methods = {}
        for number, (name, switch) in enumerate(switches.items()):
            self.on_progress(f"judging {name}", 0.85 + 0.1 * number / len(switches))
            methods[name] = self._drive(switch, plan.test, TEST)
        self.on_progress("judging the blend", 0.95)
        return {BLEND: self._drive_blend(candidate, plan.test, TEST)} | methods, settings


def _make_and_spec(
    env: Any, arguments: Mapping[str, Any], cost: str | CostFunction | None, episode_steps: int | None
) -> tuple[MakeEnv, EnvironmentSpec | None]:
    """Return a function that makes the environment anew at every call, and how it is named, None if it is not."""
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
    """Return different names of the controllers, none of which is that of a method."""
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
    """Return how a controller was named; code that was passed as an object must be passed again."""
    return controller if isinstance(controller, str) else f"python:{name}"
