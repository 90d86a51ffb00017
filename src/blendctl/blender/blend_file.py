"""A blend on disk: the learner's file, and beside it what the features have learned, and who it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blendctl.bandit import BlendingBandit, persistence
from blendctl.errors import InputError
from blendctl.features import BoundFeature
from blendctl.features.base import learned, restore_learned

__all__ = ["save_blend", "load_blend"]


def save_blend(
    path: str | Path,
    *,
    bandit: BlendingBandit,
    feature: BoundFeature,
    names: Sequence[str],
    objectives: Sequence[str],
) -> None:
    """Write all that a blend has learned."""
    about = {"names": list(names), "objectives": list(objectives)}
    persistence.save(bandit._core, path, beside=learned(feature), about=about)


def load_blend(
    given: BlendingBandit | str | Path,
    *,
    feature: BoundFeature,
    names: Sequence[str],
    objectives: Sequence[str],
) -> BlendingBandit:
    """Give the learner, and the features what they had learned; refuse those of another blend.

    A learner's theta weighs what its features mean. Where the features learn too, theta alone is worth nothing.
    """
    if isinstance(given, str | Path):
        bandit = BlendingBandit.load(given)
        beside, about = persistence.load_beside(given)
    else:
        bandit, beside, about = given, {}, {}
    saved = about.get("names", names)
    if set(saved) == set(names):  # other names may be new ones for the same controllers, another order may not
        _expect_same("controllers", saved, names, given)
    _expect_same("objectives", about.get("objectives", objectives), objectives, given)
    if hasattr(feature, "learn") and bandit.stage:
        if not beside:
            raise InputError(
                "these features learn while driving, and the learner comes without what they had learned: save the "
                "blend with blender.save(file), and give that file as bandit=..."
            )
        restore_learned(feature, beside)
    return bandit


def _expect_same(what: str, there: Sequence[str], now: Sequence[str], given: Any) -> None:
    if list(there) != list(now):
        raise InputError(
            f"{given} was saved with the {what} {', '.join(there)}, in this order, actually: {', '.join(now)}"
        )
