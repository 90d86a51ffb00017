"""Find what a reader of a report should be warned of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.blender.record import SAFE_ACTION
from blendctl.reports.run_data import StageTable

__all__ = ["cautions_of", "explained_share", "explained_by_context"]

LOW = 0.3  # of the variance; below it the context says little
FEW = 5  # episodes; fewer give intervals that say little

FloatArray = NDArray[np.float64]


def explained_share(features: FloatArray, target: FloatArray) -> float | None:
    """Tell which share of a target's variance (n,) a linear model of features (n, d) explains; None without variance.

    >>> psi = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> round(explained_share(psi, psi @ [1.0, -2.0]), 6)
    1.0
    >>> explained_share(psi, np.zeros(4)) is None
    True
    """
    known = np.isfinite(features).all(axis=1) & np.isfinite(target)
    features, target = features[known], target[known]
    spread = float(((target - target.mean()) ** 2).sum()) if len(target) else 0.0
    if spread <= 1e-12:
        return None
    theta = np.linalg.lstsq(features, target, rcond=None)[0]
    return max(0.0, 1.0 - float(((target - features @ theta) ** 2).sum()) / spread)


def explained_by_context(drive: StageTable) -> dict[str, float | None]:
    """Give for each objective how much of it the context of whoever drove explains, in this drive."""
    arms = drive.column("arm")
    driven = arms >= 0
    psi = drive.by_arm_and_feature("psi")  # (n, arms, d)
    mine = np.take_along_axis(psi[driven], arms[driven][:, None, None].astype(np.int64), axis=1)[:, 0]
    columns = drive.header["objective_columns"]
    return {
        name: explained_share(mine, drive.floats(f"feedback_{column}")[driven])
        for name, column in zip(drive.objectives, columns, strict=True)
    }


def cautions_of(told: dict[str, Any], drive: StageTable | None, cards: dict[str, Any]) -> list[str]:
    """List the warnings, the weightiest first."""
    found: list[str] = []
    if drive is not None and len(drive) > 1:
        found += _of_context(drive)
        found += _of_drivers(drive)
    found += [f"{name} failed {count} times and was benched." for name, count in _failures(told)]
    found += _of_cards(cards)
    rescaled = told.get("rescaled_features") or 0
    if rescaled:
        found.append(
            f"{rescaled} feature vectors were longer than the learner’s bound and were shortened to it; "
            "the bound on the loss assumes that they fit."
        )
    options = told.get("options") or {}
    if options.get("context") == "previous":
        found.append(
            "Decisions were made from the context of the step before, as the paper prints; the bound on "
            "the loss is meant for the current one."
        )
    if 0 < told.get("episodes", 0) < FEW:
        found.append(f"Only {told['episodes']} episodes: the intervals are wide, or missing.")
    return found


def _of_context(drive: StageTable) -> list[str]:
    found = []
    for name, share in explained_by_context(drive).items():
        word = name.removeprefix("-")
        if share is None:
            if name.startswith("-"):
                found.append(f"No {word} came in this drive: nothing can be said about how well it is foreseen.")
        elif share < LOW:
            found.append(f"The context explains {100 * share:.0f}% of the {word}; do not expect the blend to help.")
    return found


def _of_drivers(drive: StageTable) -> list[str]:
    found = []
    idle = int((drive.column("arm") == SAFE_ACTION).sum())
    if idle:
        found.append(f"In {idle} stages no controller was fit to drive; the declared safe action was taken.")
    rescued = sum(cause in ("fallback", "no context", "no decision") for cause in drive.table["cause"].to_pylist())
    if rescued:
        found.append(f"In {rescued} stages the driver failed or nothing could be decided, and another took over.")
    return found


def _failures(told: dict[str, Any]) -> list[tuple[str, int]]:
    return [(name, count) for name, count in (told.get("failures") or {}).items() if count]


def _of_cards(cards: dict[str, Any]) -> list[str]:
    found = []
    for name, card in cards.items():
        rows = ((card or {}).get("context") or {}).get("r2") or []
        if rows and rows[0].get("cost_blending", 1.0) < LOW:
            share = max(0.0, 100 * rows[0]["cost_blending"])
            found.append(
                f"By its card, the context of {name} explains {share:.0f}% of the cost; "
                "do not expect the blend to help."
            )
    return found
