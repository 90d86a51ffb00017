"""What a blender has counted so far."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Counts"]


@dataclass(slots=True)
class Counts:
    """Every stage, switch and piece of feedback, and what became of it."""

    stages: int = 0  # decisions
    switches: int = 0  # stages at which another drove than before
    safe_actions: int = 0  # stages at which no controller was fit
    events: int = 0  # things that went wrong, each told in a record
    observed: int = 0  # pieces of feedback that were attributed to a stage
    learned: int = 0  # stages that the bandit learned from
    late: int = 0  # pieces that came after a later stage had begun
    duplicates: int = 0  # pieces that had come before
    unknown: int = 0  # pieces for a stage that never was, or that is too old
    refused: int = 0  # pieces that were not finite
    missing: int = 0  # stages given up: their feedback never came
