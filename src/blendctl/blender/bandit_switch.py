"""A bandit as a switch of many worlds in lock-step: contexts, held decisions, and learning from the chosen arms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import BanditBatch, BlendingBandit, DecisionBatch
from blendctl.blender.objectives import Objectives
from blendctl.errors import InputError, StateError
from blendctl.features import BoundFeature
from blendctl.rollout import StepBatch, StepInput, Switch


class BanditSwitch(Switch):
    """Decide in B worlds by a bandit, and learn from the feedback of the arms that drove.

    bandit: a `BanditBatch` has a learner per world; a `BlendingBandit` learns from all worlds.
    hold: control steps per decision; their feedback is summed. All worlds share the stages: if an episode ends in one
    world, the stage ends in all of them.
    previous: decide with the context of the decision before, as the paper prints; the first arm is drawn from `rng`.
    fallback: arms in the order in which they replace an arm whose action is not finite.
    """

    def __init__(
        self,
        bandit: BanditBatch | BlendingBandit,
        features: BoundFeature,
        *,
        worlds: int,
        names: Sequence[str],
        rng: np.random.Generator,
        objectives: Objectives | None = None,
        hold: int = 1,
        previous: bool = False,
        frozen: bool = False,
        fallback: Sequence[int] = (),
    ) -> None:
        self.bandit, self.features, self.names = bandit, features, tuple(names)
        self.objectives = objectives or Objectives(["reward", "-cost"])
        self.hold, self.frozen, self.fallback = hold, frozen, tuple(fallback)
        self._worlds, self._previous, self._rng = worlds, previous, rng
        self._rows = np.arange(worlds)
        self._held = 0  # control steps of the present stage so far
        self._total = np.zeros((worlds, len(self.objectives)))  # feedback of the present stage
        self._earlier: FloatArray | None = None  # context of the decision before
        # Observations and applied actions of the stage's first step, for features that learn.
        self._first: tuple[FloatArray, FloatArray] | None = None
        self.arm = np.zeros(worlds, np.intp)
        self.psi = np.zeros((worlds, len(self.names), features.size))
        self.decisions: DecisionBatch | None = None  # of this stage; None if the first arm was drawn at random
        self.feedback = np.zeros((worlds, len(self.objectives)))  # of the last step

    def __len__(self) -> int:
        return self._worlds

    def choose(self, frame: StepInput) -> NDArray[np.intp]:
        """Return the arm of each world: a new decision at the start of a stage, else the present one."""
        if self._held == 0:
            self.features.begin_stage(frame.spent, frame.episode_step)
            self._decide(frame)
        self._replace_nonfinite(frame.proposals)
        if self._held == 0 and self.features.learns:
            self._first = frame.observations.copy(), frame.proposals[self.arm, self._rows]
        return self.arm

    def learn(self, batch: StepBatch) -> None:
        """Add a step's feedback to the stage, and learn if the stage is over."""
        self.feedback = self.objectives.arrays(self.signals(batch.reward, batch.cost, batch.infos))
        self._total += self.feedback * self.features.discount**self._held if self._held else self.feedback
        ended = batch.ended.any()
        steps = self._held + 1
        self._held = 0 if ended else steps % self.hold
        if ended:
            self.features.end_episodes((batch.input.spent + batch.cost)[batch.ended])
        if self._held or self.frozen:
            return
        psi, total = self.features.learned_from(self.psi[self._rows, self.arm]), self._total
        if self.features.bootstraps:
            # Nothing is known beyond the end of an episode; a row of zeros changes no learner.
            known = ~batch.ended[:, None]
            psi = np.where(known, psi, 0.0)
            total = np.where(known, self.features.target(total, batch.observations, steps=steps), 0.0)
        if isinstance(self.bandit, BlendingBandit):
            self.bandit.update_many(psi, total)
        else:
            self.bandit.update(psi, total)
        if self._first is not None:
            for observation, action, feedback in zip(*self._first, self._total, strict=True):
                self.features.learn(observation, action, feedback)

    def signals(self, reward: FloatArray, cost: FloatArray, infos: Mapping[str, Any]) -> dict[str, FloatArray]:
        """Return reward, cost and its components by name, (B,) each."""
        parts = {name: np.asarray(value, np.float64) for name, value in infos.items() if name.startswith("cost_")}
        signals = {"reward": reward, "cost": cost, **parts}
        for name, values in signals.items():
            if values.shape != (self._worlds,):
                raise InputError(f"expected {name} of {self._worlds} worlds, actually: shape {values.shape}")
        return signals

    def _decide(self, frame: StepInput) -> None:
        psi = np.empty((self._worlds, len(self.names), self.features.size))
        for arm in range(len(self.names)):
            psi[:, arm] = self._context(frame, arm)
        finite = np.isfinite(psi)
        self.psi = psi if finite.all() else np.where(finite, psi, 0.0)
        self._total[:] = 0.0
        basis: FloatArray | None = self.psi
        if self._previous:
            basis, self._earlier = self._earlier, self.psi
        if basis is None:
            self.decisions = None
            self.arm = self._rng.integers(len(self.names), size=self._worlds)
            return
        bandit = self.bandit
        self.decisions = bandit.decide_many(basis) if isinstance(bandit, BlendingBandit) else bandit.decide(basis)
        self.arm = self.decisions.arm

    def _context(self, frame: StepInput, arm: int) -> FloatArray:
        rows = self.features.rows(frame.observations, frame.proposals[arm], arm)
        expected = (self._worlds, self.features.size)
        if rows.shape != expected:
            raise InputError(f"the context of {self.names[arm]} must have shape {expected}, actually: {rows.shape}")
        return rows

    def _replace_nonfinite(self, proposals: FloatArray) -> None:
        finite = np.asarray(np.isfinite(proposals).all(axis=2))  # (arms, B)
        usable = finite[self.arm, self._rows]
        if usable.all():
            return
        if not finite.any(axis=0).all():
            raise StateError("in some world no controller returned a finite action")
        order = np.array(self.fallback or range(len(self.names)))
        self.arm = np.where(usable, self.arm, order[finite[order].argmax(axis=0)])
