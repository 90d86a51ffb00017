"""Counters of a blender."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Counts:
    """Numbers of stages, switches, events and observed pieces of feedback."""

    stages: int = 0  # decisions
    switches: int = 0  # stages with another controller than before
    safe_actions: int = 0  # stages at which no controller was fit
    events: int = 0  # failures, see `Record.event`
    observed: int = 0  # pieces of feedback that belong to a stage
    learned: int = 0  # stages that the bandit learned from
    late: int = 0  # pieces observed after a later stage had begun
    duplicates: int = 0  # pieces observed twice
    unknown: int = 0  # pieces without a stage, or whose stage is too old
    refused: int = 0  # pieces that were not finite
    missing: int = 0  # stages whose feedback was never observed
    driven: dict[int, int] = field(default_factory=dict)  # stages by arm
