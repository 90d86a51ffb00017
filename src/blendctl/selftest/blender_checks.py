"""Checks of the blender: an action despite all failures, constant memory and time over a long run."""

from __future__ import annotations

import tempfile
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blendctl.blender import Blender
from blendctl.selftest.checks import Check
from blendctl.selftest.learner_checks import resident

FAILURES: tuple[Any, ...] = (
    ValueError("boom"), SystemExit(3), KeyboardInterrupt(), [np.nan, 0.0], [np.inf, 0.0], [1.0], None, "text", [[]],
)  # fmt: skip


class Unreliable:
    """A controller that fails at random: it raises, or returns an unusable action."""

    def __init__(self, name: str, rng: np.random.Generator) -> None:
        self.name, self.rng = name, rng

    def __call__(self, observation: NDArray[np.float64]) -> Any:
        if self.rng.random() < 0.1:
            answer = FAILURES[int(self.rng.integers(len(FAILURES)))]
            if isinstance(answer, BaseException):
                raise answer
            return answer
        return [0.5 * float(observation[0]), 0.1]


def failures(steps: int) -> dict[str, float]:
    """Drive with controllers that all fail at random; return the steps without a finite action."""
    rng = np.random.default_rng(0)
    team = [Unreliable(name, rng) for name in ("fast", "middle", "safe")]
    names = [controller.name for controller in team]
    blender = Blender(
        team, names, features="one-hot", fallback="safe", safe_action=np.zeros(2), action_shape=(2,), seed=0
    )
    bad = 0
    for _ in range(steps):
        try:
            action = blender.act(rng.uniform(-1, 1, size=2))
            bad += action.shape != (2,) or not bool(np.isfinite(action).all())
            blender.observe(reward=float(rng.normal()), cost=0.0)
        except Exception:
            bad += 1
    blender.close()
    return {"steps without an action": float(bad)}


def long_drive(steps: int) -> dict[str, float]:
    """Drive and record for many steps; return the growth of memory and the change of the time per step.

    In the last tenth a new blender runs beside the old one, in alternating steps: both see the same disturbances.
    """
    rng = np.random.default_rng(0)
    tenth = max(steps // 10, 1000)
    # Times of the old and the new one. Written now, so that the memory pages are not counted as growth.
    nanoseconds = np.ones((2, tenth), np.int64)
    observations = rng.normal(size=(1000, 4))
    started, warm_up = 0.0, max(tenth, 10_000)
    with (
        tempfile.TemporaryDirectory() as old_place,
        tempfile.TemporaryDirectory() as place,
        _recorded(old_place) as old,
        _recorded(place) as young,
    ):
        for step in range(-warm_up, steps):
            if step == 0:
                started = resident()
            for k, blender in enumerate((old,) if 0 <= step < steps - tenth else (old, young)):
                began = time.thread_time_ns()
                blender.act(observations[step % 1000])
                blender.observe(reward=float(observations[step % 1000, 0]), cost=0.0, done=step % 1000 == 999)
                nanoseconds[k, step % tenth] = time.thread_time_ns() - began
        grown = resident() - started
    last, first = np.percentile(nanoseconds, 99, axis=1)
    return {"growth, MB": grown, "p99 last / first tenth": last / first}


def _recorded(place: str) -> Blender:
    return Blender(
        [lambda o: [o[0], 0.1], lambda o: [o[1], 0.2]], ["fast", "safe"], features="one-hot", seed=0, record=place
    )


CHECKS = (
    Check(
        "blender, steps of failing controllers",
        {"steps without an action": 0.0},
        quick=20_000,
        full=200_000,
        measure=failures,
    ),
    Check(
        "blender, recorded steps of a long life",
        {"growth, MB": 10.0, "p99 last / first tenth": 1.5},
        quick=50_000,
        full=2_000_000,
        measure=long_drive,
        timed=True,
    ),
)
