"""The learner's options: each with its default, its meaning, and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit.layout import DETERMINANT, PAPER
from blendctl.bandit.rules import MaximalLoss, Rule, make_rule
from blendctl.errors import InputError, did_you_mean

__all__ = ["Options", "OptionNames", "options_from"]

RADII = ("determinant", "paper")
LARGE = ("error", "rescale")


class OptionNames(TypedDict, total=False):
    """The options by name, for type checkers; `Options` has their defaults and meanings."""

    regularization: float
    noise: float
    theta_bound: float
    feature_bound: float
    delta: float
    radius: Literal["determinant", "paper"]
    union_bound: bool
    rule: str | Rule
    scales: Sequence[float] | None
    discount: float
    on_large_feature: Literal["error", "rescale"]
    tie_tolerance: float


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the learner assumes of the world, and how it decides."""

    n_features: int  # d, the length of psi
    n_objectives: int = 2  # m, all maximised: a cost comes in negated
    regularization: float = 1.0  # lambda >= max(1, L^2), the weight of the prior
    noise: float = 0.1  # sigma >= 0: the feedback's noise is sigma-subgaussian (scaled units)
    theta_bound: float = 1.5  # S > 0: no objective's coefficient vector is longer (scaled units)
    feature_bound: float = 1.0  # L > 0: no feature vector is longer
    delta: float = 0.05  # in (0, 1): the probability that a bound fails
    radius: Literal["determinant", "paper"] = "determinant"  # the tight radius, or the printed Eq. (8)
    union_bound: bool = True  # delta holds for all objectives at once (delta / m each), or for each alone
    rule: str | Rule = "maximal-loss"  # a name of blendctl.bandit.rules, or an object
    scales: Sequence[float] | None = None  # feedback is divided by these: what counts as one unit (m)
    discount: float = 1.0  # in (0, 1]: forgetting, for worlds that change; 1 never forgets
    on_large_feature: Literal["error", "rescale"] = "error"  # what to do with a feature longer than L
    tie_tolerance: float = 1e-9  # indices closer than this, relative to the largest, are equal

    def __post_init__(self) -> None:
        for name in ("n_features", "n_objectives"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise InputError(f"{name} must be a whole number >= 1, actually: {value!r}")
        self._number("noise", lambda v: v >= 0, ">= 0")
        self._number("theta_bound", lambda v: v > 0, "> 0")
        self._number("feature_bound", lambda v: 0 < v <= 1e100, "> 0 (and at most 1e100)")
        self._number("delta", lambda v: 0 < v < 1, "in (0, 1)")
        self._number("discount", lambda v: 0 < v <= 1, "in (0, 1]")
        self._number("tie_tolerance", lambda v: 0 <= v < 1, "in [0, 1)")
        least = max(1.0, self.feature_bound**2)
        self._number(
            "regularization",
            lambda v: v >= least,
            f">= max(1, feature_bound^2) = {least:g}, which the bounds need",
        )
        self._choice("radius", RADII)
        self._choice("on_large_feature", LARGE)
        for name in ("union_bound",):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"{name} must be True or False, actually: {getattr(self, name)!r}")
        if self.scales is not None:
            scales = _numbers(self.scales)
            if scales is None or scales.shape != (self.n_objectives,) or not (scales > 0).all():
                raise InputError(
                    f"scales must be {self.n_objectives} finite numbers > 0 (one per objective), "
                    f"actually: {self.scales!r}"
                )
        check = getattr(self.made_rule, "check", None)
        if check is not None:
            check(self.n_objectives)

    @property
    def made_rule(self) -> Rule:
        """The rule as an object."""
        return make_rule(self.rule)

    def delta_each(self) -> float:
        """Give the failure probability of one objective's confidence set."""
        return self.delta / self.n_objectives if self.union_bound else self.delta

    def packed(self) -> NDArray[np.float64]:
        """Give what the kernels need, in the order of layout.py."""
        rule = self.made_rule
        scales = np.ones(self.n_objectives) if self.scales is None else np.asarray(self.scales, dtype=float)
        head = [
            self.regularization,
            self.noise,
            self.theta_bound,
            self.feature_bound,
            self.delta_each(),
            PAPER if self.radius == "paper" else DETERMINANT,
            self.discount,
            self.tie_tolerance,
            float(self.on_large_feature == "rescale"),
            float(isinstance(rule, MaximalLoss) and rule.printed),
        ]
        return np.concatenate([head, scales])

    def _number(self, name: str, allowed: Any, words: str) -> None:
        value = getattr(self, name)
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not allowed(value):
            raise InputError(f"{name} must be {words}, actually: {value!r}")

    def _choice(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if value not in allowed:
            raise InputError(f"{name} must be one of: {', '.join(allowed)}; actually: {value!r}")


def options_from(n_features: int, n_objectives: int, given: dict[str, Any]) -> Options:
    """Make the options, naming a misspelt one."""
    names = [field.name for field in fields(Options)]
    for name in given:
        if name not in names:
            raise InputError(f'there is no option "{name}"; {did_you_mean(name, [*names, "seed"])}')
    return Options(n_features=n_features, n_objectives=n_objectives, **given)


def _numbers(values: Any) -> NDArray[np.float64] | None:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None
