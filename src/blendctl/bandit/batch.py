"""BanditBatch: many independent learners in lock-step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import memory_layout, persistence
from blendctl.bandit.core import Core
from blendctl.bandit.decision import DecisionBatch
from blendctl.bandit.learner import BlendingBandit
from blendctl.bandit.options import OptionNames, Options, options_from
from blendctl.bandit.rules import Rule
from blendctl.bandit.rules.base import whole
from blendctl.errors import InputError


class BanditBatch:
    """B learners advanced together, each bit for bit a `BlendingBandit` with its seed.

    seed: one number s (learner i then has seed s + i) or B of them.

    >>> batch = BanditBatch(3, n_features=2, seed=0)
    >>> decisions = batch.decide(np.tile(np.eye(2), (3, 1, 1)))  # (B, arms, n_features)
    >>> decisions.ucb.shape
    (3, 2, 2)
    >>> batch.update(np.eye(2)[decisions.arm], np.zeros((3, 2)))
    >>> batch.stage
    array([1, 1, 1])
    """

    def __init__(
        self,
        n_learners: int,
        n_features: int,
        n_objectives: int = 2,
        *,
        seed: int | Sequence[int] | None = None,
        **options: Unpack[OptionNames],
    ) -> None:
        if not whole(n_learners) or n_learners < 1:
            raise InputError(f"n_learners must be a whole number >= 1, actually: {n_learners!r}")
        seeds: list[int | None]
        if seed is None:
            seeds = [None] * int(n_learners)
        elif whole(seed):
            seeds = [int(seed) + i for i in range(n_learners)]
        elif isinstance(seed, (Sequence, np.ndarray)) and len(seed) == n_learners:
            seeds = list(seed)
        else:
            raise InputError(
                f"seed must be one whole number >= 0 or {n_learners} of them (one per learner), actually: {seed!r}"
            )
        self._core = Core(options_from(n_features, n_objectives, dict(options)), seeds)

    def decide(self, features: ArrayLike) -> DecisionBatch:
        """Pick an arm per learner: features (B, arms, n_features)."""
        array = self._core.array(features, "features", (len(self), "arms", self.options.n_features))
        return DecisionBatch(self._core.decide(array, pooled=False), array.shape[1], self.options.n_objectives)

    def update(self, features: ArrayLike, feedback: ArrayLike) -> None:
        """Learn, learner i from row i, all or none: (B, n_features) and (B, n_objectives)."""
        psi = self._core.array(features, "features", (len(self), self.options.n_features))
        y = self._core.array(feedback, "feedback", (len(self), self.options.n_objectives))
        self._core.update(psi, y, pooled=False)

    def learner(self, index: int) -> BlendingBandit:
        """Return a copy of learner `index` as a `BlendingBandit`."""
        if not whole(index) or not -len(self) <= index < len(self):
            raise InputError(f"index must be from 0 to {len(self) - 1}, actually: {index!r}")
        return BlendingBandit._from_core(
            Core.restored(self.options, self._core.state[[index]], self._core.rng[[index]])
        )

    def __len__(self) -> int:
        return len(self._core.state)

    @property
    def options(self) -> Options:
        """The options that all learners share."""
        return self._core.options

    @property
    def rule(self) -> Rule:
        """The decision rule that all learners share."""
        return self._core.rule

    @property
    def stage(self) -> NDArray[np.int64]:
        """Feedback vectors each learner has learned from: (B,)."""
        return self._core.state[:, memory_layout.STAGE].astype(np.int64)

    @property
    def rescaled(self) -> NDArray[np.int64]:
        """Feature vectors that were longer than feature_bound and were scaled: (B,)."""
        return self._core.state[:, memory_layout.RESCALED].astype(np.int64)

    @property
    def theta(self) -> FloatArray:
        """The least-squares estimates: (B, n_objectives, n_features), in scaled units."""
        return self._core.theta

    @property
    def loss_bound(self) -> FloatArray:
        """Each learner's bound on its average maximal loss: (B,); inf before the first decision."""
        decisions = self._core.state[:, memory_layout.DECISIONS]
        total = self._core.state[:, memory_layout.BOUND_SUM]
        return np.where(decisions > 0, total / np.maximum(decisions, 1.0), np.inf)

    def save(self, path: str | Path) -> None:
        """Write all learners to one file (safetensors), atomically."""
        persistence.save(self._core, path)

    @classmethod
    def load(cls, path: str | Path, *, rule: Rule | None = None) -> BanditBatch:
        """Read learners that continue bit for bit. A rule that is not part of blendctl must be passed again."""
        batch = cls.__new__(cls)
        batch._core = persistence.load(path, learners=None, rule=rule)
        return batch

    def __repr__(self) -> str:
        return (
            f"BanditBatch({len(self)} learners, n_features={self.options.n_features}, "
            f'n_objectives={self.options.n_objectives}, rule="{self.rule.name}")'
        )
