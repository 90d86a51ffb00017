"""The plan of a fit: steps, gradient steps and episodes of its parts."""

from __future__ import annotations

from dataclasses import dataclass

from blendctl.errors import InputError

MINUTES = 10.0  # default
# Every stage has its own range of seeds: no layout occurs twice. Look-ahead training uses seeds below 1e8.
MEASURING, VALIDATION, TEST = 100_000_000, 200_000_000, 300_000_000
SEED_ROOM = 10_000  # episodes of a stage
SEEDS = 1_000  # number of different fits

DATA_SHARE = 0.3  # of the time of a fit by --minutes; the networks get the same share, episodes the rest
FEWEST_STEPS, MOST_STEPS = 1_000, 200_000
FEW = 10  # episodes; a smaller budget shortens the stages
UPDATE_SECONDS = 0.01  # estimated time of a gradient step


@dataclass(frozen=True)
class FitPlan:
    """Budget of the parts of a fit."""

    steps: int  # control steps of data for the networks, for all holds
    updates: int  # gradient steps of the collection, and as many of the final networks, for each hold
    holds: tuple[int, ...]  # control steps per decision, to choose from
    validation: int  # episodes
    test: int  # episodes
    thresholds: int  # most settings of the swept threshold
    worlds: int  # worlds in lock-step
    branching: bool = False  # all controllers drive from every state of the data


def first_seed(stage: int, seed: int) -> int:
    """Return the first seed of a stage's episodes."""
    return stage + SEED_ROOM * (seed % SEEDS)


def make_plan(
    *,
    length: float,
    step_seconds: float,
    worlds: int,
    steps: int | None,
    minutes: float | None,
    hold: int | None,
    episodes: int | None,
    workers: int = 1,
) -> FitPlan:
    """Divide a budget: `steps` of data, or `minutes` of `workers` in total; length: control steps of an episode.

    >>> plan = make_plan(length=200, step_seconds=1e-4, worlds=6, steps=2000, minutes=None, hold=None,
    ...                  episodes=None)
    >>> plan.holds, plan.updates, plan.validation, plan.test
    ((2, 8), 200, 5, 12)
    """
    if steps is not None and minutes is not None:
        raise InputError("steps and minutes set the same budget; use one of them")
    holds = (hold,) if hold is not None else _holds(length)
    if steps is None:
        seconds = 60.0 * (MINUTES if minutes is None else minutes)
        if not seconds > 0:
            raise InputError(f"minutes must be above 0, actually: {minutes!r}")
        learning = DATA_SHARE * seconds * min(workers, len(holds))  # the holds are learned at the same time
        steps = int(min(max(learning / step_seconds, FEWEST_STEPS), MOST_STEPS))
        most_updates = int(learning / UPDATE_SECONDS / (2 * len(holds)))  # of the collection and the final networks
        rest = (1.0 - 2.0 * DATA_SHARE) * seconds * workers / step_seconds  # control steps of all episodes
    else:
        most_updates, rest = 4000, 2.0 * steps
    whole = rest / length  # episodes that can be run
    return FitPlan(
        steps=steps,
        updates=min(max(steps // 10, 100), max(most_updates, 100)),
        holds=holds,
        validation=int(min(max(whole / 40, 3 if whole < FEW else 5), 20)),
        test=int(min(max(whole / 8, 8 if whole < FEW else 12), 60)) if episodes is None else episodes,
        thresholds=int(min(max(whole / 8, 3 if whole < FEW else 6), 120)),
        worlds=worlds,
    )


def _holds(length: float) -> tuple[int, ...]:
    """Return the holds to try: a short one and a longer one, shorter in short episodes."""
    return (2, 8) if length >= 100 else (1, 3)
