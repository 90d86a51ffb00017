"""Linear worlds with known truth, from friendly to adversarial, for checks of the learner's bounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from blendctl.arrays import FloatArray

# Each satisfies the assumptions of the bounds: |psi| <= 1, |theta| <= 1, noise that is sub-Gaussian with sigma.
FAMILIES = ("stationary", "heteroscedastic", "correlated", "adversarial")


@dataclass(eq=False)
class LinearWorlds:
    """B worlds with feedback theta psi + noise; the family determines how contexts and noise are drawn."""

    family: str
    theta: FloatArray  # (B, objectives, features)
    arms: int
    noise: float
    rng: np.random.Generator
    last: FloatArray = field(init=False)  # (B, arms, features) the previous contexts

    def __post_init__(self) -> None:
        self.last = self._directions()

    def features(self, estimate: FloatArray) -> FloatArray:
        """Return contexts (B, arms, features); an adversary sees the learner's estimate (B, objectives, features)."""
        fresh = self._directions()
        if self.family == "correlated":  # in time, and between the arms
            common = fresh[:, :1]
            fresh = _unit(0.9 * self.last + 0.1 * fresh + 0.2 * common)
        elif self.family == "adversarial":
            # The arms lie along the learner's largest error in one objective, with random signs and lengths.
            error = estimate - self.theta
            worst = np.linalg.norm(error, axis=-1).argmax(axis=1)
            along = _unit(error[np.arange(len(error)), worst])[:, None]
            fresh = _unit(along * self.rng.choice([-1.0, 1.0], size=(*fresh.shape[:2], 1)) + 0.3 * fresh)
        self.last = fresh
        return np.asarray(fresh * self.rng.uniform(0.5, 1.0, size=(*fresh.shape[:2], 1)))

    def feedback(self, mean: FloatArray, psi: FloatArray) -> FloatArray:
        """Add noise to the expected feedback (B, objectives) at contexts (B, features)."""
        scale = np.full(mean.shape, self.noise)
        if self.family == "heteroscedastic":  # the noise depends on the context and never exceeds sigma
            scale *= np.clip(np.abs(psi).max(axis=-1, keepdims=True), 0.05, 1.0)
        if self.family == "adversarial":  # signs only: the largest variance of bounded noise
            return np.asarray(mean + scale * self.rng.choice([-1.0, 1.0], size=mean.shape))
        return np.asarray(mean + scale * self.rng.normal(size=mean.shape))

    def _directions(self) -> FloatArray:
        return _unit(self.rng.normal(size=(len(self.theta), self.arms, self.theta.shape[2])))


def _unit(vectors: FloatArray) -> FloatArray:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def draw_worlds(
    family: str, count: int, rng: np.random.Generator, *, features: int, objectives: int, arms: int, noise: float
) -> LinearWorlds:
    """Draw worlds with coefficient vectors of length 1 in random directions."""
    theta = _unit(rng.normal(size=(count, objectives, features)))
    return LinearWorlds(family, theta, arms, noise, rng)
