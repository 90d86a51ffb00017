"""A world with known expected feedback: linear, with Gaussian noise (the paper's Assumption 1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendctl import pareto
from blendctl.arrays import FloatArray
from blendctl.bandit.batch import BanditBatch
from blendctl.errors import InputError


@dataclass(frozen=True)
class LinearWorld:
    """Feedback y = theta psi + noise, features drawn at every stage inside the ball of radius L."""

    theta: FloatArray  # (objectives, features), each row no longer than S
    arms: int = 2
    noise: float = 0.1  # sigma of the Gaussian noise
    feature_bound: float = 1.0  # L

    def __post_init__(self) -> None:
        if self.theta.ndim != 2:
            raise InputError(f"theta must have shape (objectives, features), actually: {self.theta.shape}")
        if self.arms < 1:
            raise InputError(f"arms must be >= 1, actually: {self.arms}")

    @classmethod
    def draw(
        cls,
        rng: np.random.Generator,
        *,
        features: int,
        objectives: int,
        arms: int,
        noise: float = 0.1,
    ) -> LinearWorld:
        """Draw a world: coefficient vectors of length 1 in uniformly random directions."""
        theta = rng.normal(size=(objectives, features))
        theta *= 1.0 / np.linalg.norm(theta, axis=1, keepdims=True)
        return cls(theta, arms=arms, noise=noise)

    def features(self, rng: np.random.Generator, worlds: int) -> FloatArray:
        """Draw psi of every arm: (worlds, arms, features), uniform directions, lengths in [L/2, L]."""
        psi = rng.normal(size=(worlds, self.arms, self.theta.shape[1]))
        length = self.feature_bound * rng.uniform(0.5, 1.0, size=(worlds, self.arms, 1))
        return np.asarray(psi * length / np.linalg.norm(psi, axis=-1, keepdims=True))

    def feedback(self, rng: np.random.Generator, mean: FloatArray) -> FloatArray:
        """Add noise to the expected feedback (..., objectives)."""
        return np.asarray(mean + self.noise * rng.normal(size=mean.shape))


@dataclass(frozen=True)
class StageRecord:
    """One stage of B learners."""

    stage: int
    arm: NDArray[np.intp]  # (B,)
    gap: FloatArray  # (B,) true Pareto suboptimality gap of the arm pulled
    loss: FloatArray  # (B,) true maximal loss of the arm pulled
    bound: FloatArray  # (B,) the learner's bound of the loss


def play(world: LinearWorld, batch: BanditBatch, *, stages: int, rng: np.random.Generator) -> Iterator[StageRecord]:
    """Run every learner of the batch on a separate draw of the world; yield a record per stage."""
    rows = np.arange(len(batch))
    for stage in range(stages):
        psi = world.features(rng, len(batch))
        decisions = batch.decide(psi)
        arm = decisions.arm
        bound = decisions.loss_bounds
        mean = psi @ world.theta.T  # (B, arms, objectives)
        batch.update(psi[rows, arm], world.feedback(rng, mean[rows, arm]))
        yield StageRecord(
            stage=stage,
            arm=arm,
            gap=pareto.suboptimality_gap(mean)[rows, arm],
            loss=pareto.maximal_loss(mean)[rows, arm],
            bound=bound[rows, arm],
        )
