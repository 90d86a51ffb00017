"""The methods that a blend must beat: each controller, chance, a threshold on one entry of the observation, sharing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blendctl.fitting.outcomes import Outcomes
from blendctl.rollout import StepInput, Switch

FloatArray = NDArray[np.float64]
ArmArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the observations, where thresholds are tried
SHARES = (0.25, 0.5, 0.75)
FINALISTS = 5  # thresholds that are run on all validation episodes
FIRST_EPISODES = 2  # of every threshold


@dataclass(frozen=True)
class Threshold(Switch):
    """Let controller `below` drive while an entry of the observation is below a value, else controller `above`."""

    entry: int
    value: float
    below: int
    above: int

    def choose(self, frame: StepInput) -> ArmArray:
        return np.where(frame.observations[:, self.entry] < self.value, self.below, self.above)

    def words(self, names: list[str]) -> str:
        """Describe the switch."""
        return (
            f"{names[self.below]} while entry {self.entry} of the observation is below {self.value:.4g}, else "
            f"{names[self.above]}"
        )


class Coin(Switch):
    """Draw the controller of every world, at every step or for a whole episode, each equally likely."""

    def __init__(self, arms: int, *, per_step: bool, seed: int) -> None:
        self.arms, self.per_step = arms, per_step
        self.rng = np.random.default_rng(seed)
        self._arm = np.zeros(0, np.intp)

    def choose(self, frame: StepInput) -> ArmArray:
        begins = (frame.episode_step == 0) | self.per_step
        drawn = self.rng.integers(self.arms, size=len(begins))
        self._arm = np.where(begins, drawn, self._arm if len(self._arm) == len(begins) else drawn)
        return self._arm


@dataclass(frozen=True)
class Share(Switch):
    """Apply a weighted sum of the actions: `share` of the first controller, the rest equally of the others."""

    share: float

    def choose(self, frame: StepInput) -> FloatArray:
        arms, worlds = frame.proposals.shape[:2]
        weights = np.full((worlds, arms), (1.0 - self.share) / (arms - 1))
        weights[:, 0] = self.share
        return weights


def list_thresholds(observations: FloatArray, arms: int, *, most: int, seed: int) -> list[Threshold]:
    """Return thresholds on every entry of observations (n, size) that varies; `most` of them, drawn at random."""
    values = np.quantile(observations, QUANTILES, axis=0)  # (quantiles, size)
    found = [
        Threshold(entry, float(value), *pair)
        for entry in np.flatnonzero(np.ptp(observations, axis=0) > 0).tolist()
        for value in dict.fromkeys(values[:, entry].tolist())
        for pair in itertools.permutations(range(arms), 2)
    ]
    if len(found) <= most:
        return found
    kept = np.random.default_rng(seed).choice(len(found), size=most, replace=False)
    return [found[index] for index in np.sort(kept)]


def best_threshold(
    thresholds: list[Threshold],
    drive: Callable[[Switch, int], Outcomes],
    utility: Callable[[FloatArray], FloatArray],
    *,
    episodes: int,
) -> Threshold:
    """Return the threshold with the highest mean utility on validation episodes; drive(switch, episodes) runs them."""

    def mean(threshold: Threshold, count: int) -> float:
        return float(utility(drive(threshold, count).points).mean())

    ranked = sorted(thresholds, key=lambda one: -mean(one, min(FIRST_EPISODES, episodes)))
    return max(ranked[:FINALISTS], key=lambda one: mean(one, episodes))
