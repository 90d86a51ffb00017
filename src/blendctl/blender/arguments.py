"""Check the arguments of a blender."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blendctl.bandit import BlendingBandit
from blendctl.bandit.rules import Fixed, Random, Rule
from blendctl.blender.bench import BenchRules
from blendctl.blender.blend_file import load_blend
from blendctl.blender.objectives import Objectives
from blendctl.controllers import Controller
from blendctl.errors import InputError, did_you_mean
from blendctl.features import BoundFeature

ONE_STEP = 'other features, for example features="predictions"'


def as_controller_list(controllers: Any) -> list[Controller | Callable[..., Any]]:
    """Return the controllers as a list, at least one."""
    if isinstance(controllers, str) or not isinstance(controllers, Sequence) or not controllers:
        raise InputError(
            f"controllers must be a list of controllers or functions, not empty, actually: {controllers!r}"
        )
    return list(controllers)


def count(name: str, value: int) -> int:
    """Return a whole number >= 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number >= 1, actually: {value!r}")
    return int(value)


def choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """Return one of the allowed words."""
    if value not in allowed:
        raise InputError(f"{name} must be one of: {', '.join(allowed)}; actually: {value!r}")
    return value


def check_names(controllers: Sequence[Controller], names: Sequence[str] | None) -> list[str]:
    """Return a unique name per controller; by default those of the controllers."""
    if names is None:
        declared = [str(getattr(controller, "name", f"controller {i}")) for i, controller in enumerate(controllers)]
        return [name if declared.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(declared)]
    words = [str(name) for name in names] if not isinstance(names, str) else [names]
    if len(words) != len(controllers) or len(set(words)) < len(words) or not all(words):
        raise InputError(f"names must be {len(controllers)} different words, one per controller, actually: {names!r}")
    return words


def check_fallback(fallback: str | Sequence[str] | None, names: Sequence[str]) -> tuple[int, ...]:
    """Return all arms in the fallback order: the named ones, then the others."""
    if not isinstance(fallback, str | Sequence | None):
        raise InputError(f"fallback must be the name of a controller, or several, actually: {fallback!r}")
    declared = [] if fallback is None else [fallback] if isinstance(fallback, str) else [str(name) for name in fallback]
    for name in declared:
        if name not in names:
            raise InputError(f'fallback names "{name}", which is not a controller; {did_you_mean(name, names)}')
    order = dict.fromkeys([*declared, *names])
    return tuple(names.index(name) for name in order)


def check_context(context: str, feature: BoundFeature) -> str:
    """Return "current" or "previous", which a feature that looks ahead does not allow."""
    choice("context", context, ("current", "previous"))
    if context == "previous" and feature.bootstraps:
        raise InputError(f'look-ahead decides from the current state; context="previous" needs {ONE_STEP}')
    return context


def bandit_options(feature: BoundFeature, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a new learner: the user's, then those of the feature and of a blender."""
    if feature.bootstraps and options.get("scales") is not None:
        raise InputError(f"look-ahead weighs return against cost by its dial; scales need {ONE_STEP}")
    defaults: dict[str, Any] = {"on_large_feature": "rescale", "rule": feature.rule}
    if options.get("scales") is None:  # the prior is in the units of psi
        defaults |= {} if feature.prior is None else {"prior": feature.prior.tolist()}
        defaults |= {} if feature.theta_bound is None else {"theta_bound": feature.theta_bound}
    return defaults | dict(options)


def make_bandit(
    declared: BlendingBandit | str | Path | None,
    feature: BoundFeature,
    objectives: Objectives,
    *,
    names: Sequence[str],
    seed: int | None,
    options: dict[str, Any],
) -> BlendingBandit:
    """Return a new learner, the declared one, or one from a file; check that it fits."""
    size = feature.size
    if declared is None:
        return BlendingBandit(size, len(objectives), seed=seed, **bandit_options(feature, options))
    if options:
        raise InputError(f"a bandit has its options already; leave out {', '.join(options)}, or bandit=...")
    if not isinstance(declared, BlendingBandit | str | Path):
        raise InputError(f"bandit must be a BlendingBandit or the file of one, actually: {declared!r}")
    bandit = load_blend(declared, feature=feature, names=names, objectives=objectives.names)
    if (bandit.n_features, bandit.n_objectives) != (size, len(objectives)):
        raise InputError(
            f"the bandit has {bandit.n_features} features and {bandit.n_objectives} objectives, this blender needs "
            f"{size} and {len(objectives)}; use the features of its run: features=..."
        )
    return bandit


def check_frozen(frozen: bool, feature: BoundFeature, *, rule: Rule, learned: bool) -> None:
    """Raise InputError if a frozen blender has nothing to decide with: no learned bandit and no prior."""
    if frozen and not learned and feature.prior is None and not isinstance(rule, Fixed | Random):
        raise InputError(
            "frozen=True decides without learning, but this learner has learned nothing yet; pass the learner or the "
            "file of an earlier blend: bandit=..."
        )


def check_bench(bench: BenchRules | None) -> BenchRules:
    """Return the rules of the bench, or the default ones."""
    if bench is not None and not isinstance(bench, BenchRules):
        raise InputError(f"bench must be BenchRules(first=..., growth=..., longest=...), actually: {bench!r}")
    return bench or BenchRules()


def check_shape(shape: Any) -> tuple[int, ...] | None:
    """Return the shape of an action as a tuple."""
    if shape is None:
        return None
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 0 for n in sizes):
        raise InputError(f"action_shape must be whole numbers such as (2,), actually: {shape!r}")
    return tuple(int(n) for n in sizes)


def check_safe_action(action: ArrayLike | None) -> NDArray[Any] | None:
    """Return the safe action as an array of finite numbers."""
    if action is None:
        return None
    array = np.array(action)
    if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise InputError(f"safe_action must be finite numbers, actually: {action!r}")
    return array.astype(np.float64) if array.dtype.kind == "f" or array.ndim else array
