"""BlenderBatch: drive many worlds in lock-step, with one learner per world or one for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import BoolArray, FloatArray
from blendctl.bandit import BanditBatch, BlendingBandit, DecisionBatch
from blendctl.bandit.options import OptionNames
from blendctl.blender import arguments
from blendctl.blender.bandit_switch import BanditSwitch
from blendctl.blender.counterfactual import correct_choices
from blendctl.blender.objectives import Objective, Objectives, check_cost_known
from blendctl.controllers import Controller
from blendctl.controllers.adapters import as_controller
from blendctl.errors import InputError, StateError
from blendctl.features import Feature, bind_feature, choose_feature, feature_name
from blendctl.rollout import StepBatch, StepInput, propose


@dataclass(frozen=True)
class BatchRecord:
    """One control step in B worlds."""

    step: int  # 1, 2, ...
    arm: NDArray[np.intp]  # (B,) the arm that drove
    decisions: DecisionBatch | None  # of this stage; None if the first arm was drawn at random
    features: FloatArray  # (B, arms, features)
    reward: FloatArray  # (B,)
    cost: FloatArray  # (B,)
    feedback: FloatArray  # (B, objectives) of this step
    ended: BoolArray  # (B,) the episode ended with this step
    counted: BoolArray  # (B,) the step belongs to a requested episode
    truth: FloatArray | None  # (B, arms, objectives) counterfactual feedback of every arm
    correct: BoolArray | None  # (B,)


class BlenderBatch(BanditSwitch):
    """Blend controllers in `n_worlds` worlds at once; the controllers must take batches, as blendctl's do.

    It is a switch: `blendctl.run` and `blendctl.rollout.rollout` drive worlds with it. In your own loop, call
    `act` and `observe` in turn.

    learner: "each" has a bandit per world (a `BanditBatch`), "pooled" one that learns from all worlds. A feature that
    learns, such as the online model, is shared by all worlds in both cases.
    hold, context, frozen, features, prefer, cost_budget, objectives, stochastic, seed and options: as of `Blender`.
    All worlds share the stages. An action that is not finite is replaced by that of the first `fallback` arm
    that has one; a controller that raises stops the run, as there is no robot to keep moving.
    """

    def __init__(
        self,
        controllers: Sequence[Controller | Callable[..., Any]],
        n_worlds: int,
        *,
        names: Sequence[str] | None = None,
        objectives: Sequence[Objective] = ("reward", "-cost"),
        features: Feature | str | Sequence[Feature | str] | None = None,
        prefer: float | None = None,
        cost_budget: float | None = None,
        learner: Literal["each", "pooled"] = "each",
        hold: int | None = None,
        context: Literal["current", "previous"] = "current",
        frozen: bool = False,
        fallback: str | Sequence[str] | None = None,
        stochastic: bool = True,
        seed: int | None = None,
        **options: Unpack[OptionNames],
    ) -> None:
        self.controllers = [as_controller(c) for c in arguments.as_controller_list(controllers)]
        checked_names = arguments.check_names(self.controllers, names)
        checked = Objectives(objectives)
        worlds = arguments.count("n_worlds", n_worlds)
        goals = checked.names
        chosen = choose_feature(features, self.controllers, objectives=goals, prefer=prefer, cost_budget=cost_budget)
        self.feature_name = feature_name(chosen)
        bound = bind_feature(chosen, self.controllers, objectives=goals)
        settings = arguments.bandit_options(bound, options)
        bandit: BanditBatch | BlendingBandit
        if arguments.choice("learner", learner, ("each", "pooled")) == "pooled":
            bandit = BlendingBandit(bound.size, len(checked), seed=seed, **settings)
        else:
            bandit = BanditBatch(worlds, bound.size, len(checked), seed=seed, **settings)
        arguments.check_frozen(frozen, bound, rule=bandit.rule, learned=False)
        first, *noise = np.random.SeedSequence(seed).spawn(1 + len(self.controllers))
        super().__init__(
            bandit,
            bound,
            worlds=worlds,
            names=checked_names,
            rng=np.random.default_rng(first),
            objectives=checked,
            hold=arguments.count("hold", bound.hold if hold is None else hold),
            previous=arguments.check_context(context, bound) == "previous",
            frozen=frozen,
            fallback=arguments.check_fallback(fallback, checked_names),
        )
        self.rngs = [np.random.default_rng(s) if stochastic else None for s in noise]
        self.step = 0
        self._waiting: StepInput | None = None  # of the actions whose feedback is pending
        self._actions: FloatArray = np.empty((worlds, 0))  # these actions
        self._counterfactual: Mapping[str, FloatArray] | None = None
        # Control steps and cost of the present episodes, and the arms before, for `act` and `observe`.
        self._episode_step, self._spent = np.zeros(worlds, np.int64), np.zeros(worlds)
        self._last_arm = np.full(worlds, -1)

    def __repr__(self) -> str:
        goals = ", ".join(self.objectives.names)
        return (
            f"BlenderBatch({len(self)} worlds; {', '.join(self.names)}; features: {self.feature_name}; "
            f"objectives: {goals}; step {self.step})"
        )

    def act(self, observations: FloatArray) -> FloatArray:
        """Return actions (B, action_size) for observations (B, observation_size)."""
        if len(observations) != len(self):
            raise InputError(f"expected observations of {len(self)} worlds, actually: shape {np.shape(observations)}")
        if self._waiting is not None:
            raise StateError("the last step was not observed; call observe(...) between two acts")
        proposals = propose(self.controllers, observations, self.rngs)
        frame = StepInput(self.step, observations, proposals, self._episode_step, self._spent, self._last_arm)
        arm = self.choose(frame)
        self._waiting, self._counterfactual = frame, None
        self._actions = np.asarray(proposals[arm, self._rows])
        return self._actions.copy()

    def judge(self, peek: Callable[..., Any]) -> None:
        """Evaluate every arm's action by the worlds' `peek`; the record of `observe` then has truth and correct."""
        self.expect_single_steps()
        if self._waiting is None:
            raise StateError("there is nothing to judge; call act(observations) first")
        reward, cost, parts = peek(self._waiting.proposals, components=True)  # (arms, B)
        self._counterfactual = {"reward": reward, "cost": cost, **parts}

    def expect_single_steps(self) -> None:
        """Raise StateError if stages last longer than the one step that counterfactual steps evaluate."""
        if self.hold > 1:
            raise StateError("counterfactual steps in many worlds need hold=1; use a single Blender")

    def observe(
        self,
        rewards: FloatArray,
        infos: Mapping[str, Any],
        *,
        observations: FloatArray | None = None,
        ended: BoolArray | None = None,
        counted: BoolArray | None = None,
    ) -> BatchRecord:
        """Learn from a step: rewards (B,), costs in infos, and which episodes ended.

        observations: those after the step, before any reset; a blend that looks ahead learns from them.
        """
        if self._waiting is None:
            raise StateError("there is nothing to observe; call act(observations) first")
        if observations is None and self.features.bootstraps and not self.frozen:
            raise InputError(
                "a blend that looks ahead learns from the state after a step: "
                'observe(rewards, infos, observations=...), or use features="predictions"'
            )
        n, frame = len(self), self._waiting
        batch = StepBatch(
            input=frame,
            arm=self.arm,
            weights=None,
            actions=self._actions,
            observations=frame.observations if observations is None else observations,
            reward=np.asarray(rewards, np.float64),
            cost=np.asarray(infos.get("cost", np.zeros(n)), np.float64),
            ended=np.zeros(n, np.bool_) if ended is None else ended,
            counted=np.ones(n, np.bool_) if counted is None else counted,
            infos=infos,
            counterfactual=self._counterfactual,
        )
        self.learn(batch)
        self._waiting = None
        going = ~batch.ended
        self._episode_step = (frame.episode_step + 1) * going
        self._spent = (frame.spent + batch.cost) * going
        self._last_arm = np.where(going, batch.arm, -1)
        return self.record(batch)

    def learn(self, batch: StepBatch) -> None:
        """Learn from a step; count it."""
        check_cost_known(
            self.objectives, batch.infos, remedy='add it with a wrapper, or use objectives without "-cost"'
        )
        super().learn(batch)
        self.step += 1

    def record(self, batch: StepBatch) -> BatchRecord:
        """Return the record of the last step passed to `learn`."""
        truth = None
        if batch.counterfactual is not None:
            truth = self.objectives.arrays(batch.counterfactual).swapaxes(0, 1)
        return BatchRecord(
            step=self.step,
            arm=batch.arm,
            decisions=self.decisions,
            features=self.psi,
            reward=batch.reward,
            cost=batch.cost,
            feedback=self.feedback,
            ended=batch.ended,
            counted=batch.counted,
            truth=truth,
            correct=None if truth is None else correct_choices(truth, batch.arm),
        )
