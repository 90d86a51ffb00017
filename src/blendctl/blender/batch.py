"""BlenderBatch: many worlds driven in lock-step, each with a learner of its own or all with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit import BanditBatch, BlendingBandit, DecisionBatch
from blendctl.bandit.options import OptionNames
from blendctl.blender import arguments
from blendctl.blender.counterfactual import correct_choices
from blendctl.blender.objectives import Objective, Objectives
from blendctl.controllers import Controller
from blendctl.controllers.adapters import act_rows, as_controller
from blendctl.errors import InputError, StateError
from blendctl.features import BoundFeature, Feature, as_feature

__all__ = ["BlenderBatch", "BatchRecord"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class BatchRecord:
    """One control step in B worlds."""

    step: int  # 1, 2, ...
    arm: NDArray[np.intp]  # (B,) who drove
    decisions: DecisionBatch | None  # of this stage; None for a first pull by chance
    features: FloatArray  # (B, arms, features)
    reward: FloatArray  # (B,)
    cost: FloatArray  # (B,)
    feedback: FloatArray  # (B, objectives) of this step
    ended: BoolArray  # (B,) the episode ended with this step
    counted: BoolArray  # (B,) the step belongs to an episode that was asked for
    truth: FloatArray | None  # (B, arms, objectives) what every arm would have brought
    correct: BoolArray | None  # (B,)


class BlenderBatch:
    """Blend controllers in `n_worlds` worlds at once; the controllers must take batches, as blendctl's do.

    learner: "each" gives every world a bandit of its own (a `BanditBatch`), "pooled" lets all worlds teach one. A
    feature that learns, such as the online model, is shared by all worlds either way.
    hold, context, frozen, features, objectives, stochastic, seed and options: as of `Blender`. A stage holds for all
    worlds at once. An action that is not finite is replaced by that of the first arm of `fallback` that has one; a
    controller that raises stops the run, as there is no robot to keep moving.
    """

    def __init__(
        self,
        controllers: Sequence[Controller | Callable[..., Any]],
        n_worlds: int,
        *,
        names: Sequence[str] | None = None,
        objectives: Sequence[Objective] = ("reward", "-cost"),
        features: Feature | str | Sequence[Feature | str] | None = None,
        learner: Literal["each", "pooled"] = "each",
        hold: int = 1,
        context: Literal["current", "previous"] = "current",
        frozen: bool = False,
        fallback: str | Sequence[str] | None = None,
        stochastic: bool = True,
        seed: int | None = None,
        **options: Unpack[OptionNames],
    ) -> None:
        self.controllers = [as_controller(c) for c in arguments.as_controller_list(controllers)]
        self.names = arguments.check_names(self.controllers, names)
        self.objectives = Objectives(objectives)
        self.hold = arguments.count("hold", hold)
        self.fallback = arguments.check_fallback(fallback, self.names)
        self.frozen = frozen
        self._worlds = arguments.count("n_worlds", n_worlds)
        self._previous = arguments.choice("context", context, ("current", "previous")) == "previous"
        self.features = as_feature(features, self.controllers).bind(self.controllers, objectives=len(self.objectives))
        size, m = self.features.size, len(self.objectives)
        settings: Any = {"on_large_feature": "rescale"} | dict(options)
        self.bandit: BanditBatch | BlendingBandit
        if arguments.choice("learner", learner, ("each", "pooled")) == "pooled":
            self.bandit = BlendingBandit(size, m, seed=seed, **settings)
        else:
            self.bandit = BanditBatch(self._worlds, size, m, seed=seed, **settings)
        first, *seeds = np.random.SeedSequence(seed).spawn(1 + len(self.controllers))
        self._rng = np.random.default_rng(first)
        self.rngs = [np.random.default_rng(s) if stochastic else None for s in seeds]
        self.step = 0
        self._held = 0  # control steps of the present stage so far
        self._decisions: DecisionBatch | None = None
        self._earlier: FloatArray | None = None
        self._total = np.zeros((self._worlds, m))
        self._teach: Callable[..., object] | None = getattr(self.features, "learn", None)
        self._began: FloatArray | None = None  # observations at the stage's first step, for features that learn
        self._first = np.zeros((0, 0))  # (B, action_size) applied at that step
        self._truth: FloatArray | None = None
        self._waiting = False  # an action was given whose feedback has not come
        self.arm = np.zeros(self._worlds, np.intp)
        self.psi = np.zeros((self._worlds, len(self.controllers), size))
        self.proposals = np.zeros((0, 0, 0))

    def __len__(self) -> int:
        return self._worlds

    def act(self, observations: FloatArray) -> FloatArray:
        """Give actions (B, action_size) for observations (B, observation_size)."""
        if len(observations) != self._worlds:
            raise InputError(
                f"expected observations of {self._worlds} worlds, actually: shape {np.shape(observations)}"
            )
        if self._waiting:
            raise StateError("the last step was not observed; call observe(...) between two acts")
        actions = [act_rows(c, observations, rng) for c, rng in zip(self.controllers, self.rngs, strict=True)]
        if len({action.shape for action in actions}) > 1:
            shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(self.names, actions, strict=True))
            raise InputError(f"the controllers' actions must have one shape, actually: {shapes}")
        self.proposals = np.stack(actions)  # (arms, B, action_size)
        if self._held == 0:
            self._decide(observations)
        self._reroute()
        self._truth = None
        self._waiting = True
        self.step += 1
        applied = np.asarray(self.proposals[self.arm, np.arange(self._worlds)])
        if self._held == 0:
            self._first = applied
        return applied

    def _decide(self, observations: FloatArray) -> None:
        psi = np.stack([self._context(observations, action, arm) for arm, action in enumerate(self.proposals)], axis=1)
        self.psi = np.where(np.isfinite(psi), psi, 0.0)
        basis = self.psi
        self._total[:] = 0.0
        self._began = observations.copy() if self._teach is not None else None
        if self._previous:
            earlier, self._earlier = self._earlier, self.psi
            if earlier is None:
                self._decisions = None
                self.arm = self._rng.integers(len(self.controllers), size=self._worlds)
                return
            basis = earlier
        bandit = self.bandit
        if isinstance(bandit, BlendingBandit):
            self._decisions = bandit.decide_many(basis)
        else:
            self._decisions = bandit.decide(basis)
        self.arm = self._decisions.arm

    def _context(self, observations: FloatArray, actions: FloatArray, arm: int) -> FloatArray:
        feature: BoundFeature = self.features
        if getattr(feature, "batched", False):
            rows = np.asarray(feature(observations, actions, arm), np.float64)
        else:
            pairs = zip(observations, actions, strict=True)
            rows = np.array([feature(o, a, arm) for o, a in pairs], np.float64)
        if rows.shape != (self._worlds, feature.size):
            raise InputError(
                f"the context of {self.names[arm]} must have shape {(self._worlds, feature.size)}, "
                f"actually: {rows.shape}"
            )
        return rows

    def _reroute(self) -> None:
        finite = np.asarray(np.isfinite(self.proposals).all(axis=2))  # (arms, B)
        rows = np.arange(self._worlds)
        if finite[self.arm, rows].all():
            return
        order = np.array(self.fallback)
        if not finite.any(axis=0).all():
            raise StateError("in some world no controller gave a finite action")
        spare = order[finite[order].argmax(axis=0)]
        self.arm = np.where(finite[self.arm, rows], self.arm, spare)

    def judge(self, peek: Callable[..., Any]) -> None:
        """Ask the worlds what every arm would bring from here; `observe` then tells who chose correctly."""
        if self.hold > 1:
            raise StateError("counterfactual steps in many worlds need hold=1; use a single Blender")
        reward, cost, parts = peek(self.proposals, components=True)  # (arms, B)
        values = self.objectives.arrays({"reward": reward, "cost": cost, **parts})
        self._truth = values.swapaxes(0, 1)

    def observe(
        self,
        rewards: FloatArray,
        infos: Mapping[str, Any],
        *,
        ended: BoolArray | None = None,
        counted: BoolArray | None = None,
    ) -> BatchRecord:
        """Learn from a step: rewards (B,), costs in infos, and which episodes ended."""
        if not self._waiting:
            raise StateError("there is nothing to observe; call act(observations) first")
        cost = np.asarray(infos.get("cost", np.zeros(self._worlds)), np.float64)
        signals = {"reward": np.asarray(rewards, np.float64), "cost": cost}
        for name, values in infos.items():
            if name.startswith("cost_"):
                signals[name] = np.asarray(values, np.float64)
        for name, values in signals.items():
            if values.shape != (self._worlds,):
                raise InputError(f"expected {name} of {self._worlds} worlds, actually: shape {values.shape}")
        feedback = self.objectives.arrays(signals)
        self._waiting = False
        over = np.zeros(self._worlds, np.bool_) if ended is None else ended
        self._total += feedback
        self._held = (self._held + 1) % self.hold
        if over.any():
            self._held = 0  # lock-step: a stage that any episode's end cuts short is over for all
        if self._held == 0 and not self.frozen:
            self._learn()
        truth = self._truth
        return BatchRecord(
            step=self.step,
            arm=self.arm,
            decisions=self._decisions,
            features=self.psi,
            reward=signals["reward"],
            cost=cost,
            feedback=feedback,
            ended=over,
            counted=np.ones(self._worlds, np.bool_) if counted is None else counted,
            truth=truth,
            correct=None if truth is None else correct_choices(truth, self.arm),
        )

    def _learn(self) -> None:
        bandit, psi = self.bandit, self.psi[np.arange(self._worlds), self.arm]
        if isinstance(bandit, BlendingBandit):
            bandit.update_many(psi, self._total)
        else:
            bandit.update(psi, self._total)
        if self._teach is not None and self._began is not None:
            for taught in zip(self._began, self._first, self._total, strict=True):
                self._teach(*taught)
