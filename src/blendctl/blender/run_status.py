"""Status of a running blender: counts, warnings, and the evidence of its guard and its monitor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blendctl.blender.core import Blender


def run_status(blender: Blender) -> dict[str, Any]:
    """Return as JSON data: counts, times, failures, warnings, the guard's and the monitor's evidence.

    `driven` are the stages of each controller, `act_seconds` quantiles of the time of the latest calls of `act`.
    `bound` says whether the feedback agrees with `loss_bound`: "consistent", "not guaranteed" or "contradicted".
    `feedback` compares the feedback of stages with its estimates, see `BoundCheck.feedback`.
    `loss_bound` and `correct` are about single stages of `stage_steps` control steps, not about episodes.
    """
    bound = blender.loss_bound
    return {
        "steps": blender.step,
        "stages": blender.counts.stages,
        "stage_steps": blender.hold,
        "episodes": blender.episode,
        "events": blender.counts.events,
        "switches": blender.counts.switches,
        "safe_actions": blender.counts.safe_actions,
        "learned": blender.counts.learned,
        "driven": {name: blender.counts.driven[arm] for arm, name in enumerate(blender.names)},
        "act_seconds": blender.act_times.quantiles(),
        "failures": dict(zip(blender.names, blender.drivers.bench.failures, strict=True)),
        "loss_bound": bound if math.isfinite(bound) else None,
        **blender.bound_check.status(),
        "feedback": blender.bound_check.feedback(blender.objectives.names),
        "warnings": list(blender.warnings.messages),
        "guard": None if blender.guard is None else blender.guard.status(),
        "certificate": None if blender.monitor is None else blender.monitor.status(),
    }


def stage_in_words(steps: int, seconds: float | None) -> str:
    """Return the time that `correct` and the bound cover: a stage of `steps` steps, of `seconds` each.

    >>> stage_in_words(1, 0.02), stage_in_words(5, 0.05), stage_in_words(5, None)
    ('the next 20 ms', 'the next 250 ms', 'the next 5 control steps')
    """
    if seconds is None:
        return "the next control step" if steps == 1 else f"the next {steps} control steps"
    length = steps * seconds
    return f"the next {1000 * length:.3g} ms" if length < 1.0 else f"the next {length:.3g} s"
