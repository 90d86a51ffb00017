"""Warn the reader of a page about limits of its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from blendctl.arrays import FloatArray
from blendctl.blender.bound_check import bound_words
from blendctl.blender.record import SAFE_ACTION
from blendctl.reports.blend_run import BlendRun
from blendctl.reports.run_data import StageTable

LOW = 0.3  # share of the variance; a context that explains less predicts little
FEW = 5  # episodes; fewer have wide intervals


def explained_share(features: FloatArray, target: FloatArray) -> float | None:
    """Return the share of a target's variance (n,) that a linear model of features (n, d) explains.

    None if the target does not vary.

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


def explained_by_context(stages: StageTable) -> dict[str, float | None]:
    """Return for each objective the share that the context of the active controller explains in this run."""
    arms = stages.column("arm")
    driven = arms >= 0
    psi = stages.by_arm_and_feature("psi")  # (n, arms, d)
    chosen = np.take_along_axis(psi[driven], arms[driven][:, None, None].astype(np.int64), axis=1)[:, 0]
    columns = stages.header["objective_columns"]
    return {
        name: explained_share(chosen, stages.floats(f"feedback_{column}")[driven])
        for name, column in zip(stages.objectives, columns, strict=True)
    }


def low_context(share: float | None, what: str, *, subject: str = "The context") -> list[str]:
    """Warn if a context explains little of an objective."""
    if share is None or share >= LOW:
        return []
    return [f"{subject} explains {100 * max(share, 0.0):.0f}% of the {what}; do not expect the blend to help."]


def few_episodes(episodes: int, where: str = "") -> list[str]:
    """Warn if there are few episodes."""
    return [f"Only {episodes} episodes{where}: the confidence intervals are wide or missing."] if episodes < FEW else []


def too_long(rescaled: float) -> list[str]:
    """Warn about feature vectors that were rescaled."""
    if not rescaled:
        return []
    return [
        f"{rescaled:,.0f} feature vectors were longer than the learner assumes and were rescaled; "
        "the bound on the loss does not account for this."
    ]


def blend_warnings(run: BlendRun) -> list[str] | None:
    """List the warnings, the most important first."""
    summary, stages = run.summary, run.stages
    warnings = _of_stages(stages) if stages is not None and len(stages) > 1 else []
    if (words := summary.get("budget_warning")) is not None:
        warnings.append(f"{words[0].upper()}{words[1:]}.")
    failures = summary.get("failures") or {}
    warnings += [f"{name} failed {count} times and was benched." for name, count in failures.items() if count]
    for name, card in (run.folder.about.get("cards") or {}).items():
        rows: list[dict[str, Any]] = ((card or {}).get("context") or {}).get("r2") or [{}]
        subject = f"According to its card, the context of {name}"
        warnings += low_context(rows[0].get("cost_blending"), "cost", subject=subject)
    if (words := bound_words(summary)) is not None:
        warnings.append(words)
    warnings += too_long(summary.get("rescaled_features") or 0)
    if (summary.get("options") or {}).get("context") == "previous":
        warnings.append(
            "Decisions used the context of the previous step, as printed in the paper; the bound on the loss holds "
            "for the current context."
        )
    if summary.get("episodes"):
        warnings += few_episodes(summary["episodes"])
    return warnings or None


def _of_stages(stages: StageTable) -> list[str]:
    warnings = []
    for name, share in explained_by_context(stages).items():
        word = name.removeprefix("-")
        if share is None and name.startswith("-"):
            warnings.append(f"No {word} occurred in this run, so how well the context predicts it is unknown.")
        warnings += low_context(share, word)
    idle = int((stages.column("arm") == SAFE_ACTION).sum())
    if idle:
        warnings.append(f"In {idle} stages no controller was available; the declared safe action was used.")
    causes = stages.table["cause"].to_pylist()
    rescued = sum(cause in ("fallback", "no context", "no decision") for cause in causes)
    if rescued:
        warnings.append(
            f"In {rescued} stages the active controller failed or no decision was possible; another one took over."
        )
    return warnings
