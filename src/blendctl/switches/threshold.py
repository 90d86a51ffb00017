"""Switch at a threshold on one entry of the observation, as an engineer would by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from blendctl.arrays import ArmArray, FloatArray
from blendctl.features.flattening import Flattening
from blendctl.switches.base import RolloutContext, StepInput, Switch

QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the observations, where thresholds are tried
FINALISTS = 5  # thresholds that are run on all episodes
FIRST_EPISODES = 2  # of every threshold


@dataclass(frozen=True)
class Threshold:
    """Let controller `below` drive while an entry of the observation is below a value, else controller `above`."""

    entry: int  # of the observation as a vector
    value: float
    below: int
    above: int

    def words(self, names: Sequence[str]) -> str:
        """Describe it."""
        return (
            f"{names[self.below]} while entry {self.entry} of the observation is below {self.value:.4g}, else "
            f"{names[self.above]}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)


class ThresholdSwitch(Switch):
    """Switch at a threshold; observations that are not vectors are flattened."""

    def __init__(self, context: RolloutContext, threshold: Threshold) -> None:
        self.threshold = threshold
        self.flat = flatten_rows(context.worlds)

    def choose(self, frame: StepInput) -> ArmArray:
        one = self.threshold
        return np.where(self.flat(frame.observations)[:, one.entry] < one.value, one.below, one.above)


def flatten_rows(worlds: Any) -> Callable[[Any], FloatArray]:
    """Return a function from the observations of B worlds to vectors (B, size)."""
    flattening = Flattening.of(worlds.single_observation_space)
    if flattening.plain:
        return lambda observations: np.asarray(observations, np.float64)
    return lambda observations: np.stack([flattening(row) for row in observations])


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
    thresholds: Sequence[Threshold],
    utilities: Callable[[Sequence[Threshold], int], Sequence[float]],
    *,
    episodes: int,
) -> Threshold:
    """Return the threshold with the highest mean utility; utilities(thresholds, episodes) drives them.

    All of them drive a few episodes, the best ones all episodes.
    """
    first = utilities(thresholds, min(FIRST_EPISODES, episodes))
    ranked: list[Threshold] = [
        thresholds[index] for index in np.argsort(-np.asarray(first), kind="stable")[:FINALISTS].tolist()
    ]
    return ranked[int(np.argmax(utilities(ranked, episodes)))]
