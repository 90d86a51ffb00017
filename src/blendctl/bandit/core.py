"""State, input checks and kernel calls that one learner and a batch share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blendctl.arrays import FloatArray, WordArray
from blendctl.bandit import memory_layout
from blendctl.bandit.options import Options
from blendctl.bandit.rules import DecisionInput, MaximalLoss
from blendctl.bandit.rules.base import whole
from blendctl.errors import InputError, StateError


def seed_words(seed: int | None) -> WordArray:
    """Turn a seed into the generator's state (4,); None takes fresh entropy."""
    if seed is not None and (not whole(seed) or seed < 0):
        raise InputError(f"seed must be a whole number >= 0 or None, actually: {seed!r}")
    return np.random.SeedSequence(seed).generate_state(4, np.uint64).astype(np.uint64)


class Core:
    """Arrays and kernels of B learners with the same options."""

    __slots__ = ("options", "rule", "state", "rng", "config", "compiled_rule", "kernels")

    def __init__(self, options: Options, seeds: Sequence[int | None]) -> None:
        from blendctl.bandit import kernels  # numba loads here, when the first learner is made

        self.options = options
        self.kernels = kernels
        d, m = options.n_features, options.n_objectives
        self.rule = options.made_rule
        self.compiled_rule = type(self.rule) is MaximalLoss
        self.config: FloatArray = options.packed()
        self.state: FloatArray = np.zeros((len(seeds), memory_layout.learner_size(d, m)))
        self.root[:, np.arange(d), np.arange(d)] = np.sqrt(options.regularization)
        if options.prior is not None:
            # V_0 = lambda I and W_0 = lambda theta_0, so Q_0 = U_0'^-1 W_0 = sqrt(lambda) theta_0.
            self.root[:, :, d:] = np.sqrt(options.regularization) * np.asarray(options.prior)
        self.rng: WordArray = np.stack([seed_words(seed) for seed in seeds])

    @classmethod
    def restored(cls, options: Options, state: FloatArray, rng: WordArray) -> Core:
        """Make learners that continue from these arrays (which are copied)."""
        core = cls(options, [0] * len(state))
        core.state[:], core.rng[:] = state, rng
        return core

    def __reduce__(self) -> tuple[Any, ...]:
        return Core.restored, (self.options, self.state, self.rng)  # a module such as kernels cannot be copied

    @property
    def root(self) -> FloatArray:
        """[U Q] of every learner: a view (B, d, d + m)."""
        d, m = self.options.n_features, self.options.n_objectives
        return self.state[:, memory_layout.FEEDBACK + m :].reshape(-1, d, d + m)

    @property
    def theta(self) -> FloatArray:
        """The least-squares estimates of every learner: (B, m, d), in scaled units."""
        from blendctl.bandit import sqrt_form

        d, m = self.options.n_features, self.options.n_objectives
        return np.stack([sqrt_form.theta(row, d, m) for row in self.state])

    def decide(self, features: FloatArray, *, pooled: bool) -> FloatArray:
        """Decide for features (f, arms, d); returns decision rows (f, ...)."""
        count, arms, _ = features.shape
        out = np.empty((count, memory_layout.decision_size(arms, self.options.n_objectives)))
        if self.compiled_rule:
            if self.kernels.decide(self.state, self.rng, self.config, features, out, pooled):
                self.refuse(features)
            return out
        words, rescaled = self.rng.copy(), self.state[:, memory_layout.RESCALED].copy()
        try:
            self._decide_by_rule(features, out, pooled=pooled)
        except BaseException:
            self.rng[:] = words  # a rule that fails leaves the learner unchanged
            self.state[:, memory_layout.RESCALED] = rescaled
            raise
        return out

    def _decide_by_rule(self, features: FloatArray, out: FloatArray, *, pooled: bool) -> None:
        from blendctl.bandit import generator

        whitened = np.empty(features.shape)
        if self.kernels.indices(self.state, self.config, features, out, whitened, pooled):
            self.refuse(features)
        count, arms, _ = features.shape
        m = self.options.n_objectives
        start = memory_layout.INDICES
        matrices = out[:, start + 3 * arms :].reshape(count, 2, arms, m)
        learner = np.zeros(count, dtype=np.intp) if pooled else np.arange(count)
        ucb = matrices[:, 1]

        def normals(n: int) -> FloatArray:
            draws = np.empty((count, n))
            generator.normals(self.rng, draws, pooled)
            return draws

        stage = DecisionInput(
            ucb=ucb,
            estimate=matrices[:, 0],
            width=out[:, start : start + arms],
            loss=out[:, start + arms : start + 2 * arms],
            radius=out[:, memory_layout.RADIUS],
            tolerance=self.options.tie_tolerance * np.abs(ucb).max(axis=(1, 2)),
            updates=self.state[learner, memory_layout.STAGE],
            feedback_sum=self.state[learner, memory_layout.FEEDBACK : memory_layout.FEEDBACK + m],
            whitened=whitened,
            normals=normals,
        )
        mask = np.asarray(self.rule.candidates(stage))
        if mask.shape != (count, arms) or mask.dtype != np.bool_ or not mask.any(axis=1).all():
            raise StateError(
                f'the rule "{self.rule.name}" must mark at least one arm per decision in a boolean array of shape '
                f"{(count, arms)}; actually: shape {mask.shape}, type {mask.dtype}"
            )
        out[:, start + 2 * arms : start + 3 * arms] = mask
        self.kernels.settle(self.state, self.rng, out, arms, pooled)

    def update(self, features: FloatArray, feedback: FloatArray, *, pooled: bool) -> None:
        """Learn from features (f, d) and feedback (f, m), all or nothing."""
        if self.kernels.update(self.state, self.config, features, feedback, pooled):
            self.refuse(features, feedback)

    def refuse(self, features: FloatArray, feedback: FloatArray | None = None) -> None:
        """Raise an error that explains why a kernel refused an input."""
        for name, array in (("feedback", feedback), ("features", features)):
            if array is not None and not np.isfinite(array).all():
                where = np.argwhere(~np.isfinite(array))[0].tolist()
                raise InputError(
                    f"{name} must be finite, actually: {array[tuple(where)]} at index {where} "
                    f"of an array of shape {array.shape}; the learner is unchanged"
                )
        if feedback is not None and np.abs(feedback).max() > memory_layout.LARGEST_FEEDBACK:
            raise InputError(
                f"feedback must be at most {memory_layout.LARGEST_FEEDBACK:g} in size, "
                f"actually: {np.abs(feedback).max():g}; the learner is unchanged"
            )
        longest = np.sqrt(np.square(features / np.abs(features).max()).sum(axis=-1)).max() * np.abs(features).max()
        raise InputError(
            f"a feature vector must be no longer than feature_bound = {self.options.feature_bound:g}, actually: "
            f"{longest:.10g}; scale the features, raise feature_bound (and regularization), or pass "
            f'on_large_feature="rescale"'
        )

    def array(self, values: ArrayLike, name: str, shape: tuple[int | str, ...]) -> FloatArray:
        """Return a C-contiguous float64 array of that shape, if possible without a copy; a word is any size >= 1."""
        try:
            array = np.asarray(values)
            if array.dtype.kind not in "fiub":
                raise TypeError(f"type {array.dtype}")
            if array.dtype != np.float64 or not array.flags.carray:
                array = np.require(array, dtype=np.float64, requirements=["C", "A", "W"])
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} must be an array of numbers of shape {_words(shape)}: {error}") from None
        fits = array.ndim == len(shape) and all(
            size >= 1 if isinstance(want, str) else size == want for size, want in zip(array.shape, shape, strict=True)
        )
        if not fits:
            raise InputError(f"{name} must have shape {_words(shape)}, actually: {array.shape}")
        return array


def _words(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(str(size) for size in shape)}{',' if len(shape) == 1 else ''})"
