"""The options of the learner: defaults, meanings, allowed values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from blendctl.bandit.memory_layout import DETERMINANT, PAPER
from blendctl.bandit.rules import CheckedRule, MaximalLoss, Rule, make_rule
from blendctl.bandit.rules.base import numbers, whole
from blendctl.errors import InputError, did_you_mean

LARGEST = 1e100  # limit of noise, bounds and scales: results stay far from overflow
LOWEST_PRIOR = 1e-100  # limit of discount^(d-1), to which the prior fades between two top-ups


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
    prior: Sequence[Sequence[float]] | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """Assumptions of the learner about the world, and how it decides."""

    n_features: int  # d, the length of psi
    n_objectives: int = 2  # m, all maximised: a cost is negated
    regularization: float = 1.0  # lambda >= max(1, L^2), the weight of the prior
    noise: float = 0.1  # sigma >= 0: the feedback's noise is sigma-subgaussian (scaled units)
    theta_bound: float = 1.5  # S > 0: no objective's coefficient vector is longer (scaled units)
    feature_bound: float = 1.0  # L > 0: no feature vector is longer (a millionth more passes as rounding)
    delta: float = 0.05  # in (0, 1): the probability that a bound fails
    radius: Literal["determinant", "paper"] = "determinant"  # the tight radius, or the printed Eq. (8)
    union_bound: bool = True  # delta holds for all objectives at once (delta / m each), or for each alone
    rule: str | Rule = "maximal-loss"  # a name of blendctl.bandit.rules, or an object
    scales: Sequence[float] | None = None  # feedback is divided by these: what counts as one unit (m)
    discount: float = 1.0  # in (0, 1]: forgetting, for worlds that change; 1 never forgets
    on_large_feature: Literal["error", "rescale"] = "error"  # what to do with a feature longer than L
    tie_tolerance: float = 1e-9  # indices closer than this, relative to the largest, are equal
    # theta_0 (d, m) in scaled units: the learner starts from it, and theta_bound is about the distance from it; None: 0
    prior: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        for name in ("n_features", "n_objectives"):
            value = getattr(self, name)
            if not whole(value) or value < 1:
                raise InputError(f"{name} must be a whole number >= 1, actually: {value!r}")
            self._keep(name, int(value))
        self._number("noise", lambda v: 0 <= v <= LARGEST, f">= 0 (and at most {LARGEST:g})")
        self._number("theta_bound", lambda v: 0 < v <= LARGEST, f"> 0 (and at most {LARGEST:g})")
        self._number(
            "feature_bound", lambda v: 1 / LARGEST <= v <= LARGEST, f"> 0 (from {1 / LARGEST:g} to {LARGEST:g})"
        )
        self._number("delta", lambda v: 1 / LARGEST <= v < 1, f"in (0, 1) (and at least {1 / LARGEST:g})")
        self._number("discount", lambda v: 0 < v <= 1, "in (0, 1]")
        self._number("tie_tolerance", lambda v: 0 <= v < 1, "in [0, 1)")
        least = max(1.0, self.feature_bound**2)
        self._number(
            "regularization",
            lambda v: least <= v <= LARGEST**2,
            f">= max(1, feature_bound^2) = {least:g}, which the bounds need (and at most {LARGEST**2:g})",
        )
        slowest = LOWEST_PRIOR ** (1 / max(1, self.n_features - 1))
        if self.discount < slowest:
            raise InputError(
                f"discount must be at least {slowest:.4g} with {self.n_features} features (the prior is topped up "
                f"one feature per update, and must not fade away in between), actually: {self.discount:g}"
            )
        self._choice("radius", ("determinant", "paper"))
        self._choice("on_large_feature", ("error", "rescale"))
        if not isinstance(self.union_bound, (bool, np.bool_)):
            raise InputError(f"union_bound must be True or False, actually: {self.union_bound!r}")
        self._keep("union_bound", bool(self.union_bound))
        if self.scales is not None:
            scales = numbers(self.scales)
            if (
                scales is None
                or scales.shape != (self.n_objectives,)
                or not (1 / LARGEST <= scales.min() <= scales.max() <= LARGEST)
            ):
                raise InputError(
                    f"scales must be {self.n_objectives} numbers > 0 (one per objective, from {1 / LARGEST:g} to "
                    f"{LARGEST:g}), actually: {self.scales!r}"
                )
            self._keep("scales", tuple(scales.tolist()))
        if self.prior is not None:
            self._keep("prior", self._checked_prior())
        rule = self.made_rule
        if isinstance(rule, CheckedRule):
            rule.check(self.n_objectives)

    def _checked_prior(self) -> tuple[tuple[float, ...], ...]:
        shape = (self.n_features, self.n_objectives)
        prior = numbers(self.prior)
        if prior is None or prior.shape != shape or not np.abs(prior).max() <= LARGEST:
            raise InputError(f"prior must be finite numbers of shape {shape}, actually: {self.prior!r}")
        if self.discount < 1:
            raise InputError("a learner that forgets (discount < 1) returns to 0; it cannot have a prior")
        return tuple(tuple(row) for row in prior.tolist())

    @property
    def made_rule(self) -> Rule:
        """The rule as an object."""
        return make_rule(self.rule)

    def delta_each(self) -> float:
        """Return the failure probability of one objective's confidence set."""
        return self.delta / self.n_objectives if self.union_bound else self.delta

    def packed(self) -> NDArray[np.float64]:
        """Return the options as the kernels need them, see memory_layout.py."""
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
            self.n_features * math.log(self.regularization),
        ]
        return np.concatenate([head, scales])

    def _number(self, name: str, allowed: Any, words: str) -> None:
        value = getattr(self, name)
        number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
        try:
            plain = float(value) if number else math.nan  # NaN fails every range check
        except OverflowError:  # a whole number of more than 308 digits
            plain = math.inf
        if not allowed(plain):
            raise InputError(f"{name} must be {words}, actually: {value!r}")
        self._keep(name, plain)

    def _choice(self, name: str, allowed: tuple[str, ...]) -> None:
        value = getattr(self, name)
        if not isinstance(value, str) or value not in allowed:
            raise InputError(f"{name} must be one of: {', '.join(allowed)}; actually: {value!r}")
        self._keep(name, str(value))

    def _keep(self, name: str, value: object) -> None:
        """Replace an option by its plain Python value, so that results and files have one type."""
        object.__setattr__(self, name, value)


def options_from(n_features: int, n_objectives: int, named: dict[str, Any]) -> Options:
    """Make the options; raise InputError for an unknown name."""
    names = [field.name for field in fields(Options)]
    for name in named:
        if name not in names:
            raise InputError(f'there is no option "{name}"; {did_you_mean(name, [*names, "seed"])}')
    return Options(n_features=n_features, n_objectives=n_objectives, **named)
