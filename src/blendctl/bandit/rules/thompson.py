"""Sampled coefficients instead of optimistic indices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blendctl.arrays import BoolArray
from blendctl.bandit.rules.base import DecisionInput, nearly_greatest, numbers
from blendctl.errors import InputError


@dataclass(frozen=True)
class Thompson:
    """Minimise the maximal loss of one sample: theta ~ N(theta_hat, (scale * radius)^2 V^-1) per objective.

    Agrawal and Goyal (2013) with the paper's loss in place of the single reward. scale = 1 samples as
    widely as the confidence set; a smaller scale explores less. The loss bound of the learner holds for every rule; a
    regret bound does not exist.
    """

    scale: float = 1.0
    name = "thompson"

    def check(self, n_objectives: int) -> None:
        scale = numbers(self.scale)
        if scale is None or scale.ndim or not 0 <= scale <= 1e100:
            raise InputError(f'the rule "{self.name}" needs a scale >= 0 (and at most 1e100), actually: {self.scale!r}')

    def candidates(self, stage: DecisionInput) -> BoolArray:
        d, m = stage.whitened.shape[-1], stage.ucb.shape[-1]
        draws = stage.normals(m * d).reshape(*stage.radius.shape, m, d)
        shift = np.zeros(stage.ucb.shape)
        for j in range(d):  # one feature at a time: the same rounding in every form
            shift = shift + stage.whitened[..., :, None, j] * draws[..., None, :, j]
        sampled = stage.estimate + self.scale * stage.radius[..., None, None] * shift
        loss = (sampled.max(axis=-2, keepdims=True) - sampled).max(axis=-1)
        return nearly_greatest(-loss, stage.tolerance)
