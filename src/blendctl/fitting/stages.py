"""The stages of a fit: measure the controllers, make contexts, choose on validation episodes, judge on unseen ones."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from blendctl.arrays import FloatArray
from blendctl.blender import Blender, Guard
from blendctl.controllers import LookAheadNetwork
from blendctl.errors import InputError, MissingExtraError
from blendctl.experiments.scales import measure_scales
from blendctl.experiments.units import Result, Unit
from blendctl.features.flattening import as_action
from blendctl.fitting.contexts import DWELLS, PREFERENCES, Candidate, ContextTask, simulated_candidates
from blendctl.fitting.fit_units import BLEND_DRIVE, DRIVE, LEARN, Place, read_learned
from blendctl.fitting.fit_work import Work
from blendctl.fitting.judgement import BLEND, corner_point, judge, mixing_line
from blendctl.fitting.outcomes import Outcomes
from blendctl.fitting.plan import MEASURING, MINUTES, TEST, VALIDATION, FitPlan, first_seed, make_plan
from blendctl.switches.methods import METHODS
from blendctl.switches.threshold import Threshold, best_threshold, list_thresholds

MEASURED_EPISODES = 10  # per controller, for the scales
WORLDS = 6  # in lock-step; one if a controller has memory
BLOCK = 6  # episodes of a unit
SLOWEST_COPY = 20.0  # control steps that a copy may take, else data are not branched
LEARNED_MARGIN = 0.03  # utility by which simulation must be better, because driving then needs a copy of the world
SIMULATION_SHARE = 0.3  # of all control steps of a fit
RULES = ("maximal-loss",)  # tried besides the context's, with more than two controllers; with two they agree
Drive = tuple[Unit, ...]  # the episodes of a driver, one block after another
OnProgress = Callable[[str, float], None]  # description of the work, finished share of the fit


@dataclasses.dataclass
class FitRun:
    """The stages of a fit, and their results."""

    place: Place
    names: list[str]
    parameters: Mapping[str, Any]  # of all units: how the environment and the controllers are made
    work: Work
    seed: int
    on_progress: OnProgress

    def __post_init__(self) -> None:
        self.started = time.perf_counter()
        self.at_once = 1 if self.place.stateful else WORLDS
        self.objectives = ["reward", "-cost"] if self._has_cost() else ["reward"]

    def fit(
        self, *, steps: int | None, minutes: float | None, hold: int | None, episodes: int | None
    ) -> tuple[dict[str, Any], Candidate]:
        """Run all stages; return the card and the chosen candidate."""
        if steps is not None and steps < 1:
            raise InputError(f"steps must be a whole number >= 1, actually: {steps}")
        alone, observations, step_seconds = self._measure(MEASURED_EPISODES if steps is None else 4)
        length = float(np.mean([one.lengths.mean() for one in alone]))
        plan = make_plan(
            length=length, step_seconds=step_seconds, worlds=self.at_once, steps=steps, minutes=minutes,
            hold=hold, episodes=episodes, workers=self.work.workers,
        )  # fmt: skip
        copy_seconds = None if self.place.stateful else self.place.source.copy_seconds()
        branching = copy_seconds is not None and copy_seconds <= SLOWEST_COPY * step_seconds
        plan = self.work.keep_plan(dataclasses.replace(plan, branching=branching))
        self.scales = measure_scales([one.points for one in alone])
        means = np.stack([one.points.mean(axis=0) for one in alone])
        best, cheap = int(means[:, 0].argmax()), int(means[:, 1].argmin())
        self.fallback = self.names[cheap if len(self.objectives) == 2 else best]
        if best == cheap:  # one is best in both, or there is no cost: the other end of the line is the worst controller
            cheap = int(means[:, 0].argmin())
        performant, safe = self.names[best], self.names[cheap]
        between = [arm for arm in range(len(self.names)) if arm not in (best, cheap)]
        self.order = [best, *between, cheap] if best != cheap else list(range(len(self.names)))
        self.task = {"weight": self.scales.weight, "length": length, "seed": self.seed}
        budget = 4.0 * steps if steps is not None else 60.0 * (minutes or MINUTES) * self.work.workers / step_seconds
        candidates = self._learn(plan, length, budget, exact=copy_seconds is not None)
        tried = self._validate(candidates, plan)
        candidate, chosen, dial = self._choose(tried, plan)
        methods, settings = self._test(candidate, plan, observations)
        self.on_progress("writing", 1.0)
        judged = judge(methods, self.names, performant=performant, safe=safe, scales=self.scales)
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
            "scales": {"return": self.scales.returns, "cost": self.scales.costs},
            "context": candidate.about(),
            "methods": {name: row | settings.get(name, {}) for name, row in judged.rows.items()},
            "mixing_line": line,
            "corner": corner_point(line),
            "validation": [one.about() | {"utility": self._utility(came)} for one, came in chosen],
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
            "sessions": self.work.sessions,
        }
        return card, candidate

    def blender(self, candidate: Candidate) -> Blender:
        """Make the blender of a candidate."""
        return candidate.blender(self._context_task(), self.network(candidate), self._about())

    def network(self, candidate: Candidate) -> LookAheadNetwork | None:
        """Return the networks of a candidate."""
        unit = self.learned.get(candidate.hold)
        return None if unit is None else read_learned(self.work.run([unit], lambda done, total: None)[0])

    def _context_task(self) -> ContextTask:
        return self.place.task(self.task)

    def _about(self) -> dict[str, Any]:
        return {"names": self.names, "objectives": self.objectives, "fallback": self.fallback}

    def _utility(self, outcomes: Outcomes) -> float:
        return float(self.scales.utility(outcomes.points).mean())

    def _has_cost(self) -> bool:
        """Return whether a step has a cost; raise if a named cost is missing."""
        env = self.place.env
        env.reset(seed=first_seed(MEASURING, self.seed))
        env.action_space.seed(self.seed)
        return "cost" in env.step(as_action(env.action_space.sample(), env.action_space))[4]

    def _run(self, units: Sequence[Unit], text: str, start: float, end: float) -> list[Result]:
        self.on_progress(text, start)
        return self.work.run(
            units, lambda done, total: self.on_progress(text, start + (end - start) * done / max(total, 1))
        )

    def _drive(
        self,
        method: str,
        episodes: int,
        stage: int,
        *,
        setting: Mapping[str, Any] | None = None,
        learned: Mapping[str, Any] | None = None,
        order: Sequence[int] | None = None,
        watch: bool = False,
    ) -> Drive:
        """Return episodes with a method of `compare`."""
        about = {"method": method, "setting": dict(setting or {}), "learned": dict(learned or {}), "watch": watch}
        order = self.order if order is None else order
        return self._blocks(DRIVE, about | {"order": list(order), "at_once": self.at_once}, episodes, stage)

    def _drive_candidate(self, candidate: Candidate, episodes: int, stage: int) -> Drive:
        about = {"candidate": candidate.about()} | self._about() | self.task
        return self._blocks(BLEND_DRIVE, about, episodes, stage, after=self.learned.get(candidate.hold))

    def _blocks(
        self, kind: str, parameters: Mapping[str, Any], episodes: int, stage: int, *, after: Unit | None = None
    ) -> Drive:
        first = first_seed(stage, self.seed)
        common = dict(self.parameters) | dict(parameters)
        blocks = [
            {"first_seed": first + start, "count": min(BLOCK, episodes - start)} for start in range(0, episodes, BLOCK)
        ]
        return tuple(Unit(kind, common | block, after=after) for block in blocks)

    def _outcomes(self, drives: Sequence[Drive], text: str, start: float, end: float) -> list[Outcomes]:
        """Run the episodes of several drivers at the same time."""
        results = iter(self._run([unit for one in drives for unit in one], text, start, end))
        return [Outcomes.of([next(results).table for _ in one]) for one in drives]

    def _measure(self, episodes: int) -> tuple[list[Outcomes], FloatArray, float]:
        """Drive each controller alone; return outcomes, observations (n, size), and seconds per control step."""
        everyone = range(len(self.names))
        drives = [
            self._drive(f"controller-{arm + 1}", episodes, MEASURING, order=everyone, watch=True) for arm in everyone
        ]
        alone = self._outcomes(drives, "measuring the controllers", 0.0, 0.08)
        results = self._run([unit for one in drives for unit in one], "measuring the controllers", 0.08, 0.08)
        observations = np.concatenate([np.array(result.values["observations"]) for result in results])
        seconds = sum(result.timing["seconds"] for result in results)
        return alone, observations, seconds / max(sum(result.values["steps"] for result in results), 1)

    def _learn(self, plan: FitPlan, length: float, budget: float, *, exact: bool) -> list[Candidate]:
        """Make the contexts to choose from."""
        arms = len(self.names)
        self.learned: dict[int, Unit] = {}  # hold -> unit of its networks
        if find_spec("torch") is not None:
            for hold in plan.holds:
                about = {"hold": hold, "plan": dataclasses.asdict(plan)} | self.task
                self.learned[hold] = Unit(LEARN, dict(self.parameters) | about)
        elif not exact:
            raise MissingExtraError("torch", extra="train")
        self._run(list(self.learned.values()), "learning to look ahead", 0.1, 0.5)
        found = [Candidate("learned", hold) for hold in self.learned]
        if exact:
            runs = 3 * plan.validation + plan.test
            most = SIMULATION_SHARE * budget / runs
            found += simulated_candidates(plan.holds, length=length, arms=arms, most_steps=most)
        if not found:
            raise InputError("no context fits the budget; raise steps or minutes, or install torch (blendctl[train])")
        return found

    def _validate(self, candidates: Sequence[Candidate], plan: FitPlan) -> list[tuple[Candidate, Outcomes]]:
        """Drive candidates on validation episodes."""
        drives = [self._drive_candidate(one, plan.validation, VALIDATION) for one in candidates]
        return list(zip(candidates, self._outcomes(drives, "validating", 0.5, 0.6), strict=True))

    def _choose(
        self, tried: list[tuple[Candidate, Outcomes]], plan: FitPlan
    ) -> tuple[Candidate, list[tuple[Candidate, Outcomes]], list[dict[str, Any]]]:
        """Choose context and hold, then dwell and rule, then the preference, each by its value on validation episodes.

        Return the candidate, all that were tried, and the measured points of its dial.
        """

        def value(one: tuple[Candidate, Outcomes]) -> float:
            return self._utility(one[1]) + LEARNED_MARGIN * (one[0].kind == "learned")

        best, came = max(tried, key=value)
        rules = RULES if len(self.names) > 2 else ()
        others = [dataclasses.replace(best, dwell=dwell) for dwell in DWELLS[1:]]
        others += [dataclasses.replace(best, rule=rule) for rule in rules]
        refined = self._validate(others, plan)
        best, came = max([(best, came), *refined], key=value)  # the first of equals, which is the simplest
        preferences = PREFERENCES if len(self.objectives) == 2 else PREFERENCES[:1]
        settings = [dataclasses.replace(best, prefer=prefer) for prefer in preferences[1:]]
        turned = [(best, came), *self._validate(settings, plan)]
        chosen, _ = max(turned, key=value)
        dial = [self._dial_point(one, outcomes.points) for one, outcomes in turned]
        return chosen, [*tried, *refined, *turned[1:]], sorted(dial, key=lambda point: -point["weight"])

    def _dial_point(self, candidate: Candidate, points: FloatArray) -> dict[str, Any]:
        feature: Any = self.blender(candidate).feature
        return {
            "weight": float(feature.weight[0]),
            "return_mean": float(points[:, 0].mean()),
            "cost_mean": float(points[:, 1].mean()),
            "cost_std": float(points[:, 1].std(ddof=min(1, len(points) - 1))),
            "over_budget": 0.0,
            "episodes": len(points),
            "seed": first_seed(VALIDATION, self.seed),
        }

    def _test(
        self, candidate: Candidate, plan: FitPlan, observations: FloatArray
    ) -> tuple[dict[str, Outcomes], dict[str, dict[str, Any]]]:
        """Run all methods on the test episodes; return their outcomes, and the settings of methods with settings."""
        settings: dict[str, dict[str, Any]] = {}
        ordered = [self.names[arm] for arm in self.order]
        drives = {BLEND: self._drive_candidate(candidate, plan.test, TEST)} | {
            name: self._drive(f"controller-{self.order.index(arm) + 1}", plan.test, TEST)
            for arm, name in enumerate(self.names)
        }
        for name, method in (("coin per step", "random"), ("coin per episode", "random-episode")):
            drives[name] = self._drive(method, plan.test, TEST, setting={"share": 0.5})
        thresholds = list_thresholds(observations, len(ordered), most=plan.thresholds, seed=self.seed)
        if thresholds:
            best = best_threshold(thresholds, self._sweep, episodes=plan.validation)
            drives["threshold"] = self._drive("threshold", plan.test, TEST, learned=best.to_dict())
            settings["threshold"] = {"setting": best.words(ordered), "tried": len(thresholds)}
        if isinstance(self.place.env.action_space, Box):
            shares = METHODS["shared"].parameters["share"].values
            sharing = [self._drive("shared", plan.validation, VALIDATION, setting={"share": share}) for share in shares]
            utilities = [self._utility(one) for one in self._outcomes(sharing, "sharing control", 0.82, 0.85)]
            share = shares[int(np.argmax(utilities))]
            drives["shared"] = self._drive("shared", plan.test, TEST, setting={"share": share})
            settings["shared"] = {"setting": f"{share:.0%} of the action of {ordered[0]}, the rest of {ordered[-1]}"}
        outcomes = self._outcomes(list(drives.values()), "judging", 0.85, 1.0)
        return dict(zip(drives, outcomes, strict=True)), settings

    def _sweep(self, thresholds: Sequence[Threshold], episodes: int) -> list[float]:
        """Return the utilities of thresholds on validation episodes."""
        drives = [self._drive("threshold", episodes, VALIDATION, learned=one.to_dict()) for one in thresholds]
        return [self._utility(one) for one in self._outcomes(drives, "sweeping thresholds", 0.7, 0.82)]
