"""Blender: decide, act, observe; keep driving when a controller fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray
from blendctl.bandit import BlendingBandit
from blendctl.bandit.options import OptionNames
from blendctl.bandit.rules import Fixed
from blendctl.blender import arguments
from blendctl.blender.bench import BenchRules
from blendctl.blender.blend_files import BlendFiles
from blendctl.blender.blend_views import BlendViews
from blendctl.blender.chooser import Chooser
from blendctl.blender.counts import Counts
from blendctl.blender.drivers import Action, Drivers
from blendctl.blender.finite_check import all_finite
from blendctl.blender.guard import Guard, as_guard
from blendctl.blender.handover import Handover, HandoverFilter, as_handover, check_entries
from blendctl.blender.ledger import Ledger, Observed
from blendctl.blender.objectives import Objective, Objectives
from blendctl.blender.record import SAFE_ACTION, Record, RunInfo, StageDecision
from blendctl.blender.recorder import Recorder, as_recorder
from blendctl.blender.run_status import run_status
from blendctl.blender.run_warnings import FEATURE, RunWarnings
from blendctl.certificates import Certificate, CertificateMonitor, as_monitor
from blendctl.controllers import Controller
from blendctl.controllers.adapters import as_controller
from blendctl.errors import StateError
from blendctl.features import Feature, bind_feature, choose_feature, feature_name
from blendctl.recent_times import RecentTimes


class Blender(BlendFiles, BlendViews):
    """One driver made of several controllers: a bandit chooses which one drives, and learns from the feedback.

    Parameters
    ----------
    controllers: controllers, or plain functions from an observation to an action.
    names: names of the controllers; by default those they have.
    objectives: "reward", "-cost", "-cost_NAME", functions of the feedback, or (name, function); all maximised.
    features: the context psi, see `blendctl.features`. By default "lookahead" if there are look-ahead networks for
        these controllers in this order, in the zoo or beside their files, and the objectives are reward and -cost;
        else "predictions", the paper's scheme, if all have context networks; else a linear model learned while driving.
    prefer: the dial of a look-ahead blend, from 0 (safest) to 1 (most performant).
    cost_budget: cost that an episode may have, instead of `prefer`; the dial follows what is left of it.
    hold: control steps per decision; the feedback of a stage is the sum over its steps. By default the feature decides.
    dwell: minimum stages of a controller before another one may be chosen.
    context: "current" decides from psi at the current state; "previous" from the state before, as printed in the paper.
    frozen: decide without learning; needs a bandit that has learned, or a feature with a prior.
    bandit: a learner to continue with, or the file of a blend (`save`); by default a new one with `options` and `seed`.
    fallback: a name, or names in order: the controllers that take over when the one that drives fails.
    safe_action: action when no controller is fit; without it, `act` raises an error.
    handover: how the action changes after a switch: at once (None), with a limit per control step (`SlewLimit`,
        "slew:0.1"), or over some control steps (`CrossFade`, "fade:5"). The safe action is never delayed; a safer
        controller is.
    deadline: seconds per action, for all controllers or by name. A controller that might hang runs in a thread.
    bench: how long a controller that failed sits out.
    action_shape: shape of an action; by default as the controllers declare it, or that of their first actions.
    stochastic: draw actions from the controllers' distributions; otherwise use the means.
    record: a directory, or a `Recorder`, to which every stage is written.
    certificate: a certificate (`blendctl certify`), its file or its monitor; an event reports that it no longer holds.
    guard: a `Guard`: once the blend is shown to be worse than a controller in every objective, that controller drives.
    window: stages that wait for late feedback; older ones count as missing.
    options: of the bandit, see `blendctl.bandit.Options`; by default a feature longer than feature_bound is rescaled.

    Examples
    --------
    >>> blender = Blender([lambda o: [1.0], lambda o: [0.2]], ["fast", "safe"], fallback="safe", seed=0)
    >>> blender.act(np.zeros(3)).shape
    (1,)
    >>> blender.observe(reward=0.1, cost=0.0)
    'learned'
    >>> blender.last.stage, blender.bandit.stage
    (1, 1)
    """

    def __init__(
        self,
        controllers: Sequence[Controller | Callable[..., Any]],
        names: Sequence[str] | None = None,
        *,
        objectives: Sequence[Objective] = ("reward", "-cost"),
        features: Feature | str | Sequence[Feature | str] | None = None,
        prefer: float | None = None,
        cost_budget: float | None = None,
        hold: int | None = None,
        dwell: int = 1,
        context: Literal["current", "previous"] = "current",
        frozen: bool = False,
        bandit: BlendingBandit | str | Path | None = None,
        fallback: str | Sequence[str] | None = None,
        safe_action: ArrayLike | None = None,
        handover: Handover | Mapping[str, Any] | str | None = None,
        deadline: float | Mapping[str, float] | None = None,
        bench: BenchRules | None = None,
        action_shape: tuple[int, ...] | None = None,
        stochastic: bool = True,
        record: str | Path | Recorder | None = None,
        certificate: CertificateMonitor | Certificate | str | Path | None = None,
        guard: Guard | Mapping[str, Any] | bool | None = None,
        window: int = 1000,
        seed: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
        **options: Unpack[OptionNames],
    ) -> None:
        self.controllers = [as_controller(controller) for controller in arguments.as_controller_list(controllers)]
        self.names = arguments.check_names(self.controllers, names)
        self.objectives = Objectives(objectives)
        self.dwell = arguments.count("dwell", dwell)
        self.safe_action = arguments.check_safe_action(safe_action)
        goals = self.objectives.names
        chosen = choose_feature(features, self.controllers, objectives=goals, prefer=prefer, cost_budget=cost_budget)
        self.declared_feature = chosen
        feature = bind_feature(chosen, self.controllers, objectives=goals)
        arguments.check_context(context, feature)
        self.bandit = arguments.make_bandit(
            bandit, feature, self.objectives, names=self.names, seed=seed, options=dict(options)
        )
        first_pull, *seeds = np.random.SeedSequence(seed).spawn(1 + len(self.controllers))
        self.drivers = Drivers(
            self.controllers,
            self.names,
            rngs=[np.random.default_rng(s) if stochastic else None for s in seeds],
            deadline=deadline,
            bench=arguments.check_bench(bench),
            action_shape=arguments.check_shape(action_shape),
            safe_action=self.safe_action,
            clock=clock,
        )
        self.feature = feature
        self.context = context
        arguments.check_frozen(frozen, feature, rule=self.bandit.rule, learned=self.bandit.stage > 0)
        self._chooser = Chooser(
            feature,
            self.bandit,
            names=self.names,
            fallback=arguments.check_fallback(fallback, self.names),
            previous=context == "previous",
            rng=np.random.default_rng(first_pull),
        )
        scales = self.bandit.options.scales
        self._run_info = RunInfo(
            tuple(self.names),
            self.objectives,
            scales=np.ones(len(self.objectives)) if scales is None else np.asarray(scales, np.float64),
            features=feature.size,
            rule=self.bandit.rule.name,
            dwell=self.dwell,
            feature_name=feature_name(chosen),
            lookahead=feature.lookahead,
        )
        self._filter = HandoverFilter(as_handover(handover))
        check_entries(self.handover, self.drivers.shape)
        self.counts = Counts(driven=dict.fromkeys(range(len(self.names)), 0))
        self.act_times = RecentTimes()
        self.monitor = as_monitor(certificate)
        self.guard = as_guard(guard, self.names, goals)
        self._alarms: list[str] = []  # of the monitor, for the next decision
        self._ledger = Ledger(
            self.bandit,
            feature,
            hold=arguments.count("hold", feature.hold if hold is None else hold),
            frozen=frozen,
            window=arguments.count("window", window),
            recorder=as_recorder(record),
            counts=self.counts,
        )
        self.warnings = RunWarnings(
            self.names, goals, self.bandit, self.drivers.bench, self._ledger.bound_check,
            judged=not (feature.bootstraps or frozen), knows_costs=frozen or feature.lookahead is not None,
            looks_ahead=feature.bootstraps,
        )  # fmt: skip
        self.step = 0  # control steps so far
        self.episode = 0
        self._driven = 0  # consecutive stages of the present controller
        self._closed = False
        self._lock = threading.RLock()
        self._earlier_decisions = self.bandit.decisions, self.bandit.bound_sum  # before this blender
        self._bound_extra = 0.0  # added to the bandit's sum of bounds when the arm that drove was not the rule's

    def act(self, observation: Any) -> Action:
        """Return the action for an observation: that of the controller that drives now."""
        with self._lock:
            if self._closed:
                raise StateError("this blender is closed; make another")
            self.step += 1
            begun = time.perf_counter()
            if not self.drivers.timed:
                action = self._act(observation)
            else:
                with self.drivers.one_deadline():
                    action = self._act(observation)
            self.act_times.add(time.perf_counter() - begun)
            return action

    def _act(self, observation: Any) -> Action:
        ledger = self._ledger
        last = ledger.present
        driver = SAFE_ACTION if last is None else last.choice.arm
        finite = all_finite(observation)
        if finite and ledger.holding:
            action = self.drivers.ask_alone(driver, observation, self.step)
            if action is not None:
                ledger.extend()
                return self._filter.apply(action, driver)
        ledger.cut(observation if finite else None)
        if ledger.bootstraps:
            self.feature.begin_stage(*ledger.episode_so_far)
        choice = self._decide(observation, finite, driver)
        ledger.begin(choice, observation)
        return choice.action.copy()

    def _decide(self, observation: Any, finite: bool, driver: int) -> StageDecision:
        """Decide which controller drives the next stage; `driver` drove the last one."""
        drivers, chooser = self.drivers, self._chooser
        psi: FloatArray | None = None
        asked: tuple[int, ...] = ()
        if finite:
            proposals = drivers.propose(observation, self.step)
            events = drivers.take_events() if drivers.events else []
            psi, asked = chooser.context(observation, proposals)
            if self.feature.events:
                events += self.feature.take_events()
        else:
            proposals = [None] * len(self.names)
            events = [*drivers.take_events(), "the observation is NaN or infinite"]
        if psi is not None and asked:
            arm, cause, decision, asked = chooser.choose(psi, asked)
            picked = arm
            if arm != driver and driver >= 0 and decision is not None:
                if proposals[driver] is None:
                    arm, cause = chooser.first(asked), "fallback"
                elif self._driven < self.dwell and driver in asked:
                    arm, cause = driver, "dwell"
            if self.guard is not None and self.guard.arm in asked and decision is not None:
                arm, cause = self.guard.arm, "guard"
            if arm != picked and decision is not None:
                self._bound_extra += decision.loss_bound_of(asked.index(arm)) - decision.loss_bound
            if chooser.events:
                events += chooser.take_events()
            if self.counts.stages == 0 and self.feature.warning is not None and not isinstance(self.bandit.rule, Fixed):
                events.append(self.feature.warning)
                self.warnings.say(self.feature.warning, key=FEATURE)
        else:
            events += chooser.take_events()
            arm, cause = self._without_context(observation, proposals, finite)
            decision, picked = None, -1
            events += drivers.take_events()
        if self._alarms:
            events += self._alarms
            self._alarms = []
        wanted = proposals[arm] if arm >= 0 else self._stop(events)
        assert wanted is not None  # the chosen arm has a proposal
        action = wanted if self._filter.handover is None else self._filter.apply(wanted, arm)
        counts = self.counts
        counts.stages += 1
        if arm >= 0:
            counts.driven[arm] += 1
        counts.switches += arm != driver and counts.stages > 1
        counts.events += len(events)
        self._driven = self._driven + 1 if arm == driver else 1
        return StageDecision(
            self._run_info, counts.stages, self.step, self.episode, arm, picked, driver, cause, decision, asked, psi,
            tuple(proposals), action, None if self._run_info.lookahead is None else self.feature.foresight(),
            "; ".join(events) if events else None,
        )  # fmt: skip

    def _without_context(self, observation: Any, proposals: list[Action | None], finite: bool) -> tuple[int, str]:
        """Find an arm to drive without a decision: in the fallback order, benched arms last."""
        order, bench = self._chooser.fallback, self.drivers.bench
        for arm in order:
            if proposals[arm] is not None:
                return arm, "no context"
        for arm in order if finite else ():
            if bench.failed_at[arm] < self.step:
                proposals[arm] = self.drivers.ask_alone(arm, observation, self.step)
                if proposals[arm] is not None:
                    bench.reinstate(arm, self.step)
                    return arm, "fallback"
        return SAFE_ACTION, "safe action"

    def _stop(self, events: list[str]) -> Action:
        if self.safe_action is None:
            raise StateError(
                f"no controller is fit to drive ({'; '.join(events)}), and there is no safe action; "
                "declare one: Blender(..., safe_action=...)"
            )
        self.counts.safe_actions += 1
        return self.safe_action

    def observe(
        self,
        reward: float | None = None,
        cost: float | None = None,
        *,
        stage: int | None = None,
        step: int | None = None,
        done: bool = False,
        **signals: float | None,
    ) -> Observed:
        """Learn from the feedback of the latest control step, or of a named stage or step; return the outcome.

        "learned": the bandit was updated; "counted": the stage continues, or cannot be learned from; "late": it belongs
        to an earlier stage; "duplicate": it was observed before; "unknown": there is no such stage or step, or it is
        complete or too old; "refused": it is not finite. `done=True` ends the episode.
        """
        with self._lock:
            ledger = self._ledger
            if ledger.present is None:
                raise StateError("there is nothing to observe yet; call act(observation) first")
            signals["reward"], signals["cost"] = reward, cost
            feedback = self.objectives(signals)
            observed = ledger.observe(feedback, signals, stage=stage, step=step, now=self.step)
            if observed in ("learned", "counted", "late"):
                if self.monitor is not None:
                    self.monitor.observe(reward, cost)
                if self.guard is not None:
                    self.guard.observe(feedback)
                if not ledger.holding and ledger.present.feedback is not None:
                    self.warnings.add_stage(ledger.present.feedback)
            if done:
                self.end_episode()
            return observed

    def end_episode(self) -> None:
        """End the episode, and the present stage with it."""
        with self._lock:
            self._ledger.end_episode()
            self._filter.reset()
            self.episode += 1
            self.drivers.end_episode(self.step)
            self.warnings.end_episode()
            if self.guard is not None:
                self._alarms += self.guard.end_episode()
            if self.monitor is not None:
                self._alarms += [f"the certificate no longer holds: {alarm}" for alarm in self.monitor.end_episode()]

    status = run_status

    def await_truth(self) -> None:
        """Write the present stage to the record only after `add_truth`."""
        with self._lock:
            self._ledger.await_truth()

    def add_truth(self, stage: int, truth: FloatArray | None, correct: bool | None) -> Record | None:
        """Add the counterfactual feedback (arms, objectives) of every arm to a stage that awaits it; return it."""
        with self._lock:
            return self._ledger.add_truth(stage, truth, correct)

    def close(self) -> None:
        """Write the rest of the record and end the threads; closing twice is allowed."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self.drivers.close()
                self._ledger.close()

    def __enter__(self) -> Blender:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names, goals = ", ".join(self.names), ", ".join(self.objectives.names)
        return f"Blender({names}; features: {self.feature_name}; objectives: {goals}; stage {self.counts.stages})"
