"""A blend on disk: the learner's file, with the state of its features and the names of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blendctl.bandit import BlendingBandit, persistence
from blendctl.errors import FileFormatError, InputError
from blendctl.features import BoundFeature
from blendctl.file_reading import reading


def load_blend(
    source: BlendingBandit | str | Path,
    *,
    feature: BoundFeature,
    names: Sequence[str],
    objectives: Sequence[str],
) -> BlendingBandit:
    """Return the learner and restore the state of the features; raise InputError if they belong to another blend.

    The learner's theta weighs the features. If the features learn too, theta is useless without their state.
    """
    if isinstance(source, str | Path):
        bandit = BlendingBandit.load(source)
        beside, about = persistence.load_beside(source)
    else:
        bandit, beside, about = source, {}, {}
    saved = about.get("names", names)
    if not all(isinstance(word, str) for key in ("names", "objectives") for word in about.get(key, ())):
        raise FileFormatError(f"{source} is damaged: its names must be texts")
    # controllers may be renamed, but not reordered
    if set(saved) == set(names):
        _expect_same("controllers", saved, names, source)
    _expect_same("objectives", about.get("objectives", objectives), objectives, source)
    if feature.learns and bandit.stage:
        if not beside:
            raise InputError(
                "these features learn while driving, and the learner comes without their state: save the blend with "
                "blender.save(file), and pass that file as bandit=..."
            )
        with reading(str(source), "a blend with these features"):
            feature.restore(beside)
    return bandit


def _expect_same(what: str, there: Sequence[str], now: Sequence[str], source: Any) -> None:
    if list(there) != list(now):
        raise InputError(
            f"{source} was saved with the {what} {', '.join(there)}, in this order, actually: {', '.join(now)}"
        )
