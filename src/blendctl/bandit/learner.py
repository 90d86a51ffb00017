"""BlendingBandit: Algorithm 1 and its state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy import empty, ndarray
from numpy.typing import ArrayLike, NDArray

from blendctl.arrays import FloatArray
from blendctl.bandit import bounds, memory_layout, persistence
from blendctl.bandit.core import Core, seed_words
from blendctl.bandit.decision import Decision, DecisionBatch
from blendctl.bandit.options import OptionNames, Options, options_from
from blendctl.bandit.rules import Rule
from blendctl.bandit.rules.base import BoundedRule, whole
from blendctl.errors import InputError, StateError

FLOAT = np.dtype(np.float64)
LONGEST = 10**100  # stages


class LearnerArrays(NamedTuple):
    """Arrays that the kernels `decide_one` and `update_one` take, and change in place; see memory_layout.py."""

    state: FloatArray
    rng: NDArray[np.uint64]
    config: FloatArray


class BlendingBandit:
    """A contextual multi-objective bandit that picks the arm of least estimated loss in any objective.

    The corrected Algorithm 1 of the paper: indices at the current features, all objectives
    maximised, one V for all arms and objectives, no history is stored. See `Options` for
    the options and their defaults; `radius="paper", union_bound=False` is the printed radius.

    >>> bandit = BlendingBandit(n_features=2, n_objectives=2, noise=0.1, seed=0)
    >>> features = np.array([[0.6, 0.8], [0.8, -0.6]])  # a row per arm
    >>> decision = bandit.decide(features)
    >>> decision.candidates  # nothing is known yet, both features are equally long: a tie
    array([0, 1])
    >>> bandit.update(features[decision.arm], [0.5, -1.0])
    >>> bandit.stage
    1
    """

    def __init__(
        self, n_features: int, n_objectives: int = 2, *, seed: int | None = None, **options: Unpack[OptionNames]
    ) -> None:
        self._bind(Core(options_from(n_features, n_objectives, dict(options)), [seed]))

    def _bind(self, core: Core) -> None:
        self._core = core
        self._state, self._rng, self._config = core.state[0], core.rng[0], core.config
        self._n_features, self._n_objectives = core.options.n_features, core.options.n_objectives
        self._feature_shape, self._feedback_shape = (self._n_features,), (self._n_objectives,)
        self._decide_one, self._update_one = core.kernels.decide_one, core.kernels.update_one

    def decide(self, features: ArrayLike) -> Decision:
        """Pick an arm for features (arms, n_features): psi(z, x) of every arm x at the current state z."""
        n_features, n_objectives, core = self._n_features, self._n_objectives, self._core
        # a few comparisons find the common case; everything else takes the full check
        if not (
            type(features) is ndarray
            and features.dtype is FLOAT
            and features.flags.carray
            and len(shape := features.shape) == 2
            and shape[1] == n_features
            and shape[0]
        ):
            features = core.array(features, "features", ("arms", n_features))
        arms = features.shape[0]
        if not core.compiled_rule:
            rows = core.decide(features[None], pooled=True)
            return Decision(rows[0], arms, n_objectives, int(rows[0, memory_layout.ARM]))
        row = empty(memory_layout.INDICES + arms * (3 + 2 * n_objectives))
        arm = self._decide_one(self._state, self._rng, self._config, features, row)
        if arm < 0:
            core.refuse(features)
        return Decision(row, arms, n_objectives, arm)

    def update(self, features: ArrayLike, feedback: ArrayLike) -> None:
        """Learn from the feedback (n_objectives,) of an arm with features (n_features,).

        It does not need the decision: feedback may be late, or of several decisions at once.
        """
        if not (
            type(features) is ndarray
            and features.dtype is FLOAT
            and features.flags.carray
            and features.shape == self._feature_shape
        ):
            features = self._core.array(features, "features", self._feature_shape)
        if not (
            type(feedback) is ndarray
            and feedback.dtype is FLOAT
            and feedback.flags.carray
            and feedback.shape == self._feedback_shape
        ):
            feedback = self._core.array(feedback, "feedback", self._feedback_shape)
        if self._update_one(self._state, self._config, features, feedback):
            self._core.refuse(features, feedback)

    def decide_many(self, features: ArrayLike) -> DecisionBatch:
        """Decide in B parallel worlds with the same estimates: features (B, arms, n_features)."""
        array = self._core.array(features, "features", ("worlds", "arms", self._n_features))
        return DecisionBatch(self._core.decide(array, pooled=True), array.shape[1], self._n_objectives)

    def update_many(self, features: ArrayLike, feedback: ArrayLike) -> None:
        """Learn from B worlds, in their order, all or none: (B, n_features) and (B, n_objectives)."""
        psi = self._core.array(features, "features", ("worlds", self._n_features))
        y = self._core.array(feedback, "feedback", (psi.shape[0], self._n_objectives))
        self._core.update(psi, y, pooled=True)

    @property
    def options(self) -> Options:
        """The options of the learner."""
        return self._core.options

    @property
    def rule(self) -> Rule:
        """The decision rule."""
        return self._core.rule

    @property
    def n_features(self) -> int:
        """Length of a feature vector, d."""
        return self._n_features

    @property
    def n_objectives(self) -> int:
        """Length of a feedback vector, m."""
        return self._n_objectives

    @property
    def stage(self) -> int:
        """Feedback vectors learned from so far, t."""
        return int(self._state[memory_layout.STAGE])

    @property
    def decisions(self) -> int:
        """Decisions made so far."""
        return int(self._state[memory_layout.DECISIONS])

    @property
    def bound_sum(self) -> float:
        """Sum of the loss bounds of all decisions, see `loss_bound`."""
        return float(self._state[memory_layout.BOUND_SUM])

    @property
    def rescaled(self) -> int:
        """Feature vectors that were longer than feature_bound and were scaled, in decide and update."""
        return int(self._state[memory_layout.RESCALED])

    @property
    def radius(self) -> float:
        """The confidence radius beta of the next decision."""
        return float(self._core.kernels.radius_of(self._state, self._config, self._n_features))

    @property
    def theta(self) -> FloatArray:
        """The regularised least-squares estimates: (n_objectives, n_features), in scaled units."""
        return np.asarray(self._core.theta[0])

    @property
    def gram(self) -> FloatArray:
        """V = lambda I + sum of psi psi': (n_features, n_features), for inspection."""
        upper = np.triu(self._core.root[0, :, : self._n_features])
        return np.asarray(upper.T @ upper)

    @property
    def loss_bound(self) -> float:
        """Upper bound of the average maximal loss of the decisions so far (Theorem 2).

        The mean over the decisions of loss[arm] + 2 radius width[arm]; each term bounds that stage's
        true maximal loss. Holds with probability 1 - delta (with the union bound), at all stages at once;
        with discount < 1 a term holds with that probability at each stage. inf before the first decision.
        """
        decisions = self._state[memory_layout.DECISIONS]
        return float(self._state[memory_layout.BOUND_SUM] / decisions) if decisions else math.inf

    @property
    def has_regret_bound(self) -> bool:
        """Whether `regret_bound` is defined: the rule has one, and the learner does not forget."""
        return isinstance(self.rule, BoundedRule) and self.rule.regret_bounded and self.options.discount == 1

    def regret_bound(self, horizon: int | None = None) -> float:
        """Bound the Pareto regret of `horizon` stages: Theorem 1 with its constants corrected.

        beta_T sqrt(8 T 2 d log(1 + T L^2 / (lambda d))). The horizon is the current stage by default. It holds
        if every decision is followed by its update. Raise StateError if there is no bound (`has_regret_bound`).
        """
        options = self._core.options
        stages = self.stage if horizon is None else horizon
        if not whole(stages) or not 0 <= stages <= LONGEST:
            raise InputError(f"horizon must be a whole number from 0 to {LONGEST:g} or None, actually: {horizon!r}")
        if not self.has_regret_bound:
            raise StateError(
                "a learner that forgets (discount < 1) has no regret bound, because it depends on how fast the world "
                "changes; use loss_bound"
                if options.discount < 1
                else f'the rule "{self.rule.name}" has no regret bound; use loss_bound, which holds for every rule'
            )
        d, t = self._n_features, float(stages)
        world = (options.noise, options.regularization, options.theta_bound)
        if options.radius == "paper":
            beta = bounds.paper_radius(d, t, *world, options.feature_bound, options.delta_each())
        else:
            largest = bounds.largest_determinant(d, t, options.regularization, options.feature_bound)
            beta = bounds.determinant_radius(largest, *world, options.delta_each())
        return bounds.regret_bound(d, t, beta, options.regularization, options.feature_bound)

    @property
    def arrays(self) -> LearnerArrays | None:
        """The live arrays of the learner, for compiled loops; None if its rule is not compiled."""
        return LearnerArrays(self._state, self._rng, self._config) if self._core.compiled_rule else None

    def snapshot(self) -> LearnerArrays:
        """Return copies of its arrays, laid out as in memory_layout.py."""
        return LearnerArrays(self._state.copy(), self._rng.copy(), self._config.copy())

    def reseed(self, seed: int) -> None:
        """Reseed the random generator; keep what was learned."""
        self._core.rng[0] = seed_words(seed)

    def save(
        self,
        path: str | Path,
        *,
        beside: Mapping[str, FloatArray] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the learner and its random generator to a file (safetensors), atomically.

        beside: further arrays to keep in the file; about: JSON data that describes them (see `load_beside`).
        """
        persistence.save(self._core, path, beside=beside, about=about)

    @classmethod
    def load(cls, path: str | Path, *, rule: Rule | None = None) -> BlendingBandit:
        """Read a learner that continues bit for bit. A rule that is not part of blendctl must be passed again."""
        return cls._from_core(persistence.load(path, learners=1, rule=rule))

    @classmethod
    def _from_core(cls, core: Core) -> BlendingBandit:
        bandit = cls.__new__(cls)
        bandit._bind(core)
        return bandit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from_core, (self._core,)  # views must not be copied apart from their core

    def __repr__(self) -> str:
        return (
            f"BlendingBandit(n_features={self._n_features}, n_objectives={self._n_objectives}, "
            f'rule="{self.rule.name}", stage={self.stage})'
        )
