"""What an export is made of: the parts of a blend as data, and golden vectors recorded from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit.learner import LearnerArrays
from blendctl.bandit.options import Options
from blendctl.controllers.base import Controller
from blendctl.features.base import BoundFeature, Feature

FloatArray = NDArray[np.float64]
WordArray = NDArray[np.uint64]


@dataclass(frozen=True)
class Golden:
    """A recorded drive that the exported file must reproduce, T control steps."""

    observations: FloatArray  # (T, observation_size)
    feedback: FloatArray  # (T, objectives) as maximised, unscaled
    arms: NDArray[np.int64]  # (T,)
    actions: FloatArray  # (T, action_size)


@dataclass(frozen=True, kw_only=True)
class DriftTest:
    """Constants of the test that compares feedback with its estimates, see `BoundCheck`."""

    false_alarm: float  # probability of a false alarm, ever
    rate: float  # probability of a surprise per stage, at most
    spread: float  # what noise adds to the allowed error
    stakes: Sequence[float]
    epoch: int  # stages


@dataclass(frozen=True, kw_only=True)
class BlendSpec:
    """The parts of a blend that decide its actions, and where its learner stopped."""

    names: Sequence[str]
    controllers: Sequence[Controller]
    feature: Feature  # as declared
    bound: BoundFeature  # bound to the controllers, with what it has learned
    objectives: Sequence[str]
    options: Options  # of the learner
    learner: LearnerArrays
    hold: int
    dwell: int
    frozen: bool
    previous: bool  # decide with the context of the decision before
    fallback: Sequence[int]  # all arms, in the fallback order
    bench: tuple[int, int, int]  # first, growth, longest
    safe_action: FloatArray | None
    guard: Mapping[str, Any] | None  # false_alarm, and outcomes (episodes, objectives) by controller
    slew_limits: FloatArray | None  # (action_size,) change per control step after a switch
    fade_steps: int  # control steps of a cross-fade after a switch, 0 without one
    observation_size: int
    action_size: int
    noise: WordArray | None  # (arms, 4) generators of sampled actions; None: means
    first: WordArray  # (4,) generator of the first arm, if `previous`
    drift: DriftTest
    golden: Golden
    interface: dict[str, Any] = field(default_factory=dict)  # names, units, bounds and the period, for the contract
